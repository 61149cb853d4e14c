// Sessions that live in one agent process stay with it when their tunnel moves.

import { HEADER } from "@moor/protocol";
import { startLedgerServer, startPlainAgent, verifies, type FleetTunnel } from "@moor/testkit";
import { expect, onTestFinished } from "vitest";
import { place, startTestCluster, tunnelOn } from "./cluster-kit.ts";
import { describePostgres } from "./postgres-kit.ts";

const PINNED = '{"version":1,"channels":[{"name":"main","proc_affinity":true}]}';
const CALLS = 12;

async function startPinnedAgent(endpoint: string, tunnel: FleetTunnel) {
  const ledger = await startLedgerServer();
  const agent = startPlainAgent({
    endpoint,
    tunnel,
    mcp: ledger.url,
    headers: { [HEADER.serverInfo]: PINNED },
  });
  onTestFinished(async () => {
    await agent.stop();
    await ledger.close();
  });
  await agent.connected;
  return ledger;
}

async function post(
  endpoint: string,
  tunnel: FleetTunnel,
  method: string,
  session?: string,
): Promise<Response> {
  return fetch(`${endpoint}/v1/mcp/${tunnel.id}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${tunnel.connectorKey ?? ""}`,
      "content-type": "application/json",
      accept: "application/json",
      ...(session === undefined ? {} : { "mcp-session-id": session }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: {} }),
  });
}

describePostgres("a channel with proc_affinity", (server) => {
  verifies(
    "T8",
    "its session stays with its agent process over moves, from whichever entry it is called",
    async () => {
      const nodes = [{ id: "a", shards: ["s1"] }, { id: "b", shards: ["s2"] }, { id: "edge" }];
      const cluster = await startTestCluster({ nodes }, server());
      const tunnel = await tunnelOn(cluster, "s1");
      const ledgers = [
        await startPinnedAgent(cluster.node("a").endpoint, tunnel),
        await startPinnedAgent(cluster.node("edge").endpoint, tunnel),
      ];
      const entries = cluster.nodes.map(({ endpoint }) => endpoint);
      const opened = await post(entries[0] ?? "", tunnel, "initialize");
      const session = opened.headers.get("mcp-session-id") ?? "";
      expect(session).not.toBe("");
      const home = ledgers.findIndex(({ entries: seen }) =>
        seen.some(({ method }) => method === "initialize"),
      );
      for (const shard of ["s1", "s2", "s1"]) {
        await place(cluster, tunnel, shard);
        for (let call = 0; call < CALLS; call += 1) {
          const answer = await post(entries[call % entries.length] ?? "", tunnel, "tools/list", session);
          expect(answer.status).toBe(200);
        }
      }
      const lists = ledgers.map(
        ({ entries: seen }) => seen.filter(({ method }) => method === "tools/list").length,
      );
      expect(lists[home]).toBe(3 * CALLS);
      expect(lists[1 - home]).toBe(0);
      // The id that callers hold is ours: the target, which gave none, never sees it.
      expect(ledgers[home]?.entries.filter(({ headers }) => headers["mcp-session-id"] !== undefined)).toEqual(
        [],
      );
    },
  );
});
