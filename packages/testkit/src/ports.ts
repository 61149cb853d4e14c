// Loopback ports: claiming one, and asking whether one is taken.
//
// I1  A claimed port is this process's until it ends: other processes that claim ports pass it by, also while nothing listens
//     at it. The mark is a UDP socket at the same port, so that a process that dies leaves nothing behind.
// I2  It is below the ports that systems give to connections and to listeners that ask for any: a port that is dark for a
//     while stays free, and who dials it then does not meet itself.

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer } from "node:net";

/** First and last port that is claimed. Linux gives out 32768–60999 by itself, others 49152–65535. */
const PORT_MIN = 20_000;
const PORT_MAX = 32_767;

/** Claims a TCP port on 127.0.0.1 at which nobody listens. */
export async function claimPort(): Promise<number> {
  for (;;) {
    const port = PORT_MIN + Math.floor(Math.random() * (PORT_MAX - PORT_MIN + 1));
    const unmark = await mark(port);
    if (unmark === undefined) continue;
    if (await canListen(port)) return port;
    unmark();
  }
}

/** Marks a port as claimed; undefined where another has. */
async function mark(port: number): Promise<(() => void) | undefined> {
  const socket = createSocket("udp4");
  try {
    socket.bind({ port, address: "127.0.0.1", exclusive: true });
    await once(socket, "listening");
  } catch {
    socket.close();
    return undefined;
  }
  socket.unref();
  return () => socket.close();
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen({ port, host: "127.0.0.1", exclusive: true }, () => probe.close(() => resolve(true)));
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
