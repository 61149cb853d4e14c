// A small private MCP server, as anybody would write it with the official SDK. It knows nothing of Moor.
// Run by the demo as a process of its own; `node demo/mcp-server.ts` serves it by itself. Prints its URL when it listens.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { toNodeHandler, type NodeIncomingMessageLike } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

/** Time one crate takes. Milliseconds: long enough to watch progress arrive. */
const CRATE_MS = 300;

function createHarbour(): McpServer {
  const server = new McpServer({ name: "harbour", version: "1.0.0" });
  server.registerTool(
    "list_berths",
    { description: "Which ships lie at which berth", inputSchema: z.object({}) },
    async () => ({ content: [{ type: "text", text: "berth 1: Ada; berth 2: free; berth 3: Grace" }] }),
  );
  server.registerTool(
    "load_ship",
    {
      description: "Loads crates, one after the other, and reports each",
      inputSchema: z.object({ ship: z.string(), crates: z.number().int().min(1).max(50) }),
    },
    async ({ ship, crates }, context) => {
      const progressToken = context.mcpReq._meta?.progressToken;
      for (let crate = 1; crate <= crates; crate += 1) {
        await pause(CRATE_MS);
        if (progressToken === undefined) continue;
        const message = `crate ${crate} of ${crates} is aboard`;
        const params = { progressToken, progress: crate, total: crates, message };
        await context.mcpReq.notify({ method: "notifications/progress", params });
      }
      return { content: [{ type: "text", text: `${ship} is loaded with ${crates} crates` }] };
    },
  );
  return server;
}

const handle = toNodeHandler(createMcpHandler(createHarbour));
const http = createServer((request, response) => void handle(request as NodeIncomingMessageLike, response));
http.listen(0, "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`);
});
process.on("SIGTERM", () => {
  http.close();
  http.closeAllConnections();
});
