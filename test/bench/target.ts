// The bench's MCP server: answers every JSON-RPC request with the same small result, as fast as node:http can.
// Prints its port.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const RESULT = '"result":{"content":[{"type":"text","text":"5"}]}}';

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const { id } = JSON.parse(Buffer.concat(chunks).toString("utf8")) as { id?: number };
    if (id === undefined) response.writeHead(202).end();
    else {
      response.writeHead(200, { "Content-Type": "application/json" });
      response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${RESULT}`);
    }
  });
});
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", 4096, () => console.log((server.address() as AddressInfo).port));
