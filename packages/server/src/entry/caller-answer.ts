// What a caller gets: one JSON body, or an SSE stream that ends with the final.
//
// Spec: T11.
// I1  An answer begins once and ends once: nothing is written after its end.
// I2  `resp_json` reaches the caller byte for byte; in an SSE event its line breaks, which JSON allows only between
//     tokens, become separate data lines.
// I3  A caller that reads too slowly is cut, so that it holds no more than STREAM_LAG_BYTES_MAX of this process.

import { STATUS_CODES } from "node:http";
import { ProtocolError, SSE_COMMENT_INTERVAL_MS } from "@moor/protocol";
import type { Runtime, TimerHandle } from "@moor/runtime";
import { NO_STORE, type HttpExchange, type ReplyHeaders } from "../http/http-exchange.ts";
import { replyError } from "../http/reply-error.ts";
import { STREAM_LAG_BYTES_MAX } from "../server-limits.ts";

/** An agent's final answer, as the connector passes it on. */
export interface FinalAnswer {
  /** `resp_code`, as the agent said it. */
  readonly code: number;
  /** Allowed headers only, lower-case names. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  /** Raw `resp_json`, or none. */
  readonly body: Uint8Array | undefined;
}

/** What a caller accepts, read from its Accept header. */
export interface AcceptedTypes {
  readonly json: boolean;
  readonly sse: boolean;
}

const SSE_HEADERS = {
  "Content-Type": "text/event-stream",
  "Cache-Control": "no-cache, no-store",
  "X-Accel-Buffering": "no",
} as const;

type AnswerState =
  | { readonly kind: "open" }
  | { readonly kind: "streaming"; comment: TimerHandle }
  | { readonly kind: "ended" };

export interface CallerAnswerOptions {
  readonly exchange: HttpExchange;
  readonly accepts: AcceptedTypes;
  /** Raw JSON of the request's `id`; `undefined` for what wants no JSON-RPC answer. */
  readonly rpcId: string | undefined;
  /** Added to every answer, e.g. CORS headers. */
  readonly headers: ReplyHeaders;
  readonly runtime: Runtime;
}

export class CallerAnswer {
  readonly #options: CallerAnswerOptions;
  #state: AnswerState = { kind: "open" };

  constructor(options: CallerAnswerOptions) {
    this.#options = options;
  }

  get isEnded(): boolean {
    return this.#state.kind === "ended";
  }

  /** Passes a notification on, if the caller takes SSE and waits for a response. */
  notify(message: Uint8Array): void {
    const { accepts, rpcId } = this.#options;
    if (!accepts.sse || rpcId === undefined || this.#state.kind === "ended") return;
    if (this.#state.kind === "open") this.#startStream({});
    this.#writeEvent(message);
  }

  /** Ends with the agent's final. */
  final(answer: FinalAnswer): void {
    if (this.#state.kind === "ended") return;
    const status = callerStatus(answer.code, answer.body !== undefined);
    const isSseFinal = /^text\/event-stream/i.test(answer.headers.get("content-type")?.[0] ?? "");
    const isStreamable = this.#options.accepts.sse && answer.body !== undefined && status === 200;
    if (this.#state.kind === "open" && isStreamable && (isSseFinal || !this.#options.accepts.json)) {
      this.#startStream(passedHeaders(answer.headers));
    }
    if (this.#state.kind === "streaming") {
      if (answer.body === undefined) return this.fail(new ProtocolError("invalid_agent_response"));
      this.#writeEvent(answer.body);
      return this.#endStream();
    }
    this.#state = { kind: "ended" };
    this.#options.exchange.reply(
      status,
      {
        ...NO_STORE,
        ...(answer.body === undefined ? {} : { "Content-Type": jsonContentType(answer.headers) }),
        ...passedHeaders(answer.headers),
        ...this.#options.headers,
      },
      answer.body,
    );
  }

  /** Ends with 202 and no body: a notification or response was taken. Spec T9. */
  acknowledge(): void {
    if (this.#state.kind === "ended") return;
    this.#state = { kind: "ended" };
    this.#options.exchange.reply(202, { ...NO_STORE, ...this.#options.headers });
  }

  /** Ends with a refusal: the T3 envelope, or a JSON-RPC error event once a stream has begun. */
  fail(error: ProtocolError): void {
    if (this.#state.kind === "ended") return;
    if (this.#state.kind === "streaming") {
      this.#writeEvent(Buffer.from(encodeRpcError(this.#options.rpcId ?? "null", error)));
      return this.#endStream();
    }
    this.#state = { kind: "ended" };
    replyError(this.#options.exchange, error, this.#options.headers);
  }

  /** The caller is gone: nothing more is written. */
  abandon(): void {
    if (this.#state.kind === "streaming") this.#options.runtime.cancel(this.#state.comment);
    this.#state = { kind: "ended" };
  }

  #startStream(headers: ReplyHeaders): void {
    this.#options.exchange.startStream(200, { ...SSE_HEADERS, ...headers, ...this.#options.headers });
    this.#state = { kind: "streaming", comment: this.#scheduleComment() };
  }

  #scheduleComment(): TimerHandle {
    return this.#options.runtime.schedule(SSE_COMMENT_INTERVAL_MS, () => {
      if (this.#state.kind !== "streaming") return;
      this.#write(": waiting\n\n");
      if (this.#state.kind === "streaming") this.#state.comment = this.#scheduleComment();
    });
  }

  #writeEvent(message: Uint8Array): void {
    this.#write(encodeSseEvent(message));
  }

  #write(chunk: Uint8Array | string): void {
    const laggingBytes = this.#options.exchange.writeChunk(chunk);
    if (laggingBytes <= STREAM_LAG_BYTES_MAX + chunk.length) return;
    this.abandon();
    this.#options.exchange.destroy();
  }

  #endStream(): void {
    this.abandon();
    this.#options.exchange.endStream();
  }
}

/** Statuses that HTTP allows no content with. */
const WITHOUT_CONTENT: ReadonlySet<number> = new Set([204, 205]);

/**
 * Status a caller sees for a `resp_code`: 1xx, 3xx and unknown errors are 502, an unknown 2xx is 200, and so is one that
 * cannot have the body there is. Spec T11.
 */
export function callerStatus(code: number, hasBody: boolean): number {
  if (hasBody && WITHOUT_CONTENT.has(code)) return 200;
  if (code >= 200 && code < 300) return STATUS_CODES[code] === undefined ? 200 : code;
  if (code >= 400 && code < 600) return STATUS_CODES[code] === undefined ? 502 : code;
  return 502;
}

/** One SSE event whose data is `message`. */
export function encodeSseEvent(message: Uint8Array): Uint8Array {
  const lines = splitLines(message);
  const parts: Uint8Array[] = [];
  for (const line of lines) parts.push(DATA, line, NEWLINE);
  parts.push(NEWLINE);
  return Buffer.concat(parts);
}

const DATA = Buffer.from("data: ");
const NEWLINE = Buffer.from("\n");

function splitLines(message: Uint8Array): Uint8Array[] {
  if (!message.includes(0x0a) && !message.includes(0x0d)) return [message];
  const lines: Uint8Array[] = [];
  let start = 0;
  for (let at = 0; at < message.length; at += 1) {
    const byte = message[at];
    if (byte !== 0x0a && byte !== 0x0d) continue;
    lines.push(message.subarray(start, at));
    if (byte === 0x0d && message[at + 1] === 0x0a) at += 1;
    start = at + 1;
  }
  lines.push(message.subarray(start));
  return lines;
}

/** A JSON-RPC error for a caller whose stream has begun. Spec T3. */
function encodeRpcError(rawId: string, error: ProtocolError): string {
  const body = { code: -32603, message: error.message, data: { code: error.code, ...error.data } };
  return `{"jsonrpc":"2.0","id":${rawId},"error":${JSON.stringify(body)}}`;
}

function jsonContentType(headers: FinalAnswer["headers"]): string {
  const given = headers.get("content-type")?.[0] ?? "";
  return /^application\/([\w.-]+\+)?json\b/i.test(given) ? given : "application/json";
}

const PASSED_NAMES: ReadonlyMap<string, string> = new Map([
  ["mcp-session-id", "Mcp-Session-Id"],
  ["mcp-protocol-version", "Mcp-Protocol-Version"],
  ["last-event-id", "Last-Event-Id"],
  ["www-authenticate", "WWW-Authenticate"],
]);

function passedHeaders(headers: FinalAnswer["headers"]): ReplyHeaders {
  const passed: Record<string, readonly string[]> = {};
  for (const [name, spelling] of PASSED_NAMES) {
    const lines = headers.get(name);
    if (lines !== undefined && lines.length > 0) passed[spelling] = lines;
  }
  return passed;
}
