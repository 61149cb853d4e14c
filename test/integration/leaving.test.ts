// SIGTERM of a node that is busy: what it holds it ends well.

import { expect, onTestFinished } from "vitest";
import {
  createTunnel,
  startLedgerServer,
  startMoorAgent,
  startMoorDev,
  until,
  verifies,
  within,
} from "@moor/testkit";

const CALLS = 40;
const SLOTS = 4;

verifies(
  ["T4", "T11"],
  "a node told to stop finishes every call it holds, handed out or still queued, each executed once",
  async () => {
    const ledger = await startLedgerServer();
    const node = await startMoorDev();
    const tunnel = await createTunnel(node);
    const agent = await startMoorAgent({
      endpoint: node.endpoint,
      tunnel,
      mcp: ledger.url,
      args: [`--concurrency=${SLOTS}`],
    });
    onTestFinished(async () => {
      await agent.kill();
      await node.kill();
      await ledger.close();
    });
    ledger.answerWith(() => ({ kind: "result", rawResult: "{}", delayMs: 100 }));

    const calls = Array.from({ length: CALLS }, async (_, at) => {
      const params = { name: "work", arguments: { call: `call-${at}` } };
      const answer = await fetch(tunnel.connectorUrl, {
        method: "POST",
        headers: { authorization: `Bearer ${tunnel.connectorKey}`, "content-type": "application/json" },
        body: JSON.stringify({ jsonrpc: "2.0", id: at, method: "tools/call", params }),
      });
      return [answer.status, ((await answer.json()) as { id?: unknown }).id];
    });
    await until(callsHeld(node, CALLS), "the node to hold every call");
    node.process.signal("SIGTERM");
    const answers = await within(Promise.all(calls), "every call to end");
    expect(answers).toEqual(answers.map((_, at) => [200, at]));
    expect(ledger.entries).toHaveLength(CALLS);
    for (let at = 0; at < CALLS; at += 1) expect(ledger.executions(`call-${at}`)).toBe(1);
    expect(await within(node.process.ended, "the node to end")).toEqual({ kind: "exited", code: 0 });
  },
);

/** Whether the node holds `wanted` calls; true as well once some of them are through. */
function callsHeld(
  node: { readonly operatorUrl: string; readonly operatorToken: string },
  wanted: number,
): () => Promise<boolean> {
  return async () => {
    const headers = { authorization: `Bearer ${node.operatorToken}` };
    const text = await (await fetch(`${node.operatorUrl}/metrics`, { headers })).text();
    const count = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1]);
    return count("moor_calls_held") + count('moor_calls_ended_total\\{outcome="answered"\\}') === wanted;
  };
}
