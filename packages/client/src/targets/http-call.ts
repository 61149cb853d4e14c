// One JSON-RPC request over Streamable HTTP: its POST, and an answer that is JSON or an event stream.
//
// Spec: T18, T20, T22, R18 (a redirect is an answer like any other, never followed).
// I1  Settles once: with the response of the request's own id, a failure, or `aborted`; never before every notification
//     that came earlier was taken (T19). I2  A stream that sends faster than notifications are taken is paused.
// I3  A request of the server's is answered towards the server and never ends the call (T22).

import { JSON_DEPTH_MAX, RESPONSE_BODY_BYTES_MAX, scanJson } from "@moor/protocol";
import type { Runtime, TimerHandle } from "@moor/runtime";
import type { Dispatcher } from "undici";
import { contentCodings, decodeContent } from "../http/content-decoding.ts";
import {
  startExchange,
  type Exchange,
  type ExchangeEnd,
  type ExchangeRequest,
  type ExchangeSink,
} from "../http/exchange.ts";
import { headerValue, type HeaderLine } from "../http/header-lines.ts";
import { isSameId, jsonRpcShape } from "../jsonrpc-message.ts";
import type { RawDump } from "../raw-dump.ts";
import { passedResponseHeaders, type HeaderBag } from "./header-policy.ts";
import type { OnNotification, TargetAnswer } from "./mcp-target.ts";
import { createSseParser, type SseParser } from "./sse-parser.ts";
import { targetFaultFailure, targetHttpFailure, targetProtocolFailure } from "./target-failure.ts";

/** What a call needs of its target. */
export interface HttpCallPorts {
  readonly runtime: Runtime;
  readonly dispatcher: Dispatcher;
  readonly dump: RawDump | undefined;
  /** Told of every answer's head, with its status and lines. */
  onAnswered(): void;
  /** Refuses a request the server sent inside the call (T22); `sessionLines` come from the answer's head. */
  refuseServerRequest(rawId: string, sessionLines: readonly HeaderLine[]): void;
}

/** The response body adds one level around the target's message, and the service counts it too (T6). */
const TARGET_JSON_DEPTH_MAX = JSON_DEPTH_MAX - 1;

/** Bytes of untaken notifications at which reading stops, so that a fast server cannot fill the agent's memory. */
const UNTAKEN_BYTES_MAX = 1024 * 1024;
const UNTAKEN_COUNT_MAX = 64;

/** Time a stream gets to end by itself after its response, milliseconds: its connection can then be used again. */
const STREAM_TAIL_MS = 1_000;

/** Makes one call. Never rejects. */
export function callOverHttp(
  ports: HttpCallPorts,
  request: ExchangeRequest,
  rawId: string,
  onNotification: OnNotification,
  signal: AbortSignal,
): Promise<TargetAnswer> {
  if (signal.aborted) return Promise.resolve({ kind: "aborted" });
  return new Promise((resolve) => new HttpCall(ports, rawId, onNotification, signal, resolve).start(request));
}

class HttpCall implements ExchangeSink {
  readonly #ports: HttpCallPorts;
  readonly #rawId: string;
  readonly #onNotification: OnNotification;
  readonly #signal: AbortSignal;
  readonly #resolve: (answer: TargetAnswer) => void;
  readonly #onAbort = () => this.#settle({ kind: "aborted" });
  #exchange: Exchange | undefined;
  #status: number | undefined;
  #headerLines: readonly HeaderLine[] = [];
  #headers: HeaderBag = {};
  #sse: SseParser | undefined;
  #chunks: Buffer[] = [];
  #bodyBytes = 0;
  /** Settles when every notification so far was taken. */
  #taken: Promise<void> = Promise.resolve();
  #untakenCount = 0;
  #untakenBytes = 0;
  #hasResponse = false;
  #isSettled = false;
  #tailTimer: TimerHandle | undefined;

  constructor(
    ports: HttpCallPorts,
    rawId: string,
    onNotification: OnNotification,
    signal: AbortSignal,
    resolve: (answer: TargetAnswer) => void,
  ) {
    this.#ports = ports;
    this.#rawId = rawId;
    this.#onNotification = onNotification;
    this.#signal = signal;
    this.#resolve = resolve;
  }

  start(request: ExchangeRequest): void {
    this.#signal.addEventListener("abort", this.#onAbort, { once: true });
    this.#ports.dump?.request("target", request);
    this.#exchange = startExchange(this.#ports.dispatcher, request, this);
  }

  onHead(status: number, headerLines: readonly HeaderLine[]): void {
    this.#ports.onAnswered();
    this.#ports.dump?.head("target", status, headerLines);
    this.#status = status;
    this.#headerLines = headerLines;
    this.#headers = passedResponseHeaders(headerLines);
    const isStream = mediaType(headerLines) === "text/event-stream" && status >= 200 && status <= 299;
    if (isStream && contentCodings(headerLines).length === 0) {
      this.#sse = createSseParser(RESPONSE_BODY_BYTES_MAX, (data) => this.#onMessage(data));
    }
  }

  onData(chunk: Buffer): void {
    this.#ports.dump?.body("target", chunk);
    this.#bodyBytes += chunk.length;
    if (this.#hasResponse) return;
    const isTooLarge =
      this.#sse === undefined
        ? this.#bodyBytes > RESPONSE_BODY_BYTES_MAX
        : this.#sse.feed(chunk) === "too-large";
    if (isTooLarge) this.#settleAfterNotifications(targetProtocolFailure("too_large", this.#headers));
    else if (this.#sse === undefined) this.#chunks.push(chunk);
  }

  onEnd(end: ExchangeEnd): void {
    this.#ports.runtime.cancel(this.#tailTimer);
    this.#exchange = undefined;
    if (this.#hasResponse || end.kind === "aborted") return;
    if (end.kind === "fault") {
      this.#settleAfterNotifications(
        targetFaultFailure(end.category, end.wasWritten, this.#status !== undefined),
      );
    } else if (this.#sse !== undefined) {
      this.#settleAfterNotifications(targetProtocolFailure("stream_ended", this.#headers));
    } else {
      this.#settle(this.#judgeBody(this.#status ?? 0));
    }
  }

  /** A whole answer that is no stream: the response asked for, or what to say instead (T20). */
  #judgeBody(status: number): TargetAnswer {
    const body = decodeContent(Buffer.concat(this.#chunks), this.#headerLines, RESPONSE_BODY_BYTES_MAX);
    const scan = body === undefined || (status >= 300 && status <= 399) ? undefined : scanTargetJson(body);
    if (body !== undefined && scan?.ok === true) {
      const shape = jsonRpcShape(body, scan.members);
      const isOurs = shape.kind === "response" && isSameId(shape.rawId, this.#rawId);
      if (isOurs && (status <= 299 || shape.isError)) {
        const json = body.subarray(scan.value.start, scan.value.end);
        return { kind: "response", status, headers: this.#headers, json };
      }
    }
    return status <= 299
      ? targetProtocolFailure("not_mcp", this.#headers)
      : targetHttpFailure(status, this.#headers);
  }

  /** One message of the stream. What is no JSON-RPC is left out: the response may still come. */
  #onMessage(data: Buffer): void {
    if (this.#hasResponse || this.#isSettled) return;
    const scan = scanTargetJson(data);
    if (!scan.ok) return;
    const shape = jsonRpcShape(data, scan.members);
    const bytes = data.subarray(scan.value.start, scan.value.end);
    switch (shape.kind) {
      case "notification":
        return this.#passNotification(bytes);
      case "request":
        return this.#ports.refuseServerRequest(shape.rawId, sessionLines(this.#headerLines));
      case "response":
        if (isSameId(shape.rawId, this.#rawId)) this.#onResponse(bytes);
        return;
      case "invalid":
        return;
    }
  }

  #passNotification(bytes: Uint8Array): void {
    this.#untakenCount += 1;
    this.#untakenBytes += bytes.length;
    if (this.#isBehind()) this.#exchange?.pause();
    this.#taken = this.#taken.then(async () => {
      if (!this.#isSettled) await this.#onNotification(bytes, this.#headers);
      this.#untakenCount -= 1;
      this.#untakenBytes -= bytes.length;
      if (!this.#isBehind()) this.#exchange?.resume();
    });
  }

  #isBehind(): boolean {
    return this.#untakenCount > UNTAKEN_COUNT_MAX || this.#untakenBytes > UNTAKEN_BYTES_MAX;
  }

  #onResponse(json: Uint8Array): void {
    this.#hasResponse = true;
    this.#tailTimer = this.#ports.runtime.schedule(STREAM_TAIL_MS, () => this.#exchange?.abort());
    const answer = { kind: "response", status: this.#status ?? 200, headers: this.#headers, json } as const;
    void this.#taken.then(() => this.#settle(answer));
  }

  #settleAfterNotifications(answer: TargetAnswer): void {
    void this.#taken.then(() => this.#settle(answer));
  }

  #settle(answer: TargetAnswer): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#signal.removeEventListener("abort", this.#onAbort);
    if (!this.#hasResponse || answer.kind === "aborted") this.#exchange?.abort();
    this.#resolve(answer);
  }
}

/** The media type without parameters, lower case; empty for none. */
export function mediaType(headerLines: readonly HeaderLine[]): string {
  const [essence = ""] = (headerValue(headerLines, "content-type") ?? "").split(";", 1);
  return essence.trim().toLowerCase();
}

/** Lines that name the MCP session the answer belongs to. */
function sessionLines(headerLines: readonly HeaderLine[]): HeaderLine[] {
  return headerLines.filter(([name]) => name.toLowerCase() === "mcp-session-id");
}

function scanTargetJson(bytes: Uint8Array) {
  return scanJson(bytes, { depthMax: TARGET_JSON_DEPTH_MAX, rejectLoneSurrogates: true });
}
