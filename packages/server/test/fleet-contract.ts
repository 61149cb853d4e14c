// What every Directory must do about nodes, leases, moves, jobs and token keys, whatever stores them.

import { verifies } from "@moor/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type Change,
  type Directory,
  type MoveOrder,
  type Placement,
  type Replica,
} from "../src/directory/directory.ts";
import {
  expectCode,
  registerShards,
  shardId,
  UNKNOWN_TUNNEL,
  type OpenedForTest,
  type OpenForTest,
} from "./directory-contract.ts";

const BY = { actor: "tester", reason: "because" } as const;
const N1 = { id: "n1", incarnation: "i1" } as const;

let moveCount = 0;

/** An order with an id of its own. */
function moveTo(tenant: string, to: string): MoveOrder {
  moveCount += 1;
  return { moveId: `move_${moveCount.toString(16).padStart(32, "0")}`, tenant, to: shardId(to) };
}

/** Declares the suite. */
export function fleetContract(name: string, open: OpenForTest): void {
  describe(`${name} keeps the contract of a fleet`, () => {
    let opened: OpenedForTest;
    let directory: Directory;
    let replica: Replica;

    beforeEach(async () => {
      opened = await open();
      ({ directory, replica } = opened);
      await registerShards(directory, "s1", "s2", "s3");
    });
    afterEach(() => opened.close());

    /** A tunnel and where it is. */
    const createAt = async (shard: string): Promise<string> => {
      for (;;) {
        const { tunnel } = await directory.createTunnel({});
        if (tunnel.placement.shard === shard) return tunnel.id;
      }
    };
    const placementOf = (tenant: string) => replica.placement(tenant) as Placement;

    describe("nodes and shards", () => {
      test("a registered node and its shards are known", async () => {
        await directory.registerNode({
          id: "n2",
          incarnation: "i7",
          internalUrl: "tcp://127.0.0.1:9",
          roles: ["entry"],
          version: "1.2.3",
          shards: [],
        });
        expect(replica.nodes()).toEqual([
          {
            id: "n1",
            incarnation: "i1",
            internalUrl: "",
            roles: ["entry", "shard"],
            version: "",
            state: "live",
            startRevision: expect.any(Number),
          },
          {
            id: "n2",
            incarnation: "i7",
            internalUrl: "tcp://127.0.0.1:9",
            roles: ["entry"],
            version: "1.2.3",
            state: "live",
            startRevision: expect.any(Number),
          },
        ]);
        expect(replica.shards().map((shard) => shard.id)).toEqual(["s1", "s2", "s3"]);
        expect(replica.shard("s2")).toMatchObject({ node: "n1", publicHost: "s2.test", state: "live" });
        expect(replica.shard("s9")).toBeUndefined();
      });

      test("a node that leaves is left, and its shards are down and keep their tenants", async () => {
        const tenant = await createAt("s1");
        const before = placementOf(tenant);
        await directory.leaveNode({ id: "n1", incarnation: "an older start" });
        expect(replica.nodes()[0]?.state).toBe("live");
        await directory.leaveNode(N1);
        expect(replica.nodes()[0]?.state).toBe("left");
        expect(replica.shards().map((shard) => shard.state)).toEqual(["down", "down", "down"]);
        expect(placementOf(tenant)).toEqual(before);
        await expectCode(directory.createTunnel({}), "directory_unavailable");
        await registerShards(directory, "s1", "s2", "s3");
        expect(replica.shard("s1")?.state).toBe("live");
        expect(placementOf(tenant)).toEqual(before);
      });

      test("a shard that another live node runs is not taken from it, and nothing is registered", async () => {
        const other = {
          id: "n2",
          incarnation: "x",
          shards: [{ id: shardId("s2"), publicHost: "h" }],
        };
        await expectCode(directory.registerNode(other), "conflict");
        expect(replica.nodes()).toHaveLength(1);
        await directory.leaveNode(N1);
        await directory.registerNode(other);
        expect(replica.shard("s2")).toMatchObject({ node: "n2", state: "live" });
      });
    });

    describe("leases", () => {
      test("a renewal moves the counters of the node's shards", async () => {
        const counters = () => replica.shards().map((shard) => shard.leaseCounter);
        // A replica elsewhere copies leases now and then.
        await expect.poll(counters, { timeout: 10_000 }).toEqual([1, 1, 1]);
        await directory.renewLeases({
          node: "n1",
          incarnation: "i1",
          shards: [shardId("s1"), shardId("s3")],
        });
        await expect.poll(counters, { timeout: 10_000 }).toEqual([2, 1, 2]);
      });

      test("a renewal of an older start, or of a shard that another node runs, is a conflict", async () => {
        const shards = [shardId("s1")];
        await expectCode(directory.renewLeases({ node: "n1", incarnation: "i0", shards }), "conflict");
        await expectCode(directory.renewLeases({ node: "n2", incarnation: "i1", shards }), "conflict");
        await expectCode(
          directory.renewLeases({ node: "n1", incarnation: "i1", shards: [shardId("s9")] }),
          "conflict",
        );
        await directory.renewLeases({ node: "n1", incarnation: "i1", shards });
      });

      test("one node leads at a time, and keeps leading while it asks", async () => {
        const first = { node: "n1", incarnation: "i1", ttlMs: 60_000 };
        const second = { node: "n2", incarnation: "i2", ttlMs: 60_000 };
        expect(await directory.tryLead(first)).toBe(true);
        expect(await directory.tryLead(second)).toBe(false);
        expect(await directory.tryLead({ ...first, incarnation: "i9" })).toBe(false);
        expect(await directory.tryLead({ ...first, ttlMs: 1 })).toBe(true);
        opened.jumpWallClock?.(10);
        await expect.poll(() => directory.tryLead(second)).toBe(true);
        expect(await directory.tryLead(first)).toBe(false);
        await expectCode(directory.tryLead({ ...first, ttlMs: 0 }), "invalid_request");
      });
    });

    describe("moves", () => {
      verifies("R22", "a move gives the tenant its shard at a higher revision than any before", async () => {
        const tenant = await createAt("s1");
        const other = await createAt("s3");
        const order = moveTo(tenant, "s2");
        const made = await directory.moveTenant({ ...order, ...BY });
        expect(made).toMatchObject({
          id: order.moveId,
          tenant,
          from: "s1",
          to: "s2",
          actor: "tester",
          reason: "because",
          job: null,
        });
        expect(made.revision).toBeGreaterThan(placementOf(other).revision);
        expect(made.placement).toEqual({
          shard: "s2",
          revision: made.revision,
          tokenKey: replica.sealingKeys()[0]?.id,
          tokenFormat: 1,
        });
        expect(placementOf(tenant)).toEqual(made.placement);
        expect(replica.tunnel(tenant)?.placement).toEqual(made.placement);
        expect(replica.movesOf(tenant).map((move) => move.id)).toEqual([order.moveId]);
        expect(await directory.findMove(order.moveId)).toMatchObject({ id: order.moveId, to: "s2" });
        expect(await directory.findMove("move_none")).toBeUndefined();
      });

      test("a move asked for twice is made once, also after a later one", async () => {
        const tenant = await createAt("s1");
        const order = { ...moveTo(tenant, "s2"), ...BY };
        const first = await directory.moveTenant(order);
        expect(await directory.moveTenant(order)).toEqual(first);
        const later = await directory.moveTenant({ ...moveTo(tenant, "s3"), ...BY });
        const { seq } = replica;
        expect(await directory.moveTenant(order)).toEqual(first);
        expect(replica.seq).toBe(seq);
        expect(placementOf(tenant)).toEqual(later.placement);
      });

      test("a listener hears of the placement and of the move", async () => {
        const tenant = await createAt("s1");
        const heard: Change[] = [];
        replica.onChange((change) => void heard.push(change));
        const { id } = await directory.moveTenant({ ...moveTo(tenant, "s2"), ...BY });
        expect(heard.map((change) => `${change.kind} ${change.id}`)).toEqual([
          `placement ${tenant}`,
          `move ${id}`,
        ]);
      });

      test("what cannot be moved is refused, naming why", async () => {
        const tenant = await createAt("s1");
        const move = (order: MoveOrder) => directory.moveTenant({ ...order, ...BY });
        await expectCode(move(moveTo(UNKNOWN_TUNNEL, "s2")), "tunnel_not_found");
        await expectCode(move(moveTo(tenant, "s9")), "shard_not_found");
        await expectCode(move(moveTo(tenant, "s1")), "conflict");
        await expectCode(move({ ...moveTo(tenant, "s2"), from: shardId("s3") }), "conflict");
        await expectCode(move({ ...moveTo(tenant, "s2"), moveId: "move_1" }), "invalid_request");
        for (const param of ["to", "from"] as const) {
          const wrong = move({ ...moveTo(tenant, "s2"), [param]: "S 2" as never });
          await expect(wrong).rejects.toMatchObject({ code: "invalid_request", param });
        }
        await expectCode(directory.moveTenant({ ...moveTo(tenant, "s2"), actor: "" }), "invalid_request");
        await expectCode(
          directory.moveTenant({ ...moveTo(tenant, "s2"), actor: "a", reason: "two\nlines" }),
          "invalid_request",
        );
        expect(placementOf(tenant).shard).toBe("s1");
        expect(replica.movesOf(tenant)).toEqual([]);
      });

      test("nobody is moved to a shard that is not live", async () => {
        const tenant = await createAt("s1");
        await directory.registerNode({
          id: "n2",
          incarnation: "i2",
          shards: [{ id: shardId("s4"), publicHost: "h" }],
        });
        await directory.leaveNode({ id: "n2", incarnation: "i2" });
        await expectCode(directory.moveTenant({ ...moveTo(tenant, "s4"), ...BY }), "conflict");
      });

      test("moves are listed newest first, page by page, of one tenant or of all", async () => {
        const [one, two] = [await createAt("s1"), await createAt("s1")];
        const ids: string[] = [];
        for (const tenant of [one, two, one]) {
          const to = placementOf(tenant).shard === "s2" ? "s3" : "s2";
          ids.unshift((await directory.moveTenant({ ...moveTo(tenant, to), ...BY })).id);
        }
        const first = await directory.listMoves({ limit: 2 });
        expect(first.items.map((move) => move.id)).toEqual(ids.slice(0, 2));
        const second = await directory.listMoves({ limit: 2, after: first.next ?? "" });
        expect(second.items.map((move) => move.id)).toEqual(ids.slice(2));
        expect(second.next).toBeNull();
        const ofOne = await directory.listMoves({ limit: 10, tenant: one });
        expect(ofOne.items.map((move) => move.id)).toEqual([ids[0], ids[2]]);
        await expectCode(directory.listMoves({ limit: 1, after: "eA" }), "invalid_request");
      });

      test("tenants of a shard are listed in order and counted", async () => {
        const tenants = [await createAt("s1"), await createAt("s1"), await createAt("s1")].toSorted();
        const all = replica.tenantsOfShard(shardId("s1"), "", 100);
        expect(all).toEqual(all.toSorted());
        expect(all).toEqual(expect.arrayContaining(tenants));
        expect(replica.tenantsOfShard(shardId("s1"), all[0] ?? "", 1)).toEqual([all[1]]);
        expect(replica.countsByShard().get(shardId("s1"))).toEqual({ tunnels: all.length, homes: 0 });
      });
    });

    describe("jobs", () => {
      const selector = { from: shardId("s1"), to: shardId("s2") } as const;
      const lead = () => directory.tryLead({ node: "n1", incarnation: "i1", ttlMs: 60_000 });

      test("a job is made, advanced by its leader, and ends", async () => {
        await createAt("s1");
        const total = replica.countsByShard().get(shardId("s1"))?.tunnels;
        const job = await directory.createJob({ selector, ratePerS: 2.5, ...BY });
        expect(job).toMatchObject({
          kind: "move",
          selector,
          ratePerS: 2.5,
          state: "running",
          moved: 0,
          total,
          cursor: null,
          actor: "tester",
        });
        await lead();
        expect(await directory.updateJob({ id: job.id, moved: 1, cursor: "t" })).toMatchObject({
          moved: 1,
          cursor: "t",
          state: "running",
        });
        const done = await directory.updateJob({ id: job.id, state: "done" });
        expect(done).toMatchObject({ moved: 1, cursor: "t", state: "done" });
        expect(await directory.getJob(job.id)).toEqual(done);
        await expectCode(directory.updateJob({ id: job.id, moved: 2 }), "conflict");
        await expectCode(directory.getJob("job_none"), "job_not_found");
      });

      test("a failed job says why", async () => {
        const { id } = await directory.createJob({ selector, ratePerS: 1, ...BY });
        await lead();
        expect(
          await directory.updateJob({ id, state: "failed", error: "shard s2 is not live" }),
        ).toMatchObject({
          state: "failed",
          error: "shard s2 is not live",
        });
      });

      test("at most one job runs from a shard", async () => {
        const { id } = await directory.createJob({ selector, ratePerS: 1, ...BY });
        await expectCode(
          directory.createJob({ selector: { ...selector, to: "spread" }, ratePerS: 1, ...BY }),
          "conflict",
        );
        await directory.abortJob(id, BY);
        const next = await directory.createJob({
          selector: { ...selector, to: "spread" },
          ratePerS: 1,
          ...BY,
        });
        expect(next.selector.to).toBe("spread");
        const all = await directory.listJobs({ limit: 10 });
        expect(all.items.map((job) => job.id)).toEqual([next.id, id]);
        const running = await directory.listJobs({ limit: 10, state: "running" });
        expect(running.items.map((job) => job.id)).toEqual([next.id]);
      });

      test("an aborted job stays aborted; aborting it again does nothing, an ended one is a conflict", async () => {
        const { id } = await directory.createJob({ selector, ratePerS: 1, ...BY });
        expect(await directory.abortJob(id, BY)).toMatchObject({
          state: "aborted",
          error: "aborted by tester: because",
        });
        const { seq } = replica;
        expect((await directory.abortJob(id, BY)).state).toBe("aborted");
        expect(replica.seq).toBe(seq);
        await expectCode(directory.abortJob("job_none", BY), "job_not_found");
        const other = await directory.createJob({ selector, ratePerS: 1, ...BY });
        await lead();
        await directory.updateJob({ id: other.id, state: "done" });
        await expectCode(directory.abortJob(other.id, BY), "conflict");
      });

      test.each([
        [{ ratePerS: 0 }, "invalid_request"],
        [{ ratePerS: Number.NaN }, "invalid_request"],
        [{ selector: { from: shardId("s1"), to: shardId("s1") } }, "invalid_request"],
        [{ selector: { from: shardId("s9"), to: shardId("s1") } }, "shard_not_found"],
        [{ selector: { from: shardId("s1"), to: shardId("s9") } }, "shard_not_found"],
      ] as const)("the job %j is refused with %s", async (wrong, code) => {
        await expectCode(directory.createJob({ selector, ratePerS: 1, ...BY, ...wrong }), code);
      });

      test("a step moves what is left to move, only for the leader, only while the job runs", async () => {
        const [one, two, gone, elsewhere] = [
          await createAt("s1"),
          await createAt("s1"),
          UNKNOWN_TUNNEL,
          await createAt("s3"),
        ];
        const { id: job } = await directory.createJob({ selector, ratePerS: 100, ...BY });
        const from = shardId("s1");
        const moves = [one, two, gone, elsewhere].map((tenant) => ({ ...moveTo(tenant, "s2"), from }));
        const step = () => directory.moveTenants({ moves, job, ...BY });
        await expectCode(step(), "conflict");
        await lead();
        const { moves: made } = await step();
        expect(made.map((move) => move.tenant).toSorted()).toEqual([one, two].toSorted());
        expect(made.every((move) => move.job === job && move.placement.shard === "s2")).toBe(true);
        const revisions = made.map((move) => move.revision);
        expect(new Set(revisions).size).toBe(2);
        expect(placementOf(one).shard).toBe("s2");
        expect(placementOf(elsewhere).shard).toBe("s3");
        // Asked again, as after a lost answer, it moves nobody a second time.
        const again = (await step()).moves.map((move) => move.revision);
        expect(new Set(again)).toEqual(new Set(revisions));
        expect(replica.movesOf(one)).toHaveLength(1);
        await directory.abortJob(job, BY);
        await expectCode(step(), "conflict");
        await expectCode(directory.moveTenants({ moves, job: "job_none", ...BY }), "job_not_found");
      });

      test("a step moves at most 500 tenants", async () => {
        await lead();
        const moves = Array.from({ length: 501 }, () => moveTo(UNKNOWN_TUNNEL, "s2"));
        await expectCode(directory.moveTenants({ moves, job: "job_x", ...BY }), "invalid_request");
      });
    });

    describe("the residency", () => {
      test("corrections are off until they are turned on, and off again at once", async () => {
        expect(replica.correctionsOn()).toBe(false);
        await directory.setCorrections(true, BY);
        expect(replica.correctionsOn()).toBe(true);
        const { seq } = replica;
        await directory.setCorrections(true, BY);
        expect(replica.seq).toBe(seq);
        await directory.setCorrections(false, BY);
        expect(replica.correctionsOn()).toBe(false);
      });

      verifies(
        "R23",
        "a new token key is accepted, then seals, and placements keep theirs until it is retired",
        async () => {
          const tenant = await createAt("s1");
          const before = placementOf(tenant);
          const [old] = replica.sealingKeys();
          const added = await directory.addTokenKey(BY);
          expect(added).toMatchObject({ state: "accepted", createdBy: "tester", placementCount: 0 });
          expect(replica.sealingKeys().map((key) => [key.id, key.state])).toEqual([
            [old?.id, "sealing"],
            [added.id, "accepted"],
          ]);
          expect(replica.sealingKeys()[1]?.secret).toHaveLength(32);
          await expectCode(directory.retireTokenKey(old?.id ?? "", BY), "conflict");
          expect((await directory.promoteTokenKey(added.id, BY)).state).toBe("sealing");
          expect(replica.sealingKeys().map((key) => [key.id, key.state])).toEqual([
            [added.id, "sealing"],
            [old?.id, "accepted"],
          ]);
          expect(placementOf(tenant)).toEqual(before);
          const moved = await directory.moveTenant({ ...moveTo(tenant, "s2"), ...BY });
          expect(moved.placement.tokenKey).toBe(added.id);
          expect((await directory.listTokenKeys()).map((key) => key.id)).toEqual([added.id, old?.id]);
        },
      );

      test("retiring a token key places its tenants anew where they are, then forgets it", async () => {
        const tenants = await Promise.all(
          Array.from({ length: 30 }, async () => (await directory.createTunnel({})).tunnel.id),
        );
        const before = tenants.map(placementOf);
        const old = replica.sealingKeys()[0]?.id ?? "";
        const { id } = await directory.addTokenKey(BY);
        await directory.promoteTokenKey(id, BY);
        await directory.retireTokenKey(old, BY);
        expect(replica.sealingKeys().map((key) => key.id)).toEqual([id]);
        for (const [index, tenant] of tenants.entries()) {
          const placement = placementOf(tenant);
          expect(placement).toMatchObject({ shard: before[index]?.shard, tokenKey: id });
          expect(placement.revision).toBeGreaterThan(Math.max(...before.map((each) => each.revision)));
        }
        await expectCode(directory.retireTokenKey(old, BY), "token_key_not_found");
        await expectCode(directory.promoteTokenKey(old, BY), "token_key_not_found");
      });

      test("a key does not seal before every node that renews its lease is known to have it", async () => {
        const other = { id: "n2", incarnation: "i2", shards: [] };
        await directory.registerNode(other);
        await registerShards(directory, "s1", "s2", "s3");
        const { id } = await directory.addTokenKey(BY);
        await expect(directory.promoteTokenKey(id, BY)).rejects.toMatchObject({
          code: "conflict",
          message: expect.stringContaining("n2"),
        });
        const { seq } = replica;
        await directory.renewLeases({ node: "n2", incarnation: "i2", shards: [], seq: seq - 1 });
        await expectCode(directory.promoteTokenKey(id, BY), "conflict");
        await directory.renewLeases({ node: "n2", incarnation: "i2", shards: [], seq });
        expect((await directory.promoteTokenKey(id, BY)).state).toBe("sealing");
      });
    });

    describe("health", () => {
      test("it is current, and catching up shows what was committed", async () => {
        expect(replica.health).toEqual({ kind: "current" });
        await replica.catchUp(1_000);
        expect(replica.health).toEqual({ kind: "current" });
      });

      verifies(
        "R22",
        "a revision above every one given out is a regression: changes are refused",
        async () => {
          const tenant = await createAt("s1");
          const { revision } = placementOf(tenant);
          replica.noteRevision(revision);
          await replica.catchUp(1_000);
          expect(replica.health).toEqual({ kind: "current" });
          const unheardOf = revision + 10_000_000_000_000;
          replica.noteRevision(unheardOf);
          await replica.catchUp(1_000);
          await expect
            .poll(() => replica.health)
            .toMatchObject({ kind: "regressed", detail: expect.any(String) });
          expect((replica.health as { detail: string }).detail).toContain(String(unheardOf));
          await expectCode(directory.createTunnel({}), "directory_regressed");
          await expectCode(directory.moveTenant({ ...moveTo(tenant, "s2"), ...BY }), "directory_regressed");
          expect(placementOf(tenant).revision).toBe(revision);
          expect((await directory.getTunnel(tenant as never)).id).toBe(tenant);
        },
      );
    });
  });
}
