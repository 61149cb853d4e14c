// Changes of a shared directory whose connection, or whose database, is lost in the middle.

import { createNodeRuntime } from "@moor/runtime";
import { startTcpProxy, until, verifies, type TcpProxy } from "@moor/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { MoveOrder } from "../../packages/server/src/directory/directory.ts";
import { mintMoveId } from "../../packages/server/src/directory/operations/move-operations.ts";
import { expectCode, registerShards, shardId } from "../../packages/server/test/directory-contract.ts";
import { createMigrated, describePostgres, openNode, runSql, type TestNode } from "./postgres-kit.ts";

const runtime = createNodeRuntime();
/** Limits of seconds are tested in less. */
const patience = { answerMsMax: 2_500, lookUpMsMax: 2_000 } as const;
const WAIT = { timeout: 20_000, interval: 20 } as const;

/** Makes every commit of a move wait in the middle: the moment that a test cuts. */
const SLOW_COMMIT = `
create function wait_a_little() returns trigger language plpgsql as $$
  begin perform pg_sleep(1); return null; end $$;
create constraint trigger slow after insert on moves deferrable initially deferred
  for each row execute function wait_a_little();`;

describePostgres("a move whose answer is lost", (server) => {
  let database: string;
  let proxy: TcpProxy;
  let node: TestNode;
  let order: MoveOrder & { readonly actor: string };

  beforeEach(async () => {
    database = await createMigrated(server());
    proxy = await startTcpProxy({ port: server().port });
    node = await openNode(server().url(database, proxy.port), { patience });
    await registerShards(node.directory, "s1", "s2");
    const { tunnel } = await node.directory.createTunnel({});
    const to = shardId(tunnel.placement.shard === "s1" ? "s2" : "s1");
    order = { moveId: mintMoveId(runtime), tenant: tunnel.id, to, actor: "tester" };
    await runSql(server(), database, SLOW_COMMIT);
  });
  afterEach(async () => {
    await node.remove();
    await proxy.close();
  });

  const untilCommitting = () =>
    until(async () => {
      const waiting = await runSql(
        server(),
        database,
        "select pid from pg_stat_activity where query = 'commit' and wait_event = 'PgSleep'",
      );
      return waiting.length > 0;
    }, "the commit to be under way");
  const storedMoves = () => runSql(server(), database, "select id, tenant from moves");

  verifies("R22", "the connection breaks during the commit: the move is found to be made, once", async () => {
    const moving = node.directory.moveTenant(order);
    await untilCommitting();
    proxy.reset();
    const made = await moving;
    expect(made).toMatchObject({ id: order.moveId, to: order.to });
    expect(node.replica.placement(order.tenant)).toEqual(made.placement);
    expect(await node.directory.moveTenant(order)).toEqual(made);
    expect(await storedMoves()).toEqual([{ id: order.moveId, tenant: order.tenant }]);
  });

  verifies(
    "R22",
    "the database dies during the commit and comes back: nothing was changed, and it says so",
    async () => {
      const before = node.replica.placement(order.tenant);
      const moving = node.directory.moveTenant(order);
      const refused = expect(moving).rejects.toMatchObject({
        code: "directory_unavailable",
        message: expect.stringContaining("nothing was changed"),
        data: undefined,
      });
      await untilCommitting();
      await server().kill();
      await server().start();
      await refused;
      expect(await node.directory.findMove(order.moveId)).toBeUndefined();
      expect(await storedMoves()).toEqual([]);
      expect(node.replica.placement(order.tenant)).toEqual(before);
      // The same order may simply be given again.
      expect(await node.directory.moveTenant(order)).toMatchObject({ id: order.moveId });
    },
  );

  test("the database dies during the commit and stays away: the outcome is unknown until it is read back", async () => {
    const moving = node.directory.moveTenant(order);
    const unknown = expect(moving).rejects.toMatchObject({
      code: "directory_unavailable",
      message: expect.stringContaining("read it back"),
      data: { outcome: "unknown" },
    });
    await untilCommitting();
    await server().kill();
    await unknown;
    await expectCode(node.directory.findMove(order.moveId), "directory_unavailable");
    await server().start();
    await expect.poll(() => node.directory.findMove(order.moveId).catch(() => "down"), WAIT).toBeUndefined();
    await expect.poll(() => node.replica.health.kind, WAIT).toBe("current");
  });

  test("a database that hangs refuses a change in time, and the next change is made when it goes on", async () => {
    server().freeze();
    await expectCode(node.directory.createTunnel({}), "directory_unavailable");
    await expectCode(
      node.directory.renewLeases({ node: "n1", incarnation: "i1", shards: [] }),
      "directory_unavailable",
    );
    server().thaw();
    await expect
      .poll(
        () =>
          node.directory.createTunnel({}).then(
            (made) => made.tunnel.access,
            () => "down",
          ),
        WAIT,
      )
      .toBe("key");
  });

  test("a database that restarts between changes costs none of them", async () => {
    const made = await node.directory.createTunnel({ name: "before" });
    await server().stop();
    await server().start();
    const after = await node.directory.createTunnel({ name: "after" });
    expect(after.tunnel.placement.revision).toBeGreaterThan(made.tunnel.placement.revision);
    expect((await node.directory.listTunnels({ limit: 10 })).items).toHaveLength(3);
  });

  test("a change of one node waits for the one that another is committing", async () => {
    const moving = node.directory.moveTenant(order);
    await untilCommitting();
    const other = await openNode(server().url(database));
    const { tunnel } = await other.directory.createTunnel({});
    const made = await moving;
    expect(tunnel.placement.revision).toBeGreaterThan(made.revision);
    await other.remove();
  });
});
