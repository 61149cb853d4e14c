// Nodes whose views of the directory are out of step: the feed of one is held back on its wire.

import {
  faultsOf,
  moveRound,
  NO_FAULTS,
  startFleet,
  until,
  verifies,
  type ClusterNode,
  type FleetTunnel,
} from "@moor/testkit";
import { expect, onTestFinished } from "vitest";
import { pollOnce, SHORT_PACE, startTestCluster, tunnelOn } from "./cluster-kit.ts";
import { describePostgres } from "./postgres-kit.ts";

/** How long a feed is held back. Milliseconds. */
const LAG_MS = 5_000;

async function pollStatus(endpoint: string, tunnel: FleetTunnel): Promise<number> {
  return (await pollOnce(endpoint, tunnel, { instance: "d".repeat(32) })).status;
}

/** What a caller's key is worth: 400 (no session named) while it works, 401 when it does not. */
function callerStatus(endpoint: string, tunnel: FleetTunnel): Promise<number> {
  return fetch(`${endpoint}/v1/mcp/${tunnel.id}`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${tunnel.connectorKey ?? ""}` },
  }).then(({ status }) => status);
}

/** Revisions each agent was corrected to, in the order its entry logged them. */
function correctionsByAgent(edge: ClusterNode): Map<string, number[]> {
  const byAgent = new Map<string, number[]>();
  for (const event of edge.events("poll-corrected")) {
    const agent = String(event["instance"]);
    byAgent.set(agent, [...(byAgent.get(agent) ?? []), Number(event["revision"])]);
  }
  return byAgent;
}

describePostgres("a feed that is held back", (server) => {
  verifies(
    ["R12", "R22", "R24"],
    "at a shard's node for 5 s while tunnels move: corrections strictly progress, nobody loops, no call fails",
    async () => {
      const cluster = await startTestCluster(
        {
          corrections: true,
          nodes: [
            { id: "a", shards: ["s1"] },
            { id: "b", shards: ["s2"], hasDatabaseProxy: true },
            { id: "edge", entryMode: "bootstrap" },
          ],
        },
        server(),
      );
      const edge = cluster.node("edge");
      const tunnels = await cluster.createTunnels(SHORT_PACE.tunnels);
      const fleet = await startFleet({ tunnels, endpoints: [edge.endpoint], mix: "mixed" });
      onTestFinished(() => fleet.stop());
      const run = await fleet.startRun({ callsPerS: SHORT_PACE.callsPerS });
      cluster.node("b").databaseProxy.setWire("frozen");
      const moves = await moveRound({
        operators: [cluster.node("a").operator],
        tunnels: tunnels.map(({ id }) => id),
        shards: cluster.shards,
        times: 2,
        durationMs: LAG_MS,
      });
      const verdict = await run.finish(); // While the feed is still held back.
      cluster.node("b").databaseProxy.setWire("flowing");
      expect({ failures: verdict.failures, ...faultsOf(verdict) }).toEqual({ failures: [], ...NO_FAULTS });
      expect(moves.refused).toEqual([]);
      const corrections = correctionsByAgent(edge);
      expect(corrections.size).toBe(tunnels.length);
      for (const revisions of corrections.values()) {
        expect(revisions).toEqual([...new Set(revisions)].toSorted((one, other) => one - other));
        expect(revisions.length).toBeLessThanOrEqual(1 + 2); // the first contact, and each move
      }
      await Promise.all(
        tunnels.map(async ({ id }) => {
          const placed = await cluster.node("a").operator.where(id);
          await cluster.untilPlaced(id, placed?.shard ?? "");
        }),
      );
    },
    90_000,
  );

  verifies(
    ["R22", "R24"],
    "at an entry with a replica: calls and polls find the new owner all the same",
    async () => {
      const cluster = await startTestCluster(
        {
          nodes: [
            { id: "a", shards: ["s1"] },
            { id: "b", shards: ["s2"] },
            { id: "edge", hasDatabaseProxy: true },
          ],
        },
        server(),
      );
      const tunnels = await cluster.createTunnels(SHORT_PACE.tunnels);
      const { endpoint, databaseProxy } = cluster.node("edge");
      const fleet = await startFleet({ tunnels, endpoints: [endpoint], mix: "mixed" });
      onTestFinished(() => fleet.stop());
      const run = await fleet.startRun({ callsPerS: SHORT_PACE.callsPerS });
      databaseProxy.setWire("frozen");
      const moves = await moveRound({
        operators: [cluster.node("a").operator, cluster.node("b").operator],
        tunnels: tunnels.map(({ id }) => id),
        shards: cluster.shards,
        times: 3,
        durationMs: LAG_MS,
      });
      const verdict = await run.finish(); // While the feed is still held back.
      databaseProxy.setWire("flowing");
      expect({ failures: verdict.failures, ...faultsOf(verdict) }).toEqual({ failures: [], ...NO_FAULTS });
      expect(moves.refused).toEqual([]);
      expect(fleet.agents.strayCorrectionCount() + fleet.agents.correctionCount()).toBe(0);
    },
    90_000,
  );

  verifies("T2", "a key revoked meanwhile stops working there as soon as the feed is back", async () => {
    const nodes = [
      { id: "a", shards: ["s1"] },
      { id: "edge", hasDatabaseProxy: true },
    ];
    const cluster = await startTestCluster({ nodes }, server());
    const tunnel = await tunnelOn(cluster, "s1");
    const edge = cluster.node("edge");
    const { operator } = cluster.node("a");
    expect([await pollStatus(edge.endpoint, tunnel), await callerStatus(edge.endpoint, tunnel)]).toEqual([
      204, 400,
    ]);
    edge.databaseProxy.setWire("frozen");
    const { keys } = await operator.demand<{ keys: readonly { id: string }[] }>(
      "GET",
      `/v1/keys?tunnel=${tunnel.id}`,
    );
    for (const { id } of keys) await operator.demand("DELETE", `/v1/keys/${id}`);
    expect(await pollStatus(cluster.node("a").endpoint, tunnel)).toBe(401);
    edge.databaseProxy.setWire("flowing");
    const statuses = () =>
      Promise.all([pollStatus(edge.endpoint, tunnel), callerStatus(edge.endpoint, tunnel)]);
    await until(
      async () => (await statuses()).every((status) => status === 401),
      "both keys to stop working",
    );
  });
});
