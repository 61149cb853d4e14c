// The bench's yardstick for idle links: a bare `ws` server, set as Moor's is, that answers one word and holds the link.
// Prints its port, then nothing. $BENCH_CERT and $BENCH_KEY name PEM files for TLS.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { WebSocketServer, type WebSocket } from "ws";

const links = new Set<WebSocket>();
const { BENCH_CERT: certFile, BENCH_KEY: keyFile } = process.env;
const server =
  certFile === undefined || keyFile === undefined
    ? createServer()
    : createTlsServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) });
const upgrader = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: 69_632 });
server.on("upgrade", (request, socket, head) => {
  upgrader.handleUpgrade(request, socket, head, (link) => {
    links.add(link);
    link.on("message", () => link.send("welcome"));
    link.on("close", () => links.delete(link));
  });
});
server.listen(0, "127.0.0.1", 4096, () => console.log((server.address() as AddressInfo).port));
