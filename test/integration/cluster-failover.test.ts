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
} from "@moor/testkit";
import { expect, onTestFinished } from "vitest";
import { revisionsOf } from "../prove/key-rotation-scenario.ts";
import { copyDatabase, describePostgres, restoreDatabase } from "./postgres-kit.ts";

const DATABASE = "failover";
const TUNNELS = 6;
/** An open loop: a machine that is busy with other tests must keep up with it. */
const CALLS_PER_S = 15;

/** Waits until a move ordered at each node is answered with `code`; `moved` for one that is made and seen by all. */
async function untilMovesEndAs(cluster: Cluster, tenant: string, code: string): Promise<void> {
  for (const node of cluster.nodes.filter(({ isBootstrap }) => !isBootstrap)) {
    const to = await until(async () => {
      const here = (await node.operator.where(tenant))?.shard;
      const target = here === "s1" ? "s2" : "s1";
      const reply = await node.operator.move(tenant, target);
      return (reply.status === 200 ? "moved" : errorOf(reply)?.code) === code ? target : undefined;
    }, `a move at node ${node.id} to end as ${code}`);
    // A node that has not heard of it yet would order the next move to where the tenant is.
    if (code === "moved") await cluster.untilPlaced(tenant, to);
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

      await copyDatabase(server(), DATABASE, `${DATABASE}_old`);
      await untilMovesEndAs(cluster, ids[0] ?? "", "moved");
      const lost = await moveRound({
        operators: [cluster.node("a").operator],
        tunnels: ids,
        shards: cluster.shards,
        times: 2,
        durationMs: 1_500,
      });
      expect(lost.refused).toEqual([]);
      const highest = Math.max(...(await revisionsOf(cluster.node("a").operator, ids)));
      await restoreDatabase(server(), DATABASE, `${DATABASE}_old`);
      await untilMovesEndAs(cluster, ids[0] ?? "", "directory_regressed");
      // What the nodes know stays what they go by: nobody is sent where a tunnel was before.
      expect(Math.max(...(await revisionsOf(cluster.node("a").operator, ids)))).toBe(highest);

      const fence = await runMoor(["directory", "fence", "--data", cluster.node("a").dataDir], {
        env: { MOOR_DATABASE_URL: postgresUrl },
      });
      expect({ code: fence.code, stderr: fence.stderr }).toMatchObject({ code: 0 });
      await untilMovesEndAs(cluster, ids[0] ?? "", "moved");
      await until(
        async () =>
          (await revisionsOf(cluster.node("a").operator, ids)).every((revision) => revision > highest),
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
