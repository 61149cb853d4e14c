// The port through which links are dialled: one WebSocket, whichever library or browser it is.
//
// Spec: L9 (dial URL, no redirects), L15 (what a dial can end as), L27 (text frames, bounded).
// I1  A sink hears onOpen at most once, then frames, then onEnd exactly once, and nothing after it.
// I2  A dialler never retries, follows a redirect or falls back to another host.

import type { LinkUrl } from "./link-endpoint.ts";
import type { LinkTrouble } from "@moor/protocol";

/** How a WebSocket ended, or never began. */
export type SocketEnd =
  /** An HTTP answer that is no upgrade. */
  | { readonly kind: "no-upgrade"; readonly status: number }
  /** The connection could not be made, or broke without a close. */
  | { readonly kind: "fault"; readonly trouble: LinkTrouble }
  /** A close frame, or what the platform shows as one: 1005 for none, 1006 for a broken connection. */
  | { readonly kind: "closed"; readonly code: number; readonly reason: string };

/** Hears a socket as it lives. */
export interface SocketSink {
  onOpen(): void;
  /** A text message; `undefined` for a binary one. */
  onMessage(text: string | undefined): void;
  onEnd(end: SocketEnd): void;
}

/** A WebSocket that was dialled. */
export interface LinkSocket {
  /** Bytes given to `send` that have not left this process. */
  readonly bufferedBytes: number;
  /** Sends one text message. Does nothing before onOpen and after the end. */
  send(text: string): void;
  /** Begins a close. The end is told through the sink. */
  close(code: number): void;
  /** Drops the connection; the sink hears nothing more. */
  destroy(): void;
}

/** Opens WebSockets. */
export interface LinkDialler {
  /** Starts one dial. Never throws: a dial that cannot begin ends through the sink, later. */
  dial(url: LinkUrl, sink: SocketSink): LinkSocket;
}
