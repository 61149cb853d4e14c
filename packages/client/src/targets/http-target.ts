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
import type { McpTarget, TargetAnswer, TargetReceipt, TargetRequest } from "./mcp-target.ts";
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
  const { runtime, logger, dump, staticHeaders, url } = options;
  const path = `${url.pathname}${url.search}`;
  const pool = new Pool(url.origin, { allowH2: false, headersTimeout: 0, bodyTimeout: 0 });
  let lastAnswerAtMs: number | undefined;
  const onAnswered = () => {
    lastAnswerAtMs = runtime.monotonicMs();
  };

  const collect = async (request: ExchangeRequest, signal: AbortSignal, bodyBytesMax: number, deadlineMs?: number) => {
    const limits = { deadlineMs, bodyBytesMax: () => bodyBytesMax };
    const pending = collectAnswer(runtime, pool, request, limits, signal);
    const answer = await (dump === undefined ? pending : dump.exchange("target", request, pending));
    if (answer.kind === "answer" || answer.kind === "cut") onAnswered();
    return answer;
  };
  const refuse = async (rawId: string, headers: readonly HeaderLine[], signal: AbortSignal) => {
    const text = `{"jsonrpc":"2.0","id":${rawId},"error":{"code":-32601,"message":"not available through this connection"}}`;
    const request: ExchangeRequest = { method: "POST", path, headers, body: Buffer.from(text) };
    const answer = await collect(request, signal, IGNORED_BODY_BYTES_MAX);
    logger.debug("server-request-refused", { outcome: answer.kind });
  };

  return {
    call: (request: TargetRequest, onNotification, signal) => {
      const headers = targetRequestHeaders(request.headers, staticHeaders);
      const ports: HttpCallPorts = {
        runtime,
        dispatcher: pool,
        dump,
        onAnswered,
        refuseServerRequest: (rawId, sessionLines) =>
          void refuse(rawId, withSession(headers, sessionLines), signal),
      };
      const post: ExchangeRequest = { method: "POST", path, headers, body: request.bytes };
      return callOverHttp(ports, post, request.rawId, onNotification, signal);
    },
    notify: async (message, signal) => {
      const headers = targetRequestHeaders(message.headers, staticHeaders);
      const post: ExchangeRequest = { method: "POST", path, headers, body: message.bytes };
      return receipt(await collect(post, signal, IGNORED_BODY_BYTES_MAX));
    },
    terminate: async (commandHeaders, signal) => {
      const headers = targetRequestHeaders(commandHeaders, staticHeaders, true);
      return receipt(await collect({ method: "DELETE", path, headers }, signal, IGNORED_BODY_BYTES_MAX));
    },
    discover: async (signal) => {
      const wellKnown = `/.well-known/oauth-protected-resource${url.pathname === "/" ? "" : url.pathname}`;
      const request: ExchangeRequest = {
        method: "GET",
        path: wellKnown,
        headers: [[HEADER.accept, "application/json"]],
      };
      return metadataAnswer(await collect(request, signal, RESPONSE_BODY_BYTES_MAX));
    },
    probe: async (signal) => {
      const answer = await collect({ method: "OPTIONS", path, headers: [] }, signal, IGNORED_BODY_BYTES_MAX, PROBE_MS);
      return answer.kind === "answer" || answer.kind === "cut";
    },
    lastAnswerAtMs: () => lastAnswerAtMs,
    close: () => pool.destroy(),
  };
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
