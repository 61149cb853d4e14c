// What a link needs of a connection, and the network of what carries connections: TCP in production, simulated in tests.
//
// I1  Bytes arrive in order or not at all; after `closed` nothing arrives any more.
// I2  `closed` is called exactly once per wire that was started.

import type { CertificateIdentity } from "./certificate-identity.ts";

/** What a wire tells its link. */
export interface WireHandler {
  /** The bytes are good until the call returns. */
  receive(bytes: Uint8Array): void;
  /** `isWritable` is true again. */
  writable(): void;
  /** `cause`: an error code of the system or of TLS, if there was an error. */
  closed(cause?: string): void;
}

/** One connection to another node. */
export interface Wire {
  /** Who the other side has proven to be; undefined on a plain connection. */
  readonly identity: CertificateIdentity | undefined;
  /** Its address, for logs. */
  readonly remote: string;
  /** False: enough waits; write again after `writable`. */
  readonly isWritable: boolean;
  /** From now on the handler is called, from later turns only. Called once. */
  start(handler: WireHandler): void;
  /** Sends in order. The chunks must not change afterwards. */
  write(chunks: readonly Uint8Array[]): void;
  /** Calls `run` once, when what happens now has happened: several messages then leave together. */
  soon(run: () => void): void;
  /** Sends what was written, then ends; `closed` follows. Allowed more than once. */
  close(): void;
}

/** Why a connection could not be opened: a fixed word or an error code of the system, good for logs. */
export type DialFailure = string;

/** An attempt to open a connection. */
export interface Dial {
  /** No further callback; a connection that opens meanwhile is closed. */
  cancel(): void;
}

/** What carries the links of a node. */
export interface PeerTransport {
  /** Opens a connection to `url`; exactly one of the callbacks is called, from a later turn. */
  dial(url: string, opened: (wire: Wire) => void, failed: (reason: DialFailure) => void): Dial;
  /** Accepts connections. Throws ConfigError when the address cannot be had or may not be used. */
  listen(
    host: string,
    port: number,
    accepted: (wire: Wire) => void,
  ): Promise<{ readonly port: number; close(): Promise<void> }>;
}
