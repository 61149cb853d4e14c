// The bench's yardstick: what a reverse proxy costs that does nothing but pass one request on and its answer back.
// Argument: the port to forward to. Prints its own port.

import { Agent, createServer, request as sendRequest } from "node:http";
import type { AddressInfo } from "node:net";

const targetPort = Number(process.argv[2]);
const agent = new Agent({ keepAlive: true });

const server = createServer((request, response) => {
  const onward = sendRequest(
    {
      agent,
      host: "127.0.0.1",
      port: targetPort,
      path: request.url,
      method: request.method,
      headers: request.headers,
    },
    (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    },
  );
  onward.on("error", () => response.destroy());
  request.pipe(onward);
});
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", 4096, () => console.log((server.address() as AddressInfo).port));
