// An MCP server reached by Streamable HTTP.
//
// Spec: T20, T22, T24, R18.
// I1  One call of an McpTarget method is one HTTP request (and one more for each request the server sends back, T22): a tool
//     never runs twice because of the agent. I2  Nothing follows a redirect.

import { CORRECTION_BODY_BYTES_MAX, HEADER, RESPONSE_BODY_BYTES_MAX, scanJson } from "@moor/protocol";
import type { Logger, Runtime } from "@moor/runtime";
import { Pool } from "undici";
import { collectAnswer, type CollectedAnswer } from "../http/collect-answer.ts";
import type { ExchangeRequest } from "../http/exchange.ts";
import type { HeaderLine } from "../http/header-lines.ts";
import type { RawDump } from "../raw-dump.ts";
import { passedResponseHeaders, targetRequestHeaders, type HeaderBag } from "./header-policy.ts";
import { callOverHttp, type HttpCallPorts } from "./http-call.ts";
import type {
  McpTarget,
  OnNotification,
  TargetAnswer,
  TargetMessage,
  TargetReceipt,
  TargetRequest,
} from "./mcp-target.ts";
import { targetFaultFailure, targetHttpFailure } from "./target-failure.ts";

/** What an HTTP target is made of. */
export interface HttpTargetOptions {
  /** URL of the Streamable HTTP endpoint. */
  readonly url: URL;
  /** Lines sent with every request; a command's own win (T20). */
  readonly staticHeaders: readonly HeaderLine[];
  readonly runtime: Runtime;
  readonly logger: Logger;
  readonly dump: RawDump | undefined;
}

/** Time a probe waits for any answer, milliseconds. */
const PROBE_MS = 5_000;

/** Body read of answers whose body does not matter. Bytes. */
const IGNORED_BODY_BYTES_MAX = CORRECTION_BODY_BYTES_MAX;

/** An McpTarget over HTTP/1.1 with kept-alive connections. */
export function createHttpTarget(options: HttpTargetOptions): McpTarget {
  return new HttpTarget(options);
}

class HttpTarget implements McpTarget {
  readonly #options: HttpTargetOptions;
  readonly #path: string;
  readonly #pool: Pool;
  #lastAnswerAtMs: number | undefined;

  constructor(options: HttpTargetOptions) {
    const { url } = options;
    this.#options = options;
    this.#path = `${url.pathname}${url.search}`;
    this.#pool = new Pool(url.origin, { allowH2: false, headersTimeout: 0, bodyTimeout: 0 });
  }

  call(request: TargetRequest, onNotification: OnNotification, signal: AbortSignal): Promise<TargetAnswer> {
    const { runtime, dump, staticHeaders } = this.#options;
    const headers = targetRequestHeaders(request.headers, staticHeaders);
    const ports: HttpCallPorts = {
      runtime,
      dispatcher: this.#pool,
      dump,
      onAnswered: () => this.#onAnswered(),
      refuseServerRequest: (rawId, sessionLines) =>
        void this.#refuse(rawId, withSession(headers, sessionLines), signal),
    };
    return callOverHttp(ports, this.#post(headers, request.bytes), request.rawId, onNotification, signal);
  }

  async notify(message: TargetMessage, signal: AbortSignal): Promise<TargetReceipt> {
    const headers = targetRequestHeaders(message.headers, this.#options.staticHeaders);
    return receipt(await this.#collect(this.#post(headers, message.bytes), signal));
  }

  async terminate(commandHeaders: HeaderBag, signal: AbortSignal): Promise<TargetReceipt> {
    const headers = targetRequestHeaders(commandHeaders, this.#options.staticHeaders, true);
    return receipt(await this.#collect({ method: "DELETE", path: this.#path, headers }, signal));
  }

  async discover(signal: AbortSignal): Promise<TargetAnswer> {
    const { pathname } = this.#options.url;
    const request: ExchangeRequest = {
      method: "GET",
      path: `/.well-known/oauth-protected-resource${pathname === "/" ? "" : pathname}`,
      headers: [[HEADER.accept, "application/json"]],
    };
    return metadataAnswer(await this.#collect(request, signal, RESPONSE_BODY_BYTES_MAX));
  }

  async probe(signal: AbortSignal): Promise<boolean> {
    const request: ExchangeRequest = { method: "OPTIONS", path: this.#path, headers: [] };
    const answer = await this.#collect(request, signal, IGNORED_BODY_BYTES_MAX, PROBE_MS);
    return answer.kind === "answer" || answer.kind === "cut";
  }

  lastAnswerAtMs(): number | undefined {
    return this.#lastAnswerAtMs;
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }

  #post(headers: readonly HeaderLine[], body: Uint8Array): ExchangeRequest {
    return { method: "POST", path: this.#path, headers, body };
  }

  async #collect(
    request: ExchangeRequest,
    signal: AbortSignal,
    bodyBytesMax = IGNORED_BODY_BYTES_MAX,
    deadlineMs?: number,
  ): Promise<CollectedAnswer> {
    const { runtime, dump } = this.#options;
    const limits = { deadlineMs, bodyBytesMax: () => bodyBytesMax };
    const pending = collectAnswer(runtime, this.#pool, request, limits, signal);
    const answer = await (dump === undefined ? pending : dump.exchange("target", request, pending));
    if (answer.kind === "answer" || answer.kind === "cut") this.#onAnswered();
    return answer;
  }

  async #refuse(rawId: string, headers: readonly HeaderLine[], signal: AbortSignal): Promise<void> {
    const error = '{"code":-32601,"message":"not available through this connection"}';
    const body = Buffer.from(`{"jsonrpc":"2.0","id":${rawId},"error":${error}}`);
    const answer = await this.#collect(this.#post(headers, body), signal);
    this.#options.logger.debug("server-request-refused", { outcome: answer.kind });
  }

  #onAnswered(): void {
    this.#lastAnswerAtMs = this.#options.runtime.monotonicMs();
  }
}

/** The call's own request headers, with the session its answer opened if it opened one. */
function withSession(headers: readonly HeaderLine[], session: readonly HeaderLine[]): readonly HeaderLine[] {
  if (session.length === 0) return headers;
  return [...headers.filter(([name]) => name.toLowerCase() !== "mcp-session-id"), ...session];
}

function receipt(answer: CollectedAnswer): TargetReceipt {
  switch (answer.kind) {
    case "cancelled":
      return { kind: "aborted" };
    case "fault":
      return targetFaultFailure(answer.category, answer.wasWritten, false);
    case "cut":
    case "answer": {
      const headers = passedResponseHeaders(answer.headerLines);
      if (answer.status >= 200 && answer.status <= 299) return { kind: "accepted", headers };
      return targetHttpFailure(answer.status, headers);
    }
  }
}

function metadataAnswer(answer: CollectedAnswer): TargetAnswer {
  if (answer.kind === "answer" && answer.status === 200 && answer.isComplete) {
    const scan = scanJson(answer.body, { depthMax: 64, rejectLoneSurrogates: true });
    if (scan.ok && scan.kind === "object") {
      const json = answer.body.subarray(scan.value.start, scan.value.end);
      return { kind: "response", status: 200, headers: passedResponseHeaders(answer.headerLines), json };
    }
  }
  const rejected: HeaderBag = {};
  if (answer.kind === "cancelled") return { kind: "aborted" };
  if (answer.kind === "fault") return targetFaultFailure(answer.category, answer.wasWritten, false);
  return targetHttpFailure(answer.status < 400 ? 404 : answer.status, rejected);
}
