// One HTTP request and its answer, as the entry's cores see them: no sockets, no node:http.
//
// I1  `reply` or `startStream` is called at most once; a later call is a bug.
// I2  Once `isGone`, nothing written reaches the peer; `reply` then says "not-written" (T4).

/** How a request body ended. `too-large`: more than the allowed bytes. `gone`: the peer left first. */
export type BodyOutcome =
  | { readonly kind: "complete"; readonly bytes: Uint8Array }
  | { readonly kind: "too-large" }
  | { readonly kind: "gone" };

/** Whether the first byte of an answer was given to the socket of a peer not known to be gone. Spec T4. */
export type WriteOutcome = "written" | "not-written";

export type ReplyHeaders = Readonly<Record<string, string | readonly string[]>>;

export interface HttpExchange {
  readonly method: string;
  /** Path as sent, without the query. */
  readonly path: string;
  /** Query as sent, without `?`; empty if none. */
  readonly query: string;
  /** Raw field lines in the order sent: name, value, name, value, … */
  readonly rawHeaders: readonly string[];
  /** Address of the connection's other end; a proxy's, if there is one. `undefined` once the connection is gone. */
  readonly remoteAddress: string | undefined;
  /** Whether the listener that took this request is bound to a loopback address. Spec T10. */
  readonly isLoopbackListener: boolean;
  /** Correlation id: the peer's `X-Request-Id` if it is usable, else minted here. Spec T3. */
  readonly requestId: string;
  /** A field's value, lines joined as node:http does; `undefined` if absent. `name` in lower case. */
  header(name: string): string | undefined;
  /** A field's separate lines, in order. `name` in lower case. */
  headerLines(name: string): readonly string[];
  /** Reads the body, at most `bytesMax` bytes. Never rejects. */
  readBody(bytesMax: number): Promise<BodyOutcome>;
  /** Calls `run` once when the peer leaves before its answer is complete. */
  onGone(run: () => void): void;
  readonly isGone: boolean;
  /** Writes a whole answer. */
  reply(status: number, headers: ReplyHeaders, body?: Uint8Array | string): WriteOutcome;
  /** Begins an answer whose body follows in pieces, each flushed at once. */
  startStream(status: number, headers: ReplyHeaders): WriteOutcome;
  /** Writes one piece; returns how many bytes wait in this process because the peer reads too slowly. */
  writeChunk(chunk: Uint8Array | string): number;
  endStream(): void;
  /** Cuts the connection. */
  destroy(): void;
}

/** Headers every answer of a node carries unless its route says otherwise. */
export const NO_STORE = { "Cache-Control": "no-store" } as const;
export const JSON_TYPE = { "Content-Type": "application/json" } as const;
