// SIGTERM of a node under load: what it holds is finished, what waits is let go, and the fleet serves on.

import { HEADER } from "@moor/protocol";
import {
  faultsOf,
  NO_FAULTS,
  startFleet,
  startPlainAgent,
  startTcpBalancer,
  until,
  verifies,
  within,
} from "@moor/testkit";
import { expect, onTestFinished } from "vitest";
import { callOnce, SHORT_PACE, startGatedServer, startTestCluster, tunnelOn } from "./cluster-kit.ts";
import { describePostgres } from "./postgres-kit.ts";

const HELD_CALLS = 10;

describePostgres("a node that leaves under load", (server) => {
  verifies(
    ["T4", "R25"],
    "its polls end 204 with Connection: close, the calls it holds finish, it exits 0, and no call elsewhere fails",
    async () => {
      const nodes = [{ id: "a", shards: ["s1"] }, { id: "leaving" }, { id: "edge" }];
      const cluster = await startTestCluster({ nodes }, server());
      const leaving = cluster.node("leaving");
      const { endpoint } = leaving;
      const others = [cluster.node("a").endpoint, cluster.node("edge").endpoint];
      const tunnels = await cluster.createTunnels(SHORT_PACE.tunnels);
      // The agents' one endpoint leads to the leaving node as long as that accepts connections, then to another.
      const balancer = await startTcpBalancer([endpoint, ...others].map((url) => Number(new URL(url).port)));
      onTestFinished(() => balancer.close());
      const agentEndpoints = [balancer.origin];
      const fleet = await startFleet({ tunnels, endpoints: others, agentEndpoints, mix: "mixed" });
      onTestFinished(() => fleet.stop());
      const run = await fleet.startRun({ callsPerS: SHORT_PACE.callsPerS });

      const gated = await tunnelOn(cluster, "s1");
      const mcp = await startGatedServer();
      const agent = startPlainAgent({ endpoint: others[0] ?? "", tunnel: gated, mcp: mcp.url });
      onTestFinished(() => agent.stop());
      await agent.connected;
      const held = Array.from({ length: HELD_CALLS }, (_, at) =>
        callOnce(endpoint, gated, { form: at % 2 === 0 ? "json" : "stream" }),
      );
      await mcp.untilExecuted(HELD_CALLS);
      const idle = await tunnelOn(cluster, "s1");
      const poll = fetch(`${endpoint}/v1/tunnels/${idle.id}/poll?timeout_ms=25000`, {
        headers: { authorization: `Bearer ${idle.agentKey}`, [HEADER.instanceId]: "c".repeat(32) },
      });
      const isSeen = async () =>
        (await leaving.operator.demand("GET", `/v1/tunnels/${idle.id}`))["seen"] === true;
      await until(isSeen, "the poll to wait");

      const { process: running } = leaving;
      running.signal("SIGTERM");
      const ended = await within(poll, "the waiting poll to end");
      expect([ended.status, ended.headers.get("connection")]).toEqual([204, "close"]);
      await expectNotReady(endpoint);
      mcp.open();
      const endings = await within(Promise.all(held), "the calls it held");
      expect(endings.map(({ kind }) => kind)).toEqual(Array<string>(HELD_CALLS).fill("answered"));
      expect(await within(running.ended, "the leaving node to end")).toEqual({ kind: "exited", code: 0 });
      const verdict = await run.finish();
      // A notification that an agent posts in the moment a port closes is lost (T19); its call never is.
      const { lostNotifications } = verdict;
      const expected = { failures: [], ...NO_FAULTS, lostNotifications };
      expect({ failures: verdict.failures, ...faultsOf(verdict) }).toEqual(expected);
      expect(new Set(mcp.executed).size).toBe(HELD_CALLS);
      expect(leaving.events().filter(({ level }) => level === "error")).toEqual([]);
    },
    90_000,
  );
});

/** A balancer that asks is told to go elsewhere: not ready, or already not listening for newcomers. */
async function expectNotReady(endpoint: string): Promise<void> {
  const status = await fetch(`${endpoint}/readyz`).then(
    (answer) => answer.status,
    () => "refused",
  );
  expect([503, "refused"]).toContain(status);
}
