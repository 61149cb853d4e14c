// A TCP wire that a test can cut, freeze or reset: what networks do to long polls.

import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** What the wire does with bytes. `frozen` holds them back in both directions until it flows again. */
export type WireState = "flowing" | "frozen";

export interface TcpProxy {
  /** 127.0.0.1 port to dial instead of the target's. */
  readonly port: number;
  /** Connections open now. */
  readonly connectionCount: number;
  /** Connections accepted since the start. */
  readonly acceptedCount: number;
  setWire(state: WireState): void;
  /** Ends every connection in order (FIN), as a proxy's idle cut does. New ones are still accepted. */
  cut(): void;
  /** Resets every connection (RST). New ones are still accepted. */
  reset(): void;
  /** Whether new connections are accepted; refused ones are reset at once. Default true. */
  setAccepting(isAccepting: boolean): void;
  close(): Promise<void>;
}

/** Forwards connections from a free loopback port to `target`. */
export async function startTcpProxy(target: { host?: string; port: number }): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let wire: WireState = "flowing";
  let isAccepting = true;
  let acceptedCount = 0;

  const server = createServer({ allowHalfOpen: true }, (near) => {
    if (!isAccepting) {
      near.resetAndDestroy();
      return;
    }
    acceptedCount += 1;
    const far = connect({ host: target.host ?? "127.0.0.1", port: target.port, allowHalfOpen: true });
    const pair = [near, far] as const;
    pairs.add(pair);
    const mayFlow = () => wire === "flowing";
    join(near, far, mayFlow);
    join(far, near, mayFlow);
    for (const socket of pair) socket.once("close", () => pairs.delete(pair));
    if (wire === "frozen") freeze(pair);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });

  return {
    port: (server.address() as AddressInfo).port,
    get connectionCount() {
      return pairs.size;
    },
    get acceptedCount() {
      return acceptedCount;
    },
    setWire: (state) => {
      wire = state;
      for (const pair of pairs) {
        if (state === "frozen") freeze(pair);
        else for (const socket of pair) socket.resume();
      }
    },
    cut: () => {
      for (const pair of pairs) for (const socket of pair) socket.destroySoon();
    },
    reset: () => {
      for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy();
    },
    setAccepting: (accepting) => {
      isAccepting = accepting;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const pair of pairs) for (const socket of pair) socket.destroy();
      }),
  };
}

function freeze(pair: readonly [Socket, Socket]): void {
  for (const socket of pair) socket.pause();
}

/** Copies what `from` reads into `to`, with back-pressure; an error on one side resets the other. */
function join(from: Socket, to: Socket, mayFlow: () => boolean): void {
  from.on("data", (chunk) => {
    if (to.writable && !to.write(chunk)) {
      from.pause();
      to.once("drain", () => mayFlow() && from.resume());
    }
  });
  from.on("end", () => to.end());
  from.on("error", () => to.resetAndDestroy());
  from.on("close", () => to.destroySoon());
}
