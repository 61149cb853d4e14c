// One process at a time may write a command log: two would each act on a command that the other has acted on.
//
// Spec: L20.
// I1  The lock ends with its process, however that ends: it is a socket in Linux's abstract namespace, not a file.
//     Elsewhere there is no such thing, and nothing is locked.

import { createHash } from "node:crypto";
import { createServer, type Server } from "node:net";
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ConfigError } from "@moor/runtime";

/** A lock that is held. */
export interface LogLock {
  release(): Promise<void>;
}

/** How often the lock is tried, and milliseconds between: a process that was killed is not gone at once, and one that its holder
 *  has just forked holds it until it is another program. */
const TRIES_MAX = 10;
const TRY_INTERVAL_MS = 50;

/** Takes the lock of the log at `path`. Rejects with ConfigError when another process (or log) has it. */
export async function lockLog(option: string, path: string): Promise<LogLock> {
  if (process.platform !== "linux") return { release: () => Promise.resolve() };
  const name = createHash("sha256").update(resolve(path)).digest("base64url");
  const server = createServer((socket) => socket.destroy());
  for (let tries = 1; !(await isListening(server, `\0moor-log-${name}`)); tries += 1) {
    if (tries < TRIES_MAX) await delay(TRY_INTERVAL_MS);
    else
      throw new ConfigError(option, `${path}, which another process uses`, "a log of its own for each box");
  }
  // It must not keep a process alive that has nothing else to do.
  server.unref();
  return { release: () => new Promise((done) => server.close(() => done())) };
}

function isListening(server: Server, path: string): Promise<boolean> {
  return new Promise((done) => {
    // Kept: what ails a lock that is held, such as someone who connects to it, is nobody's.
    server.on("error", () => done(false));
    server.once("listening", () => done(true));
    server.listen({ path, exclusive: true });
  });
}
