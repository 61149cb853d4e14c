// A wire on a socket, plain or TLS.

import type { Socket } from "node:net";
import type { Runtime, TimerHandle } from "@moor/runtime";
import type { CertificateIdentity } from "./certificate-identity.ts";
import { CLOSE_LINGER_MS } from "./transport-limits.ts";
import type { Wire, WireHandler } from "./wire.ts";

/** One connection over TCP. */
export class TcpWire implements Wire {
  readonly identity: CertificateIdentity | undefined;
  readonly remote: string;
  readonly #socket: Socket;
  readonly #runtime: Runtime;
  #linger: TimerHandle | undefined;
  /** Code of the first error. */
  #cause: string | undefined;

  constructor(socket: Socket, identity: CertificateIdentity | undefined, runtime: Runtime) {
    this.#socket = socket;
    this.#runtime = runtime;
    this.identity = identity;
    this.remote = `${socket.remoteAddress ?? "unknown"}:${socket.remotePort ?? 0}`;
    socket.setNoDelay(true);
    socket.on("error", (error: NodeJS.ErrnoException) => {
      this.#cause ??= error.code; // `close` follows
    });
  }

  get isWritable(): boolean {
    return !this.#socket.writableNeedDrain;
  }

  start(handler: WireHandler): void {
    const socket = this.#socket;
    socket.on("data", (chunk: Buffer) => handler.receive(chunk));
    socket.on("drain", () => handler.writable());
    socket.on("end", () => this.close());
    socket.on("close", () => {
      this.#runtime.cancel(this.#linger);
      handler.closed(this.#cause);
    });
    if (socket.destroyed) this.soon(() => handler.closed(this.#cause));
  }

  write(chunks: readonly Uint8Array[]): void {
    const socket = this.#socket;
    if (!socket.writable) return;
    if (chunks.length > 1) socket.cork();
    for (const chunk of chunks) socket.write(chunk);
    if (chunks.length > 1) socket.uncork();
  }

  soon(run: () => void): void {
    setImmediate(run);
  }

  close(): void {
    if (this.#linger !== undefined || this.#socket.destroyed) return;
    this.#linger = this.#runtime.schedule(CLOSE_LINGER_MS, () => this.#socket.destroy());
    this.#socket.end();
    this.#socket.resume(); // what still arrives is read and dropped, so that the end is seen
  }
}
