// Binding a listener, and saying which option to change when it cannot be bound.

import type { Server } from "node:net";
import { ConfigError } from "@moor/runtime";
import { LISTEN_BACKLOG } from "./server-limits.ts";

/** Where a server listens. */
export interface Binding {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  /** The option to blame, as the user writes it. */
  readonly option: string;
}

/**
 * Binds `server`; rejects with ConfigError. `onLater` hears the code of what fails after that: a connection that could
 * not be accepted, for want of file descriptors for instance.
 */
export function bindServer(
  server: Server,
  { host, port, option }: Binding,
  onLater: (code: string) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.on("error", (error: NodeJS.ErrnoException) => {
      if (server.listening) return onLater(error.code ?? "failed");
      const got = `${host}:${port} (${error.code ?? "unknown error"})`;
      const isTaken = error.code === "EADDRINUSE";
      const expected = isTaken
        ? "a port nobody else listens on, or 0 for any free one"
        : "an address to bind";
      reject(new ConfigError(option, got, expected));
    });
    server.listen({ host, port, backlog: LISTEN_BACKLOG }, resolve);
  });
}
