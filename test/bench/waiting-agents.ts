// The bench's agents: one connection each, one poll waiting on it, asked again when it ends. Prints "waiting N" once N
// polls have been sent. stdin: a line "path key" for each agent; port in $BENCH_PORT. It ends when it is killed.

import { createConnection, type Socket } from "node:net";
import { createInterface } from "node:readline";

/** How many connections are dialled at a time: a fleet does not arrive in one instant. */
const DIAL_BATCH = 200;

const instanceId = "0123456789abcdef0123456789abcdef";

/** The poll as an agent of ours sends it (T16), so that both servers park the same request. */
function pollHead(path: string, key: string): string {
  return [
    `GET ${path} HTTP/1.1`,
    "Host: 127.0.0.1",
    "Connection: keep-alive",
    `Authorization: Bearer ${key}`,
    "Accept: application/json",
    "User-Agent: moor-agent/0.1.0",
    "X-Tunnel-Client-Name: moor-agent",
    "X-Tunnel-Client-Version: 0.1.0",
    `X-Tunnel-Client-Instance-Id: ${instanceId}`,
    "X-Tunnel-Client-Wire-Protocol-Version: 2026-08-25",
    "X-Tunnel-Client-Capabilities: wrong-cluster-v1",
    'X-Tunnel-MCP-Server-Info: {"version":1,"channels":[{"name":"main"}]}',
    "",
    "",
  ].join("\r\n");
}

function dial(port: number, head: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host: "127.0.0.1" });
    socket.once("error", reject);
    socket.once("connect", () => socket.write(head, () => resolve(socket)));
    socket.on("data", (answer: Buffer) => {
      if (answer.toString("latin1", 9, 12) === "204") socket.write(head);
      else throw new Error(`a poll was answered with: ${answer.toString("latin1", 0, 200)}`);
    });
  });
}

const port = Number(process.env.BENCH_PORT);
const heads: string[] = [];
for await (const line of createInterface({ input: process.stdin })) {
  const [path = "", key = ""] = line.split(" ");
  heads.push(pollHead(path, key));
}
let waitingCount = 0;
for (let first = 0; first < heads.length; first += DIAL_BATCH) {
  const batch = heads.slice(first, first + DIAL_BATCH);
  waitingCount += (await Promise.all(batch.map((head) => dial(port, head)))).length;
}
console.log(`waiting ${waitingCount}`);
