// Power cuts: of the node, and of the agent.

import { afterEach, describe, expect } from "vitest";
import {
  createTunnel,
  runMoor,
  startLedgerServer,
  startMoorAgent,
  startMoorDev,
  until,
  verifies,
  within,
  type CreatedTunnel,
  type LedgerServer,
  type MoorDev,
  type RunningProcess,
} from "@moor/testkit";

const REQUEST = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
/** T12: an agent that is gone counts as connected this long; some slack for a slow machine. Milliseconds. */
const LAPSE_DEADLINE_MS = 40_000;

describe("kill -9", () => {
  const running: { kill(): Promise<unknown> }[] = [];
  let ledger: LedgerServer | undefined;

  afterEach(async () => {
    for (const program of running.splice(0)) await program.kill();
    await ledger?.close();
    ledger = undefined;
  });

  async function start(options: Parameters<typeof startMoorDev>[0] = {}): Promise<MoorDev> {
    const node = await startMoorDev(options);
    running.push(node);
    return node;
  }

  async function startAgent(node: MoorDev, tunnel: CreatedTunnel): Promise<RunningProcess> {
    ledger ??= await startLedgerServer();
    const agent = await startMoorAgent({ endpoint: node.endpoint, tunnel, mcp: ledger.url });
    running.push(agent);
    return agent;
  }

  function call(tunnel: CreatedTunnel, url = tunnel.connectorUrl): Promise<Response> {
    return fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${tunnel.connectorKey}`, "content-type": "application/json" },
      body: REQUEST,
    });
  }

  async function untilSeen(node: MoorDev, tunnel: CreatedTunnel): Promise<void> {
    await until(async () => {
      const shown = await runMoor(["tunnel", "show", tunnel.id, "--json", `--data=${node.dataDir}`]);
      return (JSON.parse(shown.stdout) as { seen?: boolean }).seen === true;
    }, "the directory to know that an agent was seen");
  }

  async function hasNoPoll({ operatorUrl, operatorToken }: MoorDev): Promise<boolean> {
    const headers = { authorization: `Bearer ${operatorToken}` };
    const text = await (await fetch(`${operatorUrl}/metrics`, { headers })).text();
    return /^moor_polls_waiting 0$/m.test(text);
  }

  async function errorCode(answer: Response): Promise<string> {
    return ((await answer.json()) as { error: { code: string } }).error.code;
  }

  verifies(
    ["T1", "T7"],
    "of the node: tunnels and keys are there again, agents come back, no caller hangs",
    async () => {
      ledger = await startLedgerServer();
      const node = await start();
      const tunnel = await createTunnel(node);
      await startAgent(node, tunnel);
      const second = JSON.parse(
        (
          await runMoor([
            "key",
            "create",
            "--json",
            "--kind=agent",
            `--tunnel=${tunnel.id}`,
            `--data=${node.dataDir}`,
          ])
        ).stdout,
      ) as { id: string; key: string };
      expect((await call(tunnel)).status).toBe(200);
      await untilSeen(node, tunnel);
      ledger.answerWith(() => ({ kind: "hang" }));
      const pending = call(tunnel).then(
        () => "answered",
        () => "cut",
      );
      await until(() => ledger?.entries.length === 2, "the second call to reach the server");
      await node.kill();
      expect(await within(pending, "the caller of the killed node")).toBe("cut");
      ledger.answerWith(() => undefined);

      const port = Number(new URL(node.endpoint).port);
      const again = await start({ dataDir: node.dataDir, port });
      const answer = await within(call(tunnel), "a call right after the restart", LAPSE_DEADLINE_MS);
      expect(answer.status).toBe(200);
      const shown = await runMoor(["tunnel", "show", tunnel.id, "--json", `--data=${again.dataDir}`]);
      expect(JSON.parse(shown.stdout)).toMatchObject({ id: tunnel.id });
      const metadata = await fetch(`${again.endpoint}/v1/tunnels/${tunnel.id}`, {
        headers: { authorization: `Bearer ${second.key}` },
      });
      expect(metadata.status).toBe(200);
    },
    90_000,
  );

  verifies(
    "T12",
    "of the agent: new calls fail as not connected within 20 s, and a restart heals",
    async () => {
      const node = await start();
      const tunnel = await createTunnel(node);
      const agent = await startAgent(node, tunnel);
      expect((await call(tunnel)).status).toBe(200);
      await agent.kill();
      // Until the node has heard of it, a call would be written to the dead poll, and count as handed out (T4).
      await until(() => hasNoPoll(node), "the node to know that the poll is gone");
      // Queued while the lost agent still counts as connected, refused when it does no more.
      const queued = await within(call(tunnel), "the call to the lost agent", LAPSE_DEADLINE_MS);
      expect([queued.status, await errorCode(queued)]).toEqual([503, "tunnel_client_not_connected"]);
      const fresh = await call(tunnel);
      expect([fresh.status, await errorCode(fresh)]).toEqual([503, "tunnel_client_not_connected"]);
      await startAgent(node, tunnel);
      expect((await call(tunnel)).status).toBe(200);
    },
    90_000,
  );

  verifies(
    "T12",
    "a node that restarts holds calls for agents on their way back, and refuses when none comes",
    async () => {
      const node = await start();
      const tunnel = await createTunnel(node);
      const agent = await startAgent(node, tunnel);
      expect((await call(tunnel)).status).toBe(200);
      await untilSeen(node, tunnel);
      await agent.kill();
      await node.kill();
      const again = await start({ dataDir: node.dataDir, port: Number(new URL(node.endpoint).port) });
      const answer = await within(call(tunnel), "the call to end by itself", LAPSE_DEADLINE_MS);
      expect([answer.status, await errorCode(answer)]).toEqual([503, "tunnel_client_not_connected"]);
      expect(again.endpoint).toBe(node.endpoint);
    },
    90_000,
  );
});
