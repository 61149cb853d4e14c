// An HttpExchange over node:http.
//
// Invariants: those of HttpExchange.
// I3  A body that is refused midway is drained for a moment and then cut, so that the peer can read the answer.
// I4  A connection is kept unless a part of the body was left unread or the node leaves: an agent that is answered at
//     once comes back on the same one.
// I5  A peer that stops reading its answer is cut, so that no answer stays in this process for ever.
// Thousands of these wait at once as parked polls: it is a class with few fields, reads headers from the raw lines
// (node:http would build and keep a dictionary) and holds no closure of its own.

import type { IncomingMessage, ServerResponse } from "node:http";
import { HEADER } from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import { mintId } from "../mint-id.ts";
import { REFUSED_BODY_DRAIN_MS } from "../server-limits.ts";
import type { BodyOutcome, HttpExchange, ReplyHeaders, WriteOutcome } from "./http-exchange.ts";
import { readRequestBody } from "./request-body.ts";

/** A peer's own request id is taken over only if it is safe to print anywhere. */
const REQUEST_ID_SHAPE = /^[0-9A-Za-z_.-]{1,128}$/;

type HeaderBag = Record<string, string | string[] | number>;

/** What all exchanges of a listener share. */
export interface NodeExchangeContext {
  readonly runtime: Runtime;
  readonly isLoopbackListener: boolean;
  /** Whether the node is leaving: answers then ask the peer to close its connection. */
  readonly isLeaving: () => boolean;
  /** How long an answer may wait for its peer to read on. Milliseconds. */
  readonly readStallMs: number;
}

/** One request of a node:http server. */
export class NodeExchange implements HttpExchange {
  readonly requestId: string;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #context: NodeExchangeContext;

  constructor(request: IncomingMessage, response: ServerResponse, context: NodeExchangeContext) {
    this.#request = request;
    this.#response = response;
    this.#context = context;
    const given = this.headerLines("x-request-id");
    const [only] = given;
    const isUsable = given.length === 1 && only !== undefined && REQUEST_ID_SHAPE.test(only);
    this.requestId = isUsable ? only : mintId("req", context.runtime);
  }

  get method(): string {
    return this.#request.method ?? "GET";
  }

  get path(): string {
    const url = this.#request.url ?? "/";
    const queryAt = url.indexOf("?");
    return queryAt < 0 ? url : url.slice(0, queryAt);
  }

  get query(): string {
    const url = this.#request.url ?? "/";
    const queryAt = url.indexOf("?");
    return queryAt < 0 ? "" : url.slice(queryAt + 1);
  }

  get rawHeaders(): readonly string[] {
    return this.#request.rawHeaders;
  }

  get remoteAddress(): string | undefined {
    return this.#request.socket.remoteAddress;
  }

  get isLoopbackListener(): boolean {
    return this.#context.isLoopbackListener;
  }

  get isGone(): boolean {
    const { destroyed, socket } = this.#response;
    return destroyed || socket === null || socket.destroyed;
  }

  /** Whether a first byte of the answer was given to the socket. */
  get isAnswerBegun(): boolean {
    return this.#response.headersSent;
  }

  /** Whether the whole answer was given to the socket. */
  get isAnswerWritten(): boolean {
    return this.#response.writableFinished;
  }

  /** Whether a part of the body has not come yet. A request without one is whole as soon as its head is. */
  get isBodyPending(): boolean {
    if (this.#request.complete) return false;
    const declared = this.header("content-length");
    return declared === undefined ? this.header("transfer-encoding") !== undefined : Number(declared) > 0;
  }

  header(name: string): string | undefined {
    const lines = this.headerLines(name);
    return lines.length <= 1 ? lines[0] : lines.join(", ");
  }

  headerLines(name: string): readonly string[] {
    const { rawHeaders } = this.#request;
    const lines: string[] = [];
    for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
      const candidate = rawHeaders[at] ?? "";
      if (candidate.length === name.length && candidate.toLowerCase() === name) {
        lines.push(rawHeaders[at + 1] ?? "");
      }
    }
    return lines;
  }

  readBody(bytesMax: number): Promise<BodyOutcome> {
    return readRequestBody(this.#request, Number(this.header("content-length") ?? 0), bytesMax);
  }

  onGone(run: () => void): void {
    const response = this.#response;
    response.once("close", () => {
      if (!response.writableFinished) run();
    });
  }

  reply(status: number, headers: ReplyHeaders, body?: Uint8Array | string): WriteOutcome {
    if (this.isGone) return "not-written";
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    const bag = this.#headerBag(headers);
    if (bytes !== undefined) bag["Content-Length"] = bytes.byteLength;
    else if (mayHaveBody(status)) bag["Content-Length"] = 0;
    this.#response.writeHead(status, bag);
    this.#end(bytes);
    if (this.isBodyPending) this.#drainThenCut();
    return "written";
  }

  startStream(status: number, headers: ReplyHeaders): WriteOutcome {
    if (this.isGone) return "not-written";
    this.#response.writeHead(status, this.#headerBag(headers));
    this.#response.flushHeaders();
    return "written";
  }

  writeChunk(chunk: Uint8Array | string): number {
    if (this.isGone) return 0;
    this.#response.write(chunk);
    return this.#response.writableLength;
  }

  endStream(): void {
    this.#end();
  }

  destroy(): void {
    this.#request.destroy();
  }

  #end(bytes?: Uint8Array): void {
    const response = this.#response;
    response.end(bytes);
    // node:http starts the time anew whenever the peer takes some bytes, and ends it with the answer.
    if (response.writableLength > 0) response.socket?.setTimeout(this.#context.readStallMs);
  }

  #headerBag(headers: ReplyHeaders): HeaderBag {
    const bag: HeaderBag = { [HEADER.requestId]: this.requestId };
    if (this.#context.isLeaving() || this.isBodyPending) bag["Connection"] = "close";
    return Object.assign(bag, headers);
  }

  #drainThenCut(): void {
    const { runtime } = this.#context;
    const request = this.#request;
    const timer = runtime.schedule(REFUSED_BODY_DRAIN_MS, () => request.destroy());
    request.once("close", () => runtime.cancel(timer));
    request.resume();
  }
}

function mayHaveBody(status: number): boolean {
  return status >= 200 && status !== 204 && status !== 304;
}
