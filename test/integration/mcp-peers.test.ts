// Official MCP clients and servers of both SDK generations, in both protocol eras, through a node and an agent.

import {
  Client as ClientV2,
  StreamableHTTPClientTransport as TransportV2,
} from "@modelcontextprotocol/client";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as TransportV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, beforeAll, describe, expect } from "vitest";
import {
  createTunnel,
  startMoorAgent,
  startMoorDev,
  verifies,
  type CreatedTunnel,
  type MoorDev,
  type RunningProcess,
} from "@moor/testkit";
import { startMcpServerV1, startMcpServerV2, type McpServerHandle } from "@moor/testkit/mcp-servers";

const IDENTITY = { name: "peer-test", version: "1.0.0" };

interface UsedTools {
  readonly names: readonly string[];
  readonly progress: readonly number[];
  readonly slowText: string;
  readonly bigLength: number;
}

type UseTools = (url: string, key: string) => Promise<UsedTools>;

const textOf = (result: unknown): string =>
  (result as { content: { text?: string }[] }).content.map((part) => part.text ?? "").join("");

const useV1: UseTools = async (url, key) => {
  const client = new ClientV1(IDENTITY);
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  await client.connect(new TransportV1(new URL(url), { requestInit }));
  const progress: number[] = [];
  const { tools } = await client.listTools();
  const slow = { name: "slow", arguments: { steps: 3, stepMs: 1 } };
  const slowResult = await client.callTool(slow, undefined, {
    onprogress: (report) => progress.push(report.progress),
  });
  const big = await client.callTool({ name: "big", arguments: { bytes: 1_000_000 } });
  await client.close();
  return {
    names: tools.map((tool) => tool.name),
    progress,
    slowText: textOf(slowResult),
    bigLength: textOf(big).length,
  };
};

const useV2 =
  (mode: "legacy" | { pin: string }): UseTools =>
  async (url, key) => {
    const client = new ClientV2(IDENTITY, { versionNegotiation: { mode } });
    const requestInit = { headers: { authorization: `Bearer ${key}` } };
    await client.connect(new TransportV2(new URL(url), { requestInit }));
    const progress: number[] = [];
    const { tools } = await client.listTools();
    const slow = { name: "slow", arguments: { steps: 3, stepMs: 1 } };
    const slowResult = await client.callTool(slow, {
      onprogress: (report) => progress.push(report.progress),
    });
    const big = await client.callTool({ name: "big", arguments: { bytes: 1_000_000 } });
    await client.close();
    return {
      names: tools.map((tool) => tool.name),
      progress,
      slowText: textOf(slowResult),
      bigLength: textOf(big).length,
    };
  };

describe("official MCP peers through Moor", () => {
  let node: MoorDev;
  const opened: { readonly server: McpServerHandle; readonly agent: RunningProcess }[] = [];

  beforeAll(async () => {
    node = await startMoorDev();
  });

  afterAll(async () => {
    for (const { server, agent } of opened) {
      expect(await agent.stop()).toEqual({ kind: "exited", code: 0 });
      await server.close();
    }
    await node.stop();
  });

  async function expose(server: McpServerHandle): Promise<CreatedTunnel> {
    const tunnel = await createTunnel(node);
    opened.push({
      server,
      agent: await startMoorAgent({ endpoint: node.endpoint, tunnel, mcp: server.url }),
    });
    return tunnel;
  }

  const servers = {
    "SDK 1 with sessions over SSE": () => startMcpServerV1(),
    "SDK 1 with JSON answers": () => startMcpServerV1({ isJson: true }),
    "SDK 2": () => startMcpServerV2(),
  };
  const clients = { "SDK 1": useV1, "SDK 2, initialize era": useV2("legacy") };

  for (const [serverName, startServer] of Object.entries(servers)) {
    for (const [clientName, useTools] of Object.entries(clients)) {
      verifies(
        ["T9", "T11", "T15", "T20"],
        `client ${clientName} uses the tools of server ${serverName}`,
        async () => {
          const tunnel = await expose(await startServer());
          const used = await useTools(tunnel.connectorUrl, tunnel.connectorKey ?? "");
          expect(used).toMatchObject({ slowText: "3 steps done", bigLength: 1_000_000 });
          expect([...used.names].sort()).toEqual(["add", "big", "echo", "slow"]);
          expect(used.progress).toEqual(serverName.includes("JSON") ? [] : [1, 2, 3]);
        },
      );
    }
  }

  verifies(
    ["T15"],
    "a stateless client of the 2026-07-28 era discovers and calls without initialize",
    async () => {
      const tunnel = await expose(await startMcpServerV2());
      const used = await useV2({ pin: "2026-07-28" })(tunnel.connectorUrl, tunnel.connectorKey ?? "");
      expect(used).toMatchObject({ progress: [1, 2, 3], slowText: "3 steps done", bigLength: 1_000_000 });
    },
  );

  verifies(
    "T9",
    "a session ends for good: after DELETE the server answers 404 through the tunnel",
    async () => {
      const server = await startMcpServerV1();
      const tunnel = await expose(server);
      const client = new ClientV1(IDENTITY);
      const headers = { authorization: `Bearer ${tunnel.connectorKey}` };
      const transport = new TransportV1(new URL(tunnel.connectorUrl), { requestInit: { headers } });
      await client.connect(transport);
      expect(server.sessionCount()).toBe(1);
      const sessionId = transport.sessionId ?? "";
      await transport.terminateSession();
      expect(server.sessionCount()).toBe(0);
      await client.close();
      const answer = await fetch(tunnel.connectorUrl, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json", "mcp-session-id": sessionId },
        body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
      });
      expect(answer.status).toBe(404);
    },
  );
});
