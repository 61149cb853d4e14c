// Replicas of a shared directory: how they follow it, live without it, and notice when it has gone back in time.

import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parseHomeId, parseTunnelId, type HomeId, type TunnelId } from "@moor/protocol";
import { createLogger, createNodeRuntime, createSilentLogger, Secret } from "@moor/runtime";
import { createTempDir, startTcpProxy, verifies } from "@moor/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseHomeToken, parseKey } from "../../packages/server/src/directory/keys.ts";
import type { Change, Directory } from "../../packages/server/src/directory/directory.ts";
import { mintMoveId } from "../../packages/server/src/directory/operations/move-operations.ts";
import {
  checkDirectory,
  fenceDirectory,
  openToolStore,
  readWatermark,
} from "../../packages/server/src/directory/tools/directory-tools.ts";
import { expectCode, registerShards, shardId } from "../../packages/server/test/directory-contract.ts";
import {
  copyDatabase,
  createMigrated,
  describePostgres,
  openNode,
  restoreDatabase,
  runSql,
  type TestNode,
} from "./postgres-kit.ts";

const runtime = createNodeRuntime();
const WAIT = { timeout: 20_000, interval: 20 } as const;

describePostgres("replicas", (server) => {
  let database: string;
  let nodes: TestNode[] = [];

  beforeEach(async () => {
    database = await createMigrated(server());
  });
  afterEach(async () => {
    await Promise.all(nodes.map((node) => node.remove()));
    nodes = [];
  });

  const open = async (
    more: Parameters<typeof openNode>[1] & { readonly url?: string } = {},
  ): Promise<TestNode> => {
    const node = await openNode(more.url ?? server().url(database), more);
    nodes.push(node);
    return node;
  };
  const close = async (node: TestNode): Promise<void> => {
    nodes = nodes.filter((each) => each !== node);
    await node.directory.close();
  };
  const moveTo = (node: TestNode, tenant: string, to: string) =>
    node.directory.moveTenant({
      moveId: mintMoveId(runtime),
      tenant,
      to: shardId(to),
      actor: "tester",
    });
  const elsewhere = (node: TestNode, tenant: string) =>
    node.replica.placement(tenant)?.shard === "s1" ? "s2" : "s1";
  const fence = async (above = 0) => {
    const location = { kind: "postgres", url: new Secret(server().url(database)) } as const;
    const store = await openToolStore({ location, runtime, logger: createSilentLogger() });
    try {
      return await fenceDirectory(store, runtime, above);
    } finally {
      await store.close();
    }
  };
  const problems = async () => {
    const location = { kind: "postgres", url: new Secret(server().url(database)) } as const;
    const store = await openToolStore({ location, runtime, logger: createSilentLogger() });
    const { problems: found } = await checkDirectory(store);
    await store.close();
    return found;
  };

  test("a change at one node is heard at every other, in the order of its commits", async () => {
    const [one, two] = [await open(), await open()];
    const heard: [Change[], Change[]] = [[], []];
    one.replica.onChange((change) => void heard[0].push(change));
    two.replica.onChange((change) => void heard[1].push(change));
    await registerShards(one.directory, "s1", "s2");
    const { tunnel, agentKey } = await one.directory.createTunnel({ name: "seen by both" });
    await two.replica.catchUp(10_000);
    expect(two.replica.tunnel(tunnel.id)).toEqual(tunnel);
    expect(two.replica.keyByHash(parseKey(agentKey.reveal())?.hash ?? new Uint8Array())?.tenant).toBe(
      tunnel.id,
    );
    await two.directory.deleteTunnel(tunnel.id);
    await one.replica.catchUp(10_000);
    expect(one.replica.tunnel(tunnel.id)).toBeUndefined();
    expect(heard[0]).toEqual(heard[1]);
    expect(heard[0].map((change) => change.seq)).toEqual(
      heard[0].map((_, at) => (heard[0][0]?.seq ?? 0) + at),
    );
  });

  test("homes, their apps, the default shard and the service keys come to every node", async () => {
    const [one, two] = [await open(), await open()];
    await registerShards(one.directory, "s1", "s2");
    const { home } = await one.directory.createHome({ id: parseHomeId("anna") as HomeId });
    await one.directory.recordHomeSightings([{ home: home.id, app: "phone", hasShard: true }]);
    const { token } = await one.directory.createHomeToken({ home: home.id, kind: "app" });
    await one.directory.setDefaultShard(shardId("s2"), { actor: "tester" });
    const next = await two.directory.addServiceKey({ actor: "tester" });
    await Promise.all([one, two].map(({ replica }) => replica.catchUp(10_000)));
    expect(two.replica.home("anna")).toEqual(home);
    expect(two.replica.homeApps("anna")).toEqual(one.replica.homeApps("anna"));
    expect(two.replica.keyByHash(parseHomeToken(token.reveal())?.hash as Uint8Array)?.tenant).toBe("anna");
    expect(two.replica.defaultShard()).toBe("s2");
    expect(two.replica.nodes()).toEqual(one.replica.nodes());
    expect(one.replica.serviceKeys()?.next).toBe(next.publicKey);
    expect(one.replica.serviceKeys()?.active.id).toBe(two.replica.serviceKeys()?.active.id);
    await one.directory.deleteHome(home.id);
    await two.replica.catchUp(10_000);
    expect([two.replica.home("anna"), two.replica.homeApps("anna")]).toEqual([undefined, []]);
  });

  test("a code is redeemed once, however many nodes are asked at the same moment", async () => {
    const all = [await open(), await open(), await open()];
    await registerShards(all[0]?.directory as Directory, "s1");
    for (let round = 0; round < 5; round += 1) {
      const { home } = await (all[0] as TestNode).directory.createHome({});
      const { code } = await (all[0] as TestNode).directory.createEnrolment(home.id);
      const outcomes = await Promise.all(
        all.map(({ directory }, at) =>
          directory.redeemEnrolment(code.reveal(), Buffer.alloc(32, at).toString("base64url")),
        ),
      );
      expect(outcomes.filter(({ kind }) => kind === "ok")).toHaveLength(1);
    }
  });

  test("a copy made by a program of the schema before lacks what that did not know, and gets it", async () => {
    const node = await open();
    await registerShards(node.directory, "s1");
    const { home } = await node.directory.createHome({ tunnel: "new" });
    const serviceKey = node.replica.serviceKeys()?.active.id;
    await close(node);
    const copy = new DatabaseSync(join(node.dir, "replica.sqlite"));
    copy.exec(`delete from migrations where version = 3;
      drop table homes; drop table home_apps; drop table enrolments; drop table service_keys;
      alter table residency drop column default_shard; alter table nodes drop column start_revision;
      alter table changes drop column topic; alter table jobs drop column is_forced;
      alter table jobs drop column blocked; alter table jobs drop column blocked_tenants;`);
    copy.close();
    const again = await open({ dir: node.dir });
    expect(again.replica.home(home.id)).toEqual(home);
    expect(again.replica.defaultShard()).toBe("s1");
    expect(again.replica.serviceKeys()?.active.id).toBe(serviceKey);
  });

  test("a catching up of another node shows what was committed before it", async () => {
    const [one, two] = [await open(), await open()];
    await registerShards(one.directory, "s1", "s2");
    for (let round = 0; round < 20; round += 1) {
      const { tunnel } = await one.directory.createTunnel({});
      await two.replica.catchUp(10_000);
      expect(two.replica.tunnel(tunnel.id)).toBeDefined();
    }
  });

  verifies("R22", "nodes that move at the same time never share a revision, and replicas agree", async () => {
    const [one, two, watching] = [await open(), await open(), await open()];
    await registerShards(one.directory, "s1", "s2");
    const tenants = await Promise.all(
      Array.from({ length: 10 }, async () => (await one.directory.createTunnel({})).tunnel.id),
    );
    await two.replica.catchUp(10_000);
    const revisions: number[] = [];
    const heardSeqs: number[] = [];
    watching.replica.onChange((change) => void heardSeqs.push(change.seq));
    await Promise.all(
      [one, two].flatMap((node) =>
        tenants.map(async (tenant) => {
          for (let round = 0; round < 5; round += 1) {
            const made = await moveTo(node, tenant, elsewhere(node, tenant)).catch((error: unknown) => {
              // The other node may have moved it meanwhile: then it is there already.
              expect(error).toMatchObject({ code: "conflict", message: expect.stringContaining("already") });
            });
            if (made !== undefined) revisions.push(made.revision);
          }
        }),
      ),
    );
    expect(revisions.length).toBeGreaterThan(20);
    expect(new Set(revisions).size).toBe(revisions.length);
    for (const node of [one, two, watching]) await node.replica.catchUp(10_000);
    for (const tenant of tenants) {
      const placement = one.replica.placement(tenant);
      expect(two.replica.placement(tenant)).toEqual(placement);
      expect(watching.replica.placement(tenant)).toEqual(placement);
    }
    expect(heardSeqs).toEqual(heardSeqs.map((_, at) => (heardSeqs[0] ?? 0) + at));
    expect(await problems()).toEqual([]);
  });

  test("a replica that the feed was trimmed past compares everything, and tells exactly what differs", async () => {
    const one = await open();
    await registerShards(one.directory, "s1", "s2");
    const made = await Promise.all(Array.from({ length: 6 }, () => one.directory.createTunnel({})));
    const ids = made.map(({ tunnel }) => tunnel.id);
    const behind = await open();
    expect(behind.replica.seq).toBe(one.replica.seq);
    await close(behind);
    await moveTo(one, ids[0] ?? "", elsewhere(one, ids[0] ?? ""));
    await one.directory.deleteTunnel(ids[1] as TunnelId);
    const hash = parseKey(made[2]?.agentKey.reveal() ?? "")?.hash ?? new Uint8Array();
    const revoked = one.replica.keyByHash(hash)?.id ?? "";
    await one.directory.revokeKey(revoked);
    await runSql(server(), database, `delete from changes where seq < ${one.replica.seq}`);

    const again = await open({ dir: behind.dir });
    expect(again.replica.seq).toBe(one.replica.seq);
    for (const id of ids) expect(again.replica.tunnel(id)).toEqual(one.replica.tunnel(id));
    expect(again.replica.tunnel(ids[1] ?? "")).toBeUndefined();
    expect(again.replica.keyByHash(hash)).toBeUndefined();
    expect(again.replica.movesOf(ids[0] ?? "")).toEqual(one.replica.movesOf(ids[0] ?? ""));
  });

  test("a replica that is trimmed past while it lives tells its listeners only what differs", async () => {
    const one = await open();
    await registerShards(one.directory, "s1", "s2");
    const [kept, moved] = [await one.directory.createTunnel({}), await one.directory.createTunnel({})];
    const proxy = await startTcpProxy({ port: server().port });
    const two = await open({ url: server().url(database, proxy.port) });
    const heard: Change[] = [];
    two.replica.onChange((change) => void heard.push(change));
    proxy.setAccepting(false);
    proxy.reset();
    await expect.poll(() => two.replica.health.kind, WAIT).toBe("behind");
    const { id: move } = await moveTo(one, moved.tunnel.id, elsewhere(one, moved.tunnel.id));
    await runSql(server(), database, "delete from changes");
    proxy.setAccepting(true);
    await expect.poll(() => two.replica.seq, WAIT).toBe(one.replica.seq);
    expect(heard.map((change) => `${change.kind} ${change.id}`)).toEqual([
      `placement ${moved.tunnel.id}`,
      `move ${move}`,
      "residency global",
    ]);
    expect(two.replica.tunnel(kept.tunnel.id)).toEqual(kept.tunnel);
    await proxy.close();
  });

  test("a node with a replica starts and serves while the database is down, and heals alone", async () => {
    const lines: string[] = [];
    const logger = createLogger({ destination: { write: (line) => void lines.push(line) } });
    const first = await open();
    await registerShards(first.directory, "s1");
    const { tunnel, agentKey } = await first.directory.createTunnel({});
    await close(first);
    await server().stop();
    try {
      const down = await open({ dir: first.dir, logger });
      expect(down.replica.health.kind).toBe("behind");
      expect(down.replica.tunnel(tunnel.id)).toEqual(tunnel);
      expect(down.replica.keyByHash(parseKey(agentKey.reveal())?.hash ?? new Uint8Array())).toBeDefined();
      expect((await down.directory.getTunnel(tunnel.id)).id).toBe(tunnel.id);
      await expectCode(down.directory.createTunnel({}), "directory_unavailable");
      await expectCode(
        down.directory.renewLeases({ node: "n1", incarnation: "i1", shards: [] }),
        "directory_unavailable",
      );
      await expectCode(down.directory.listMoves({ limit: 1 }), "directory_unavailable");
      await expectCode(openNode(server().url(database)), "directory_unavailable");
      await server().start();
      await expect.poll(() => down.replica.health.kind, WAIT).toBe("current");
      await down.directory.createTunnel({});
      expect(lines.join("")).not.toContain("planted-database-password");
      expect(lines.join("")).toContain("directory-reached-again");
    } finally {
      await server()
        .start()
        .catch(() => {});
    }
  });

  test("a feed that hangs is behind, serves what it knows, and catches up", async () => {
    const one = await open();
    await registerShards(one.directory, "s1", "s2");
    const { tunnel, agentKey } = await one.directory.createTunnel({});
    const proxy = await startTcpProxy({ port: server().port });
    const two = await open({ url: server().url(database, proxy.port) });
    const hash = parseKey(agentKey.reveal())?.hash ?? new Uint8Array();
    proxy.setWire("frozen");
    const moved = await moveTo(one, tunnel.id, elsewhere(one, tunnel.id));
    const key = one.replica.keyByHash(hash)?.id ?? "";
    await one.directory.revokeKey(key);
    await two.replica.catchUp(50);
    expect(two.replica.placement(tunnel.id)).toEqual(tunnel.placement);
    expect(two.replica.keyByHash(hash)?.id).toBe(key);
    await expect.poll(() => two.replica.health.kind, WAIT).toBe("behind");
    proxy.setWire("flowing");
    await expect.poll(() => two.replica.placement(tunnel.id), WAIT).toEqual(moved.placement);
    await expect.poll(() => two.replica.keyByHash(hash), WAIT).toBeUndefined();
    await expect.poll(() => two.replica.health.kind, WAIT).toBe("current");
    await proxy.close();
  });

  describe("a directory that has gone back in time", () => {
    /** A node that has seen a move which its database then loses. */
    const loseMove = async () => {
      const node = await open();
      await registerShards(node.directory, "s1", "s2");
      const { tunnel } = await node.directory.createTunnel({});
      const other = await node.directory.createTunnel({});
      await copyDatabase(server(), database, `${database}_copy`);
      await expect
        .poll(() => moveTo(node, tunnel.id, elsewhere(node, tunnel.id)).catch(() => undefined), WAIT)
        .toBeDefined();
      const seen = node.replica.placement(tunnel.id);
      const lost = await node.directory.createTunnel({ name: "lost" });
      const highest = lost.tunnel.placement.revision;
      return { node, tenant: tunnel.id, other: other.tunnel.id, seen, lost: lost.tunnel.id, highest };
    };

    verifies(
      "R22",
      "a restore is noticed: nodes serve what they know and refuse changes until a fence",
      async () => {
        const { node, tenant, seen, lost, highest } = await loseMove();
        await restoreDatabase(server(), database, `${database}_copy`);
        await expect.poll(() => node.replica.health.kind, WAIT).toBe("regressed");
        expect(node.replica.placement(tenant)).toEqual(seen);
        expect(node.replica.tunnel(lost)).toBeDefined();
        await expectCode(node.directory.createTunnel({}), "directory_regressed");
        await expectCode(moveTo(node, tenant, "s1"), "directory_regressed");

        await close(node);
        const again = await open({ dir: node.dir });
        expect(again.replica.health.kind).toBe("regressed");
        await expectCode(again.directory.createTunnel({}), "directory_regressed");

        expect(readWatermark(node.dir)?.revision).toBe(highest);
        await fence(highest);
        await expect.poll(() => again.replica.health.kind, WAIT).toBe("current");
        expect(again.replica.placement(tenant)?.revision).toBeGreaterThan(highest);
        expect(again.replica.tunnel(lost)).toBeUndefined();
        expect((await again.directory.createTunnel({})).tunnel.placement.revision).toBeGreaterThan(highest);
        expect(await problems()).toEqual([]);
      },
    );

    test("a node that has seen more and lost its copy says so at its start, until a fence", async () => {
      const { node, tenant, highest } = await loseMove();
      await close(node);
      await restoreDatabase(server(), database, `${database}_copy`);
      for (const name of readdirSync(node.dir)) {
        if (name.startsWith("replica.sqlite")) rmSync(join(node.dir, name));
      }
      await expect(open({ dir: node.dir })).rejects.toMatchObject({
        name: "ConfigError",
        option: "directory",
        message: expect.stringContaining(`moor directory fence --above ${highest}`),
      });
      await fence(highest);
      const again = await open({ dir: node.dir });
      expect(again.replica.health.kind).toBe("current");
      expect(again.replica.placement(tenant)?.revision).toBeGreaterThan(highest);
    });

    verifies("R22", "lost writes are noticed also when others have written more since", async () => {
      const { node, tenant, other, seen, highest } = await loseMove();
      const { seq } = node.replica;
      await close(node);
      await restoreDatabase(server(), database, `${database}_copy`);
      const fresh = await open();
      while (fresh.replica.seq <= seq) await moveTo(fresh, other, elsewhere(fresh, other));
      expect(fresh.replica.placement(other)?.revision).toBeGreaterThan(highest);

      const again = await open({ dir: node.dir });
      expect(again.replica.health).toMatchObject({
        kind: "regressed",
        detail: expect.stringContaining("is another one"),
      });
      expect(again.replica.placement(tenant)).toEqual(seen);
      await fence();
      await expect.poll(() => again.replica.health.kind, WAIT).toBe("current");
      expect(again.replica.placement(tenant)).toEqual(fresh.replica.placement(tenant));
      expect(again.replica.placement(tenant)?.revision).toBeGreaterThan(seen?.revision ?? 0);
    });

    verifies("R22", "a fence below what a node has seen is not enough for that node", async () => {
      const { node, tenant } = await loseMove();
      const unheardOf = (node.replica.placement(tenant)?.revision ?? 0) + 60_000_000_000;
      node.replica.noteRevision(unheardOf);
      await expect.poll(() => node.replica.health.kind, WAIT).toBe("regressed");
      await fence();
      await node.replica.catchUp(5_000);
      expect(node.replica.health).toMatchObject({
        kind: "regressed",
        detail: expect.stringContaining(`--above ${unheardOf}`),
      });
      await fence(unheardOf);
      await expect.poll(() => node.replica.health.kind, WAIT).toBe("current");
      expect(node.replica.placement(tenant)?.revision).toBeGreaterThan(unheardOf);
    });
  });

  test("another residency, another node secret, another schema: refused, each by its name", async () => {
    const one = await open({ residency: "eu" });
    expect(one.replica.residency()).toBe("eu");
    await expect(open({ residency: "global" })).rejects.toMatchObject({
      name: "ConfigError",
      option: "residency",
    });
    const temp = await createTempDir("secret");
    const { openDirectory } = await import("../../packages/server/src/directory/open-directory.ts");
    await expect(
      openDirectory(
        { kind: "postgres", url: new Secret(server().url(database)), dir: temp.path },
        { runtime, logger: createSilentLogger(), nodeSecret: new Uint8Array(32).fill(9) },
      ),
    ).rejects.toMatchObject({ name: "ConfigError", option: "nodeSecretFile" });
    await temp.remove();
    await server().createDatabase(`${database}_bare`);
    await expect(open({ url: server().url(`${database}_bare`) })).rejects.toThrow(
      /run moor directory migrate/,
    );
    await runSql(
      server(),
      database,
      "insert into migrations (version, applied_at_ms, works_with) values (99, 1, 99)",
    );
    await expect(open()).rejects.toThrow(/schema version 99/);
    await runSql(server(), database, "update migrations set works_with = 2 where version = 99");
    expect((await open()).replica.residency()).toBe("eu");
  });

  test("a copy of a newer program is refused and left alone, whether or not the database is reachable", async () => {
    const node = await open();
    await close(node);
    const copy = () => new DatabaseSync(join(node.dir, "replica.sqlite"));
    const written = copy();
    written.exec("insert into migrations (version, applied_at_ms, works_with) values (99, 1, 99)");
    written.close();
    for (const url of [server().url(database), server().url(database, 1)]) {
      await expect(open({ dir: node.dir, url })).rejects.toThrow(/schema is version 99/);
    }
    const kept = copy();
    expect(kept.prepare("select max(version) as version from migrations").get()).toEqual({ version: 99 });
    kept.close();
  });

  test("a tunnel's id is enough to find it at once at any node", async () => {
    const [one, two] = [await open(), await open()];
    await registerShards(one.directory, "s1");
    const { tunnel } = await one.directory.createTunnel({});
    expect((await two.directory.getTunnel(tunnel.id)).id).toBe(tunnel.id);
    expect(parseTunnelId(tunnel.id)).toBe(tunnel.id);
  });
});
