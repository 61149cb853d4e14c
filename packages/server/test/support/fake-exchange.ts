// An HttpExchange without a socket: a test writes the request and reads the answer.

import { invariant } from "@moor/runtime";
import type { BodyOutcome, HttpExchange, ReplyHeaders, WriteOutcome } from "../../src/http/http-exchange.ts";

export interface FakeRequest {
  readonly method?: string;
  readonly path: string;
  readonly query?: string;
  /** Field lines: name, value, name, value, … */
  readonly rawHeaders?: readonly string[];
  readonly body?: Uint8Array | string;
  readonly isLoopbackListener?: boolean;
  readonly remoteAddress?: string;
}

export class FakeExchange implements HttpExchange {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly rawHeaders: readonly string[];
  readonly isLoopbackListener: boolean;
  readonly remoteAddress: string | undefined;
  readonly requestId: string;
  /** Status of the answer; `undefined` until it begins. */
  status: number | undefined;
  headers: ReplyHeaders = {};
  readonly chunks: Buffer[] = [];
  isEnded = false;
  isDestroyed = false;
  isGone = false;
  /** What `writeChunk` reports as not yet read by the peer. */
  laggingBytes = 0;
  readonly #body: Buffer;
  readonly #goneListeners: (() => void)[] = [];

  constructor(request: FakeRequest, requestId: string) {
    this.method = request.method ?? "GET";
    this.path = request.path;
    this.query = request.query ?? "";
    this.rawHeaders = request.rawHeaders ?? [];
    this.isLoopbackListener = request.isLoopbackListener ?? true;
    this.remoteAddress = request.remoteAddress ?? "192.0.2.1";
    this.requestId = requestId;
    this.#body = Buffer.from(request.body ?? "");
  }

  /** The answer's body as text. */
  get text(): string {
    return Buffer.concat(this.chunks).toString("utf8");
  }

  /** The answer's body parsed. */
  get json(): unknown {
    return JSON.parse(this.text);
  }

  /** `error.code` of a T3 envelope. */
  get errorCode(): string | undefined {
    return this.text === "" ? undefined : (this.json as { error?: { code?: string } }).error?.code;
  }

  /** The peer hangs up. */
  leave(): void {
    if (this.isEnded || this.isGone) return;
    this.isGone = true;
    for (const run of this.#goneListeners) run();
  }

  header(name: string): string | undefined {
    const lines = this.headerLines(name);
    return lines.length === 0 ? undefined : lines.join(", ");
  }

  headerLines(name: string): readonly string[] {
    return this.rawHeaders.filter((_, at) => at % 2 === 1 && this.rawHeaders[at - 1]?.toLowerCase() === name);
  }

  async readBody(bytesMax: number): Promise<BodyOutcome> {
    if (this.#body.byteLength > bytesMax) return { kind: "too-large" };
    return { kind: "complete", bytes: this.#body };
  }

  onGone(run: () => void): void {
    this.#goneListeners.push(run);
  }

  reply(status: number, headers: ReplyHeaders, body?: Uint8Array | string): WriteOutcome {
    this.#begin(status, headers);
    this.isEnded = !this.isGone;
    if (body !== undefined) this.chunks.push(Buffer.from(body));
    return this.isGone ? "not-written" : "written";
  }

  startStream(status: number, headers: ReplyHeaders): WriteOutcome {
    this.#begin(status, headers);
    return this.isGone ? "not-written" : "written";
  }

  writeChunk(chunk: Uint8Array | string): number {
    invariant(this.status !== undefined && !this.isEnded, "a stream is open when it is written to");
    this.chunks.push(Buffer.from(chunk));
    return this.laggingBytes;
  }

  endStream(): void {
    invariant(!this.isEnded, "a stream ends once");
    this.isEnded = true;
  }

  destroy(): void {
    this.isDestroyed = true;
    this.leave();
  }

  #begin(status: number, headers: ReplyHeaders): void {
    invariant(this.status === undefined, "an answer begins once");
    this.status = status;
    this.headers = headers;
  }
}
