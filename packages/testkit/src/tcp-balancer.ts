// The balancer before a fleet's entries, as small as one can be: each connection goes to the first target that accepts.

import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface TcpBalancer {
  /** `http://127.0.0.1:<port>`: the one endpoint that clients are configured with. */
  readonly origin: string;
  close(): Promise<void>;
}

/** Balances over loopback ports, in this order of preference. Open connections stay where they are. */
export async function startTcpBalancer(ports: readonly number[]): Promise<TcpBalancer> {
  const open = new Set<Socket>();
  const server = createServer((near) => {
    open.add(near);
    near.on("error", () => {});
    near.once("close", () => open.delete(near));
    void connectFirst(ports).then((far) => {
      if (far === undefined) return near.resetAndDestroy();
      open.add(far);
      far.on("error", () => near.resetAndDestroy());
      far.once("close", () => {
        open.delete(far);
        near.destroySoon();
      });
      near.once("close", () => far.destroySoon());
      near.pipe(far);
      far.pipe(near);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}

async function connectFirst(ports: readonly number[]): Promise<Socket | undefined> {
  for (const port of ports) {
    const socket = connect({ host: "127.0.0.1", port });
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
    });
    if (isOpen) return socket;
  }
  return undefined;
}
