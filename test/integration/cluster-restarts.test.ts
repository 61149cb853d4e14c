// A node that starts while the database is away.

import { startPlainAgent, until, verifies, within } from "@moor/testkit";
import { expect, onTestFinished } from "vitest";
import { callOnce, startGatedServer, startTestCluster, tunnelOn } from "./cluster-kit.ts";
import { describePostgres } from "./postgres-kit.ts";

describePostgres("a node that starts again", (server) => {
  verifies(
    "R22",
    "while the database is away it serves from its replica, and is registered when it is back",
    async () => {
      const cluster = await startTestCluster(
        {
          nodes: [
            { id: "a", shards: ["s1"] },
            { id: "b", shards: ["s2"], hasDatabaseProxy: true },
          ],
        },
        server(),
      );
      const [a, b] = [cluster.node("a"), cluster.node("b")];
      const tunnel = await tunnelOn(cluster, "s2");
      const target = await startGatedServer(true);
      const agent = startPlainAgent({ endpoint: a.endpoint, tunnel, mcp: target.url });
      onTestFinished(() => agent.stop());
      await within(agent.connected, "the agent to be connected");
      expect(await callOnce(a.endpoint, tunnel)).toMatchObject({ kind: "answered" });

      b.databaseProxy.setAccepting(false);
      b.databaseProxy.reset();
      await b.kill();
      await b.start();
      expect(b.events("node-not-registered")).not.toHaveLength(0);
      // Its own tunnel, called at both nodes: the call waits at most until the nodes have found each other again.
      for (const node of [a, b])
        expect(await callOnce(node.endpoint, tunnel)).toMatchObject({ kind: "answered" });
      const refused = await b.operator.request("POST", `/v1/tunnels/${tunnel.id}`, { description: "x" });
      expect(refused.status).toBe(503);

      b.databaseProxy.setAccepting(true);
      await until(() => b.events("node-registered").length > 0, "the node to be registered");
      expect(await callOnce(b.endpoint, tunnel)).toMatchObject({ kind: "answered" });
    },
    120_000,
  );
});
