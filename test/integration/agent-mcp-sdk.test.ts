// The agent in front of real MCP servers of the official SDKs: their own sessions, JSON and event-stream answers.

import { verifies } from "@moor/testkit";
import { expect, onTestFinished } from "vitest";
import { startMcpServerV1, startMcpServerV2 } from "../../packages/testkit/src/mcp-servers.ts";
import { command, commands, posted, startAgent, type PostedResponse } from "./agent-kit.ts";
import { startScriptedService, type ScriptedAnswer, type ScriptedService } from "@moor/testkit";

const INITIALIZE = JSON.stringify({
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
});

/** A service that hands out one command at a time. */
async function startCommandService(): Promise<{
  service: ScriptedService;
  readonly send: (jsonrpc: string, sessionId?: string) => Promise<PostedResponse[]>;
}> {
  const queue: ScriptedAnswer[] = [];
  let onQueued: (() => void) | undefined;
  let sent = 0;
  const service = await startScriptedService(async ({ path }) => {
    if (!path.endsWith("/poll")) return { kind: "answer", status: 200, body: '{"status":"ok"}' };
    while (queue.length === 0) await new Promise<void>((resolve) => (onQueued = resolve));
    return queue.shift() ?? { kind: "hang" };
  });
  onTestFinished(() => service.close());
  return {
    service,
    send: async (jsonrpc, sessionId) => {
      sent += 1;
      const id = `r${sent}`;
      const headers: Record<string, string[]> = { "MCP-Protocol-Version": ["2025-06-18"] };
      if (sessionId !== undefined) headers["Mcp-Session-Id"] = [sessionId];
      queue.push(commands(command({ id, jsonrpc, headers })));
      onQueued?.();
      const own = () =>
        service.responses.map(({ body }) => posted(body)).filter(({ request_id }) => request_id === id);
      const isFinal = ({ resp_type }: PostedResponse) => resp_type !== "jsonrpc_notify";
      await service.untilSeen(`the answer to ${jsonrpc.slice(0, 60)}`, () => own().some(isFinal));
      return own();
    },
  };
}

function call(name: string, args: Readonly<Record<string, unknown>>, progressToken?: string): string {
  const meta = progressToken === undefined ? {} : { _meta: { progressToken } };
  return JSON.stringify({
    jsonrpc: "2.0",
    id: "c",
    method: "tools/call",
    params: { name, arguments: args, ...meta },
  });
}

for (const [label, start] of [
  ["SDK 1.x with event streams", () => startMcpServerV1()],
  ["SDK 1.x with JSON answers", () => startMcpServerV1({ isJson: true })],
] as const) {
  verifies(
    ["T20", "T22"],
    `a session of ${label} opens, calls, notifies and ends through the agent`,
    async () => {
      const server = await start();
      onTestFinished(() => server.close());
      const { service, send } = await startCommandService();
      startAgent({ endpoint: service.origin, channels: [{ mcpUrl: server.url }] });
      const [opened] = await send(INITIALIZE);
      const [sessionId = ""] = opened?.resp_headers?.["Mcp-Session-Id"] ?? [];
      expect(sessionId).not.toBe("");
      const [acknowledged] = await send('{"jsonrpc":"2.0","method":"notifications/initialized"}', sessionId);
      expect(acknowledged).toMatchObject({ resp_type: "notify_ack", resp_code: 202 });
      const [listed] = await send('{"jsonrpc":"2.0","id":"l","method":"tools/list"}', sessionId);
      expect(JSON.stringify(listed?.resp_json?.result)).toContain("echo");
      const [echoed] = await send(call("echo", { text: "hello" }), sessionId);
      expect(JSON.stringify(echoed?.resp_json?.result)).toContain("hello");
      const [strange] = await send(call("echo", { text: "hello" }), "no-such-session");
      expect(strange?.resp_code).toBe(404);
    },
  );
}

verifies(
  ["T19", "T20"],
  "progress of a slow tool arrives as notifications, in order, before its result",
  async () => {
    for (const start of [startMcpServerV1, startMcpServerV2]) {
      const server = await start();
      onTestFinished(() => server.close());
      const { service, send } = await startCommandService();
      startAgent({ endpoint: service.origin, channels: [{ mcpUrl: server.url }] });
      const [opened] = await send(INITIALIZE);
      const sessionId = opened?.resp_headers?.["Mcp-Session-Id"]?.[0];
      const answers = await send(call("slow", { steps: 3, stepMs: 5 }, "p"), sessionId);
      expect(answers.map(({ resp_type }) => resp_type)).toEqual([
        "jsonrpc_notify",
        "jsonrpc_notify",
        "jsonrpc_notify",
        "jsonrpc_response",
      ]);
      const progress = answers
        .slice(0, 3)
        .map(({ resp_json }) => (resp_json?.params as { progress?: number } | undefined)?.progress);
      expect(progress).toEqual([1, 2, 3]);
    }
  },
);
