// Loopback ports: finding one, and asking whether one is taken.

import { connect, createServer, type AddressInfo } from "node:net";

/**
 * A TCP port on 127.0.0.1 that was free a moment ago. Somebody may take it before it is used: prefer port 0 wherever
 * the program under test reports the port it got.
 */
export function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

/** Whether something accepts connections on 127.0.0.1 at `port`. */
export function isPortTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    const finish = (isTaken: boolean) => {
      socket.destroy();
      resolve(isTaken);
    };
    socket.once("connect", () => finish(true));
    socket.once("error", () => finish(false));
  });
}
