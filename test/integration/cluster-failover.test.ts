// A database failover that lost the last writes: nodes notice, say so, serve on and refuse changes until the fence.

import {
  errorOf,
  faultsOf,
  moveRound,
  NO_FAULTS,
  runMoor,
  startCluster,
  startFleet,
  until,
  verifies,
  type Cluster,
  type PostgresServer,
} from "@moor/testkit";
import { Client } from "pg";
import { expect, onTestFinished } from "vitest";
import { describePostgres } from "./postgres-kit.ts";

const DATABASE = "failover";
const TUNNELS = 6;
const CALLS_PER_S = 40;

/** Runs statements one by one while nobody is connected to the database. */
async function withoutClients(server: PostgresServer, statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: server.url() });
  await client.connect();
  try {
    await client.query(`alter database ${DATABASE} allow_connections false`);
    await client.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [
      DATABASE,
    ]);
    for (const statement of statements) await client.query(statement);
    await client.query(`alter database ${DATABASE} allow_connections true`);
  } finally {
    await client.end();
  }
}

async function revisionsOf(cluster: Cluster, tenants: readonly string[]): Promise<number[]> {
  const { operator } = cluster.node("a");
  return Promise.all(tenants.map(async (id) => (await operator.where(id))?.revision ?? 0));
}

/** Waits until a move ordered at each node is answered with `code`; `moved` for one that is made. */
async function untilMovesEndAs(cluster: Cluster, tenant: string, code: string): Promise<void> {
  for (const node of cluster.nodes.filter(({ isBootstrap }) => !isBootstrap)) {
    await until(async () => {
      const here = (await node.operator.where(tenant))?.shard;
      const reply = await node.operator.move(tenant, here === "s1" ? "s2" : "s1");
      return (reply.status === 200 ? "moved" : errorOf(reply)?.code) === code;
    }, `a move at node ${node.id} to end as ${code}`);
  }
}

describePostgres("a failover that lost writes", (server) => {
  verifies(
    ["R12", "R22"],
    "is noticed; calls go on; changes wait for the fence; no revision comes back, and newer watermarks are served",
    async () => {
      const postgresUrl = await server().createDatabase(DATABASE);
      const cluster = await startCluster({
        directory: { postgresUrl },
        corrections: true,
        nodes: [
          { id: "a", shards: ["s1"] },
          { id: "b", shards: ["s2"] },
          { id: "edge", entryMode: "bootstrap" },
        ],
      });
      onTestFinished(() => cluster.stop());
      const tunnels = await cluster.createTunnels(TUNNELS);
      const ids = tunnels.map(({ id }) => id);
      const edge = cluster.node("edge");
      const fleet = await startFleet({ tunnels, endpoints: [edge.endpoint], mix: "mixed" });
      onTestFinished(() => fleet.stop());
      const run = await fleet.startRun({ callsPerS: CALLS_PER_S });

      await withoutClients(server(), [`create database ${DATABASE}_old template ${DATABASE}`]);
      await untilMovesEndAs(cluster, ids[0] ?? "", "moved");
      const lost = await moveRound({
        operators: [cluster.node("a").operator],
        tunnels: ids,
        shards: cluster.shards,
        times: 2,
        durationMs: 1_500,
      });
      expect(lost.refused).toEqual([]);
      const highest = Math.max(...(await revisionsOf(cluster, ids)));
      await withoutClients(server(), [
        `alter database ${DATABASE} rename to ${DATABASE}_lost`,
        `alter database ${DATABASE}_old rename to ${DATABASE}`,
      ]);
      await untilMovesEndAs(cluster, ids[0] ?? "", "directory_regressed");
      // What the nodes know stays what they go by: nobody is sent where a tunnel was before.
      expect(Math.max(...(await revisionsOf(cluster, ids)))).toBe(highest);

      const fence = await runMoor(["directory", "fence", "--data", cluster.node("a").dataDir], {
        env: { MOOR_DATABASE_URL: postgresUrl },
      });
      expect({ code: fence.code, stderr: fence.stderr }).toMatchObject({ code: 0 });
      await untilMovesEndAs(cluster, ids[0] ?? "", "moved");
      await until(
        async () => (await revisionsOf(cluster, ids)).every((revision) => revision > highest),
        "every placement to be stamped above what was seen",
      );
      const verdict = await run.finish();
      expect({ failures: verdict.failures, ...faultsOf(verdict) }).toEqual({ failures: [], ...NO_FAULTS });
      const after = await fleet.startRun({ callsPerS: CALLS_PER_S });
      await until(() => after.sentCount() >= CALLS_PER_S, "a second of calls");
      expect(faultsOf(await after.finish())).toEqual(NO_FAULTS);
    },
    120_000,
  );
});
