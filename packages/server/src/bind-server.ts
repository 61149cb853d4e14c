// Binding a listener, and saying which option to change when it cannot be bound.

import type { AddressInfo, Server } from "node:net";
import { ConfigError } from "@moor/runtime";
import { LISTEN_BACKLOG } from "./server-limits.ts";

/** Where a server listens. */
export interface Binding {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  /** The option to blame, as the user writes it. */
  readonly option: string;
  /** Let another process of this user that says so too listen at the same port. Default false. */
  readonly isPortShared?: boolean;
  /** Number of an inherited socket that listens already: host and port do not matter then. */
  readonly fd?: number;
  /** Path of a Unix socket to listen at: host and port do not matter then. */
  readonly unixPath?: string;
}

/**
 * Binds `server`; rejects with ConfigError. `onLater` hears the code of what fails after that: a connection that could
 * not be accepted, for want of file descriptors for instance.
 */
export function bindServer(server: Server, binding: Binding, onLater: (code: string) => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.on("error", (error: NodeJS.ErrnoException) => {
    if (server.listening) onLater(error.code ?? "failed");
    else reject(bindRefusal(binding, error.code ?? "unknown error"));
  });
  // As an argument of its own: of an inherited socket's options Node does not read it.
  server.listen(listenOptions(binding), LISTEN_BACKLOG, () => {
    if (binding.unixPath !== undefined || isTcpAddress(server.address())) return resolve();
    server.close();
    reject(bindRefusal(binding, "no TCP socket"));
  });
  return promise;
}

function listenOptions({ host, port, isPortShared, fd, unixPath }: Binding) {
  if (unixPath !== undefined) return { path: unixPath };
  if (fd !== undefined) return { fd };
  return { host, port, ...(isPortShared === true ? { reusePort: true } : {}) };
}

function isTcpAddress(address: AddressInfo | string | null): boolean {
  return typeof address === "object" && address !== null;
}

function bindRefusal({ host, port, option, isPortShared, fd, unixPath }: Binding, code: string): ConfigError {
  if (unixPath !== undefined) {
    return new ConfigError(option, `${unixPath} (${code})`, "a path of at most 100 bytes that can be made");
  }
  if (fd !== undefined) {
    const expected = "a TCP socket that listens, as systemd hands it to a service";
    return new ConfigError("public.fd", `${fd} (${code})`, expected);
  }
  if (isPortShared === true && code === "ENOTSUP") {
    return new ConfigError("public.reusePort", "true", "false: this system cannot share a port");
  }
  return new ConfigError(option, `${host}:${port} (${code})`, expectedAddress(code, isPortShared === true));
}

function expectedAddress(code: string, isPortShared: boolean): string {
  if (code !== "EADDRINUSE") return "an address to bind";
  if (!isPortShared) return "a port nobody else listens on, or 0 for any free one";
  return "a port that nobody else listens on, unless that process is this user's and has public.reusePort too";
}
