// A node:http server on a free loopback port: what every fake of the testkit that speaks HTTP stands on.

import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

export interface HttpHost {
  readonly port: number;
  /** `http://127.0.0.1:<port>`, without a trailing slash. */
  readonly origin: string;
  /** Stops listening and destroys the connections that are left. */
  close(): Promise<void>;
}

/** Serves `handle` on 127.0.0.1 at `port` (a free one by default). Connections stay open as long as their peer likes. */
export async function startHttpHost(handle: RequestListener, port = 0): Promise<HttpHost> {
  const server = createServer({ keepAliveTimeout: 0, requestTimeout: 0 }, handle);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host: "127.0.0.1", backlog: 4096 }, resolve);
  });
  const bound = (server.address() as AddressInfo).port;
  return {
    port: bound,
    origin: `http://127.0.0.1:${bound}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
