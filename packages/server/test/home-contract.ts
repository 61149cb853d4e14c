// What every Directory must do about homes: their tokens, boxes, apps, moves, and the keys that sign for the service.

import { createPublicKey, sign, verify } from "node:crypto";
import { parseHomeId, type HomeId } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Change, Directory, MoveOrder, Placement, Replica } from "../src/directory/directory.ts";
import { parseHomeToken, parseKey } from "../src/directory/keys.ts";
import {
  expectCode,
  registerShards,
  shardId,
  UNKNOWN_TUNNEL,
  type OpenedForTest,
  type OpenForTest,
} from "./directory-contract.ts";

const BY = { actor: "tester", reason: "because" } as const;
const UNKNOWN_HOME = homeId("nobody");

function homeId(text: string): HomeId {
  return parseHomeId(text) as HomeId;
}

/** A box's public key of 32 bytes of `byte`. */
function boxKey(byte: number): string {
  return Buffer.alloc(32, byte).toString("base64url");
}

let moveCount = 0;

function moveTo(tenant: string, to: string): MoveOrder {
  moveCount += 1;
  return { moveId: `move_${moveCount.toString(16).padStart(32, "a")}`, tenant, to: shardId(to) };
}

/** Declares the suite. */
export function homeContract(name: string, open: OpenForTest): void {
  describe(`${name} keeps the contract of homes`, () => {
    let opened: OpenedForTest;
    let directory: Directory;
    let replica: Replica;

    beforeEach(async () => {
      opened = await open();
      ({ directory, replica } = opened);
      await registerShards(directory, "s2", "s1", "s3");
    });
    afterEach(() => opened.close());

    const placementOf = (tenant: string) => replica.placement(tenant) as Placement;
    const create = async (id: string) => (await directory.createHome({ id: homeId(id) })).home.id;
    const move = (order: MoveOrder, isForced = false) => directory.moveTenant({ ...order, ...BY, isForced });
    const enrol = async (home: HomeId, key: number) => {
      const { code } = await directory.createEnrolment(home);
      return directory.redeemEnrolment(code.reveal(), boxKey(key));
    };
    /** A home whose box and app follow shards. */
    const createFollowing = async (id: string) => {
      const home = await create(id);
      await directory.recordHomeSightings([
        { home, app: null, hasShard: true },
        { home, app: "phone", hasShard: true },
      ]);
      return home;
    };

    describe("homes", () => {
      test("a new home is on the default shard, whatever its name, and has no box yet", async () => {
        const { home, tunnel } = await directory.createHome({});
        expect(home).toEqual({
          id: expect.stringMatching(/^home_[0-9a-f]{16}$/),
          label: "",
          boxKey: null,
          boxHasShard: null,
          boxSeenAtMs: null,
          tunnel: null,
          createdAtMs: expect.any(Number),
          placement: {
            shard: "s2",
            revision: expect.any(Number),
            tokenKey: replica.sealingKeys()[0]?.id,
            tokenFormat: 1,
          },
        });
        expect(tunnel).toBeNull();
        const named = await directory.createHome({ id: homeId("anna-7"), label: "Anna" });
        expect(named.home).toMatchObject({ id: "anna-7", label: "Anna", placement: { shard: "s2" } });
        expect(replica.home("anna-7")).toEqual(named.home);
        expect(placementOf("anna-7")).toEqual(named.home.placement);
        expect(replica.countsByShard().get(shardId("s2"))).toEqual({ tunnels: 0, homes: 2 });
      });

      test("a name that is taken, or looks like a tunnel's, is refused", async () => {
        await create("anna");
        await expectCode(directory.createHome({ id: homeId("anna") }), "home_exists");
        await expectCode(directory.createHome({ id: homeId("tunnel_1") }), "invalid_request");
        await expectCode(directory.createHome({ label: "two\nlines" }), "invalid_request");
        const beside = await create("tunnels");
        expect(replica.home(beside)).toBeDefined();
        expect(replica.countsByShard().get(shardId("s2"))).toEqual({ tunnels: 0, homes: 2 });
      });

      test("a home's label changes, its name does not", async () => {
        const home = await create("anna");
        const before = replica.home(home);
        expect(await directory.updateHome(home, { label: "Anna" })).toEqual({ ...before, label: "Anna" });
        await expectCode(directory.updateHome(UNKNOWN_HOME, { label: "x" }), "home_not_found");
      });

      test("a deleted home is gone with its tokens, apps, codes and box", async () => {
        const home = await createFollowing("anna");
        const { record, token } = await directory.createHomeToken({ home, kind: "app" });
        const { code } = await directory.createEnrolment(home);
        const heard: string[] = [];
        replica.onChange((change: Change) => void heard.push(`${change.kind} ${change.id}`));
        await directory.deleteHome(home);
        expect(heard.toSorted()).toEqual(
          ["home anna", "home-app anna/phone", `key ${record.id}`, "placement anna"].toSorted(),
        );
        expect([replica.home(home), replica.placement(home)]).toEqual([undefined, undefined]);
        expect(replica.homeApps(home)).toEqual([]);
        expect(replica.keyByHash(parseHomeToken(token.reveal())?.hash as Uint8Array)).toBeUndefined();
        expect(await directory.redeemEnrolment(code.reveal(), boxKey(1))).toEqual({ kind: "refused" });
        await expectCode(directory.getHome(home), "home_not_found");
        await expectCode(directory.deleteHome(home), "home_not_found");
        await expectCode(directory.createEnrolment(home), "home_not_found");
        await expectCode(directory.createHomeToken({ home, kind: "app" }), "home_not_found");
      });

      test("homes are listed in the order of their names, page by page", async () => {
        for (const id of ["c", "a", "b"]) await create(id);
        const first = await directory.listHomes({ limit: 2 });
        expect(first.items.map(({ id }) => id)).toEqual(["a", "b"]);
        const rest = await directory.listHomes({ limit: 2, after: first.next ?? "" });
        expect([rest.items.map(({ id }) => id), rest.next]).toEqual([["c"], null]);
      });

      verifies(
        "L26",
        "a home may have one tunnel, made with it or given to it, and shares it with no other",
        async () => {
          const made = await directory.createHome({ id: homeId("a"), label: "Anna", tunnel: "new" });
          expect(made.tunnel?.tunnel).toMatchObject({
            id: made.home.tunnel,
            name: "home a",
            description: "Anna",
          });
          expect(parseKey(made.tunnel?.agentKey.reveal() ?? "")?.kind).toBe("agent");
          const own = made.home.tunnel ?? UNKNOWN_TUNNEL;
          await expectCode(directory.createHome({ id: homeId("b"), tunnel: own }), "conflict");
          await expectCode(
            directory.createHome({ id: homeId("b"), tunnel: UNKNOWN_TUNNEL }),
            "tunnel_not_found",
          );
          expect(replica.home("b")).toBeUndefined();
          const b = await create("b");
          await expectCode(directory.updateHome(b, { tunnel: own }), "conflict");
          expect((await directory.updateHome(made.home.id, { tunnel: null })).tunnel).toBeNull();
          expect((await directory.updateHome(b, { tunnel: own })).tunnel).toBe(own);
          expect((await directory.updateHome(b, { tunnel: own, label: "same" })).label).toBe("same");
          await directory.deleteTunnel(own);
          expect(replica.home(b)?.tunnel).toBeNull();
        },
      );

      test("deleting a home leaves its tunnel", async () => {
        const { home } = await directory.createHome({ tunnel: "new" });
        await directory.deleteHome(home.id);
        expect(replica.tunnel(home.tunnel ?? "")).toBeDefined();
      });
    });

    describe("tokens", () => {
      verifies(
        "L7",
        "a home's token is `<home>.<secret>`, kept as a hash of the whole, and good for that home only",
        async () => {
          const home = await create("anna");
          const { record, token } = await directory.createHomeToken({
            home,
            kind: "extension",
            label: "blog",
          });
          expect(record).toMatchObject({
            kind: "extension",
            tenant: "anna",
            label: "blog",
            isRevoked: false,
          });
          const text = token.reveal();
          expect(text).toMatch(/^anna\.moor_extension_[0-9A-Za-z_-]{43}_[0-9A-Za-z_-]{6}$/);
          expect(text.length).toBeLessThanOrEqual(256);
          const parsed = parseHomeToken(text);
          expect(parsed).toMatchObject({ home: "anna", kind: "extension" });
          expect(replica.keyByHash(parsed?.hash as Uint8Array)?.id).toBe(record.id);
          // Under another home's name, or without one, the same secret is another token.
          const elsewhere = parseHomeToken(text.replace("anna.", "berta."));
          expect(replica.keyByHash(elsewhere?.hash as Uint8Array)).toBeUndefined();
          const bare = parseKey(text.slice("anna.".length));
          expect(replica.keyByHash(bare?.hash as Uint8Array)).toBeUndefined();
          const wrong = text.slice(0, -1) + (text.endsWith("A") ? "B" : "A");
          for (const bad of [
            "",
            "anna",
            ".",
            "anna.",
            wrong,
            `${text}.x`,
            text.replace("extension", "agent"),
          ]) {
            expect(parseHomeToken(bad)).toBeUndefined();
          }
        },
      );

      test("tokens are listed by home and revoked like keys", async () => {
        const [anna, berta] = [await create("anna"), await create("berta")];
        const { record, token } = await directory.createHomeToken({ home: anna, kind: "app" });
        await directory.createHomeToken({ home: berta, kind: "app" });
        const listed = await directory.listKeys({ limit: 10, home: anna });
        expect(listed.items).toEqual([record]);
        expect((await directory.listKeys({ limit: 10 })).items).toHaveLength(2);
        expect((await directory.revokeKey(record.id)).isRevoked).toBe(true);
        expect(replica.keyByHash(parseHomeToken(token.reveal())?.hash as Uint8Array)).toBeUndefined();
      });
    });

    describe("enrolment", () => {
      verifies("L28", "a code makes one box the home's, once, and gives it the service's keys", async () => {
        const home = await create("anna");
        const { code, expiresAtMs } = await directory.createEnrolment(home);
        expect(code.reveal()).toMatch(/^[0-9A-Z]{4}-[0-9A-Z]{8}-[0-9A-Z]{8}$/);
        expect(code.reveal()).not.toMatch(/[ILOU]/);
        expect(expiresAtMs - (replica.home(home)?.createdAtMs ?? 0)).toBeGreaterThanOrEqual(600_000);
        await directory.addServiceKey(BY);
        const keys = await directory.listServiceKeys();
        expect(await directory.redeemEnrolment(code.reveal(), boxKey(7))).toEqual({
          kind: "ok",
          home: "anna",
          serviceKeys: keys.map(({ publicKey }) => publicKey),
        });
        expect(replica.home(home)?.boxKey).toBe(boxKey(7));
        expect(await directory.redeemEnrolment(code.reveal(), boxKey(7))).toEqual({ kind: "refused" });
        expect(replica.home(home)?.boxKey).toBe(boxKey(7));
      });

      test("a code is typed in any case, with or without hyphens, and look-alikes do not matter", async () => {
        const home = await create("anna");
        for (const mistype of [
          (text: string) => text.toLowerCase(),
          (text: string) => text.replaceAll("-", ""),
          (text: string) => ` ${text.replaceAll("1", "l").replaceAll("0", "o")}\n`,
        ]) {
          const { code } = await directory.createEnrolment(home);
          const outcome = await directory.redeemEnrolment(mistype(code.reveal()), boxKey(1));
          expect(outcome.kind).toBe("ok");
        }
      });

      test("of many redeems at once, one box gets the home", async () => {
        const home = await create("anna");
        const { code } = await directory.createEnrolment(home);
        const outcomes = await Promise.all(
          Array.from({ length: 20 }, (_, at) => directory.redeemEnrolment(code.reveal(), boxKey(at))),
        );
        const winners = outcomes.flatMap(({ kind }, at) => (kind === "ok" ? [at] : []));
        expect(winners).toHaveLength(1);
        expect(replica.home(home)?.boxKey).toBe(boxKey(winners[0] ?? -1));
      });

      test("the fifth wrong try ends a code, the fourth does not", async () => {
        const home = await create("anna");
        const tries = async (count: number) => {
          const { code } = await directory.createEnrolment(home);
          const text = code.reveal();
          const wrong = text.slice(0, -1) + (text.endsWith("0") ? "1" : "0");
          for (let tried = 0; tried < count; tried += 1) {
            expect(await directory.redeemEnrolment(wrong, boxKey(9))).toEqual({ kind: "refused" });
          }
          return (await directory.redeemEnrolment(text, boxKey(count))).kind;
        };
        expect(await tries(4)).toBe("ok");
        expect(await tries(5)).toBe("refused");
        expect(replica.home(home)?.boxKey).toBe(boxKey(4));
      });

      test("a code ends by the directory's own time, and when a newer one is made", async () => {
        const home = await create("anna");
        const old = await directory.createEnrolment(home);
        const newer = await directory.createEnrolment(home);
        expect((await directory.redeemEnrolment(old.code.reveal(), boxKey(1))).kind).toBe("refused");
        await opened.tamper("update enrolments set expires_at_ms = expires_at_ms - 600000");
        expect((await directory.redeemEnrolment(newer.code.reveal(), boxKey(1))).kind).toBe("refused");
        expect(replica.home(home)?.boxKey).toBeNull();
      });

      test("what is no code and what is no key is refused, and takes no try from a code", async () => {
        const home = await create("anna");
        const { code } = await directory.createEnrolment(home);
        const keys = ["", "x", boxKey(1).slice(1), `${boxKey(1).slice(0, -1)}F`, `${boxKey(1)}=`];
        for (const key of keys) {
          expect(await directory.redeemEnrolment(code.reveal(), key)).toEqual({ kind: "refused" });
        }
        for (const text of ["", "0", "0000-00000000-00000000", "U".repeat(20), "0".repeat(10_000)]) {
          expect(await directory.redeemEnrolment(text, boxKey(1))).toEqual({ kind: "refused" });
        }
        expect((await directory.redeemEnrolment(code.reveal(), boxKey(1))).kind).toBe("ok");
      });

      test("a new box is a stranger: what its predecessor could do is forgotten", async () => {
        const home = await createFollowing("anna");
        const { code } = await directory.createEnrolment(home);
        const heard: string[] = [];
        replica.onChange(({ kind, id }) => void heard.push(`${kind} ${id}`));
        await directory.redeemEnrolment(code.reveal(), boxKey(2));
        expect(heard).toEqual(["home anna"]);
        expect(replica.home(home)).toMatchObject({ boxKey: boxKey(2), boxHasShard: null, boxSeenAtMs: null });
      });
    });

    describe("sightings", () => {
      verifies(
        "L22",
        "the hello of a box that was replaced meanwhile says nothing of the one that took its place",
        async () => {
          const home = await create("anna");
          await enrol(home, 1);
          await directory.recordHomeSightings([{ home, app: null, hasShard: true, boxKey: boxKey(1) }]);
          expect(replica.home(home)?.boxHasShard).toBe(true);
          await enrol(home, 2);
          await directory.recordHomeSightings([{ home, app: null, hasShard: true, boxKey: boxKey(1) }]);
          expect(replica.home(home)).toMatchObject({ boxHasShard: null, boxSeenAtMs: null });
          await directory.recordHomeSightings([{ home, app: null, hasShard: false, boxKey: boxKey(2) }]);
          expect(replica.home(home)?.boxHasShard).toBe(false);
        },
      );

      test("hellos are noted, and what is known already is not written again", async () => {
        const home = await create("anna");
        const sightings = [
          { home, app: null, hasShard: false },
          { home, app: "phone", hasShard: true },
          { home, app: "tablet", hasShard: false },
          { home: UNKNOWN_HOME, app: null, hasShard: true },
          { home: UNKNOWN_HOME, app: "phone", hasShard: true },
        ];
        await directory.recordHomeSightings(sightings);
        expect(replica.home(home)).toMatchObject({ boxHasShard: false, boxSeenAtMs: expect.any(Number) });
        expect(replica.homeApps(home)).toMatchObject([
          { app: "phone", hasShard: true, lastSeenAtMs: expect.any(Number) },
          { app: "tablet", hasShard: false },
        ]);
        expect(replica.homeApps(UNKNOWN_HOME)).toEqual([]);
        const { seq } = replica;
        await directory.recordHomeSightings(sightings);
        expect(replica.seq).toBe(seq);
        await directory.recordHomeSightings([
          { home, app: null, hasShard: true },
          { home, app: "tablet", hasShard: true },
        ]);
        expect(replica.seq).toBe(seq + 2);
        expect(replica.home(home)?.boxHasShard).toBe(true);
        expect(replica.homeApps(home).map(({ hasShard }) => hasShard)).toEqual([true, true]);
      });

      test("an hour later the same is noted anew", async () => {
        const home = await createFollowing("anna");
        const { seq } = replica;
        await opened.tamper("update homes set box_seen_at_ms = box_seen_at_ms - 3600001");
        await opened.tamper("update home_apps set last_seen_ms = last_seen_ms - 3600001");
        await directory.recordHomeSightings([
          { home, app: null, hasShard: true },
          { home, app: "phone", hasShard: true },
        ]);
        expect(replica.seq).toBe(seq + 2);
      });

      test("a home's apps are bounded, and none that blocks is dropped for it", async () => {
        const home = await create("anna");
        const note = (from: number, hasShard: boolean) =>
          directory.recordHomeSightings(
            Array.from({ length: 200 }, (_, at) => ({ home, app: `app-${from + at}`, hasShard })),
          );
        await note(0, false);
        await note(200, true);
        const blocking = () => {
          const apps = replica.homeApps(home);
          expect(apps).toHaveLength(256);
          return apps.filter(({ hasShard }) => !hasShard).map(({ app }) => app);
        };
        const first = blocking();
        expect(first).toHaveLength(200);
        for (const from of [400, 600]) {
          await note(from, false);
          expect(blocking()).toHaveLength(256);
          expect(blocking()).toEqual(expect.arrayContaining(first));
        }
      });
    });

    describe("moves", () => {
      verifies(
        "L22",
        "a home leaves the default shard once its box and all apps seen lately follow shards",
        async () => {
          const home = await create("anna");
          const blockersOf = async () => {
            const error: unknown = await move(moveTo(home, "s1")).then(
              () => undefined,
              (thrown: unknown) => thrown,
            );
            expect(error).toMatchObject({ code: "move_blocked", status: 409 });
            return (error as { data: { blockers: unknown } }).data.blockers;
          };
          const at = expect.stringMatching(/^20.*Z$/);
          expect(await blockersOf()).toEqual([{ kind: "box", shard: null, last_seen_at: null }]);
          await directory.recordHomeSightings([
            { home, app: null, hasShard: false },
            { home, app: "phone", hasShard: false },
            { home, app: "tablet", hasShard: true },
          ]);
          expect(await blockersOf()).toEqual([
            { kind: "box", shard: false, last_seen_at: at },
            { kind: "app", app: "phone", shard: false, last_seen_at: at },
          ]);
          await directory.recordHomeSightings([{ home, app: null, hasShard: true }]);
          expect(await blockersOf()).toMatchObject([{ kind: "app", app: "phone" }]);
          expect(placementOf(home).shard).toBe("s2");
          expect(replica.movesOf(home)).toEqual([]);
          await directory.recordHomeSightings([{ home, app: "phone", hasShard: true }]);
          expect((await move(moveTo(home, "s1"))).placement.shard).toBe("s1");
          expect(replica.home(home)?.placement).toEqual(placementOf(home));
        },
      );

      verifies("L22", "an app that was not seen for thirty days does not block", async () => {
        const home = await createFollowing("anna");
        await directory.recordHomeSightings([{ home, app: "old", hasShard: false }]);
        await expectCode(move(moveTo(home, "s1")), "move_blocked");
        const days30 = 30 * 24 * 3_600_000;
        await opened.tamper(
          `update home_apps set last_seen_ms = last_seen_ms - ${days30 - 60_000} where app = 'old'`,
        );
        await expectCode(move(moveTo(home, "s1")), "move_blocked");
        await opened.tamper("update home_apps set last_seen_ms = last_seen_ms - 60001 where app = 'old'");
        opened.jumpWallClock?.(1);
        expect((await move(moveTo(home, "s1"))).to).toBe("s1");
      });

      verifies("L22", "a forced move is made, and a move to the default shard is never blocked", async () => {
        const home = await create("anna");
        expect((await move(moveTo(home, "s3"), true)).to).toBe("s3");
        await expectCode(move(moveTo(home, "s1")), "move_blocked");
        expect((await move(moveTo(home, "s2"))).to).toBe("s2");
        await directory.setDefaultShard(shardId("s3"), BY);
        expect((await move(moveTo(home, "s3"))).to).toBe("s3");
        await expectCode(move(moveTo(home, "s2")), "move_blocked");
      });

      test("what is no home is refused as one", async () => {
        await expectCode(move(moveTo(UNKNOWN_HOME, "s1")), "home_not_found");
      });

      test("a step of a job moves who may go, and names who was kept", async () => {
        const [following, staying] = [await createFollowing("a"), await create("b")];
        const { tunnel } = await directory.createTunnel({});
        if (tunnel.placement.shard !== "s2")
          await directory.moveTenant({ ...moveTo(tunnel.id, "s2"), ...BY });
        const selector = { from: shardId("s2"), to: shardId("s1") } as const;
        const { id: job } = await directory.createJob({ selector, ratePerS: 100, ...BY });
        await directory.tryLead({ node: "n1", incarnation: "i1", ttlMs: 60_000 });
        const moves = [following, staying, tunnel.id].map((tenant) => moveTo(tenant, "s1"));
        const made = await directory.moveTenants({ moves, job, ...BY });
        expect(made.moves.map(({ tenant }) => tenant).toSorted()).toEqual([following, tunnel.id].toSorted());
        expect(made.blocked).toEqual([
          { tenant: staying, blockers: [{ kind: "box", hasShard: null, lastSeenAtMs: null }] },
        ]);
        const kept = { count: 1, tenants: [staying] };
        expect(await directory.updateJob({ id: job, moved: 2, blocked: kept })).toMatchObject({
          blocked: 1,
          blockedTenants: [staying],
          isForced: false,
        });
        const again = await directory.moveTenants({ moves, job, ...BY, isForced: true });
        expect([again.moves.length, again.blocked]).toEqual([3, []]);
      });

      test("a forced job says so", async () => {
        const selector = { from: shardId("s2"), to: shardId("s1") } as const;
        const job = await directory.createJob({ selector, ratePerS: 1, isForced: true, ...BY });
        expect(job).toMatchObject({ isForced: true, blocked: 0, blockedTenants: [] });
      });
    });

    describe("the default shard", () => {
      test("it is the first ever registered, until an order names another", async () => {
        expect(replica.defaultShard()).toBe("s2");
        await directory.registerNode({
          id: "n2",
          incarnation: "i2",
          shards: [{ id: shardId("s0"), publicHost: "s0.test" }],
        });
        expect(replica.defaultShard()).toBe("s2");
        const heard: string[] = [];
        replica.onChange(({ kind, id }) => void heard.push(`${kind} ${id}`));
        await directory.setDefaultShard(shardId("s3"), BY);
        expect([replica.defaultShard(), heard]).toEqual(["s3", ["residency global"]]);
        await directory.setDefaultShard(shardId("s3"), BY);
        expect(heard).toHaveLength(1);
        expect(placementOf(await create("anna")).shard).toBe("s3");
        await expectCode(directory.setDefaultShard(shardId("s9"), BY), "shard_not_found");
        await directory.leaveNode({ id: "n2", incarnation: "i2" });
        await expectCode(directory.setDefaultShard(shardId("s0"), BY), "conflict");
      });

      test("homes are placed on it while it is down, and wait there", async () => {
        await directory.leaveNode({ id: "n1", incarnation: "i1" });
        expect(placementOf(await create("anna")).shard).toBe("s2");
      });

      test("a shard that is dropped hands on its homes to the default one, whatever their names", async () => {
        const ids = await Promise.all(["a", "b", "c", "d", "e", "f"].map(createFollowing));
        for (const id of ids) await move(moveTo(id, "s1"));
        await registerShards(directory, "s2", "s3");
        expect(ids.map((id) => placementOf(id).shard)).toEqual(ids.map(() => "s2"));
      });

      test("dropped, it hands on its part to a shard of the same registration, with its homes", async () => {
        const home = await create("anna");
        await registerShards(directory, "s3", "s1");
        expect(replica.defaultShard()).toBe("s3");
        expect(placementOf(home).shard).toBe("s3");
      });

      test("where no node names it any more, homes are not created", async () => {
        await registerShards(directory);
        await expectCode(directory.createHome({ id: homeId("anna") }), "directory_unavailable");
        expect(replica.home("anna")).toBeUndefined();
      });
    });

    describe("service keys", () => {
      verifies("L28", "there is one from the start: it signs, and its id is of its public half", () => {
        const keys = replica.serviceKeys();
        expect(keys?.next).toBeUndefined();
        const active = keys?.active;
        if (active === undefined) throw new Error("no service key");
        const raw = Buffer.from(active.publicKey, "base64url");
        expect([raw.length, active.publicKey.length]).toEqual([32, 43]);
        const publicKey = createPublicKey({
          key: { kty: "OKP", crv: "Ed25519", x: active.publicKey },
          format: "jwk",
        });
        const signature = sign(null, Buffer.from("bytes"), active.privateKey);
        expect(verify(null, Buffer.from("bytes"), publicKey, signature)).toBe(true);
        expect(active.id).toMatch(/^[0-9A-Za-z_][0-9A-Za-z_-]{15}$/);
      });

      verifies(
        "L29",
        "a key is announced before it signs, and the signing one goes only when another can follow",
        async () => {
          const first = replica.serviceKeys()?.active.id ?? "";
          await expectCode(directory.retireServiceKey(first, BY), "conflict");
          const next = await directory.addServiceKey(BY);
          expect(next).toMatchObject({ state: "next", createdBy: "tester" });
          expect(replica.serviceKeys()).toMatchObject({ active: { id: first }, next: next.publicKey });
          await expectCode(directory.addServiceKey(BY), "conflict");
          const heard: string[] = [];
          replica.onChange(({ kind }) => void heard.push(kind));
          await directory.retireServiceKey(first, BY);
          expect(heard).toEqual(["service-key", "service-key"]);
          expect(replica.serviceKeys()?.active).toMatchObject({ id: next.id, publicKey: next.publicKey });
          expect(replica.serviceKeys()?.next).toBeUndefined();
          expect(await directory.listServiceKeys()).toMatchObject([{ id: next.id, state: "active" }]);
          await expectCode(directory.retireServiceKey(first, BY), "service_key_not_found");
          const another = await directory.addServiceKey(BY);
          await directory.retireServiceKey(another.id, BY);
          expect((await directory.listServiceKeys()).map(({ id }) => id)).toEqual([next.id]);
        },
      );
    });

    verifies("L23", "each registration gets a revision above every one before it", async () => {
      const home = await create("anna");
      const before = placementOf(home).revision;
      const { startRevision } = await registerShards(directory, "s2", "s1", "s3");
      expect(startRevision).toBeGreaterThan(before);
      expect(replica.nodes()[0]?.startRevision).toBe(startRevision);
      const again = await registerShards(directory, "s2", "s1", "s3");
      expect(again.startRevision).toBeGreaterThan(startRevision);
      expect((await move(moveTo(home, "s1"), true)).revision).toBeGreaterThan(again.startRevision);
    });
  });
}
