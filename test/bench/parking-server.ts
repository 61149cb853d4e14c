// The bench's yardstick for waiting polls: a bare node:http server that never answers. Prints its port, then the number
// of parked requests whenever it changes by the thousand.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const parked = new Set<ServerResponse>();
const server = createServer((_request, response) => {
  parked.add(response);
  if (parked.size % 1000 === 0) console.log(`parked ${parked.size}`);
});
server.requestTimeout = 0;
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", 4096, () => console.log((server.address() as AddressInfo).port));
