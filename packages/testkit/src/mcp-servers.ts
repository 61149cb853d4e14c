// Real MCP servers over Streamable HTTP, written with the official SDK: generation 1, with sessions, and generation 2,
// which serves requests of its own era and `initialize`-era ones alike, without sessions.
//
// Not exported by the package root: the SDKs are slow to load, and most tests need none.

import { randomUUID } from "node:crypto";
import { McpServer as McpServerV1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { toNodeHandler, type NodeIncomingMessageLike } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { startHttpHost, type HttpHost } from "./http-host.ts";
import { TOOLS } from "./mcp-tools.ts";

export interface McpServerHandle {
  /** Where to POST, e.g. `http://127.0.0.1:40002/mcp`. */
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

const SERVER_INFO = { name: "moor-testkit", version: "1.0.0" } as const;

/** A server of SDK 1.x that gives each client a session (`Mcp-Session-Id`) and answers by SSE, or by JSON if asked. */
export async function startMcpServerV1(
  options: { readonly isJson?: boolean; readonly port?: number } = {},
): Promise<McpServerHandle & { readonly sessionCount: () => number }> {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const openSession = async () => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: options.isJson === true,
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    await createServerV1().connect(transport);
    return transport;
  };
  const host = await startHttpHost((request, response) => {
    const id = request.headers["mcp-session-id"];
    const known = typeof id === "string" ? sessions.get(id) : undefined;
    if (id !== undefined && known === undefined) {
      response.writeHead(404).end();
      return;
    }
    void (async () => (known ?? (await openSession())).handleRequest(request, response))();
  }, options.port);
  return { ...handleOf(host), sessionCount: () => sessions.size };
}

/** A server of SDK 2.x: stateless, both eras of the protocol, JSON unless a tool reports progress. */
export async function startMcpServerV2(options: { readonly port?: number } = {}): Promise<McpServerHandle> {
  const handler = createMcpHandler(() => createServerV2());
  const handle = toNodeHandler(handler);
  const host = await startHttpHost((request, response) => {
    void handle(request as NodeIncomingMessageLike, response);
  }, options.port);
  return {
    ...handleOf(host),
    close: async () => {
      await handler.close();
      await host.close();
    },
  };
}

function handleOf(host: HttpHost): McpServerHandle {
  return { url: `${host.origin}/mcp`, port: host.port, close: () => host.close() };
}

function createServerV1(): McpServerV1 {
  const server = new McpServerV1(SERVER_INFO);
  for (const { name, description, inputSchema, run } of TOOLS) {
    server.registerTool(name, { description, inputSchema }, async (input: unknown, extra) => {
      const progressToken = extra._meta?.progressToken;
      const text = await run(input, async (progress, total, message) => {
        if (progressToken === undefined) return;
        const params = { progressToken, progress, total, message };
        await extra.sendNotification({ method: "notifications/progress", params });
      });
      return { content: [{ type: "text", text }] };
    });
  }
  return server;
}

function createServerV2(): McpServer {
  const server = new McpServer(SERVER_INFO);
  for (const { name, description, inputSchema, run } of TOOLS) {
    server.registerTool(name, { description, inputSchema }, async (input: unknown, context) => {
      const progressToken = context.mcpReq._meta?.progressToken;
      const text = await run(input, async (progress, total, message) => {
        if (progressToken === undefined) return;
        const params = { progressToken, progress, total, message };
        await context.mcpReq.notify({ method: "notifications/progress", params });
      });
      return { content: [{ type: "text", text }] };
    });
  }
  return server;
}
