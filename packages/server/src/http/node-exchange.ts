// An HttpExchange over node:http.
//
// Invariants: those of HttpExchange.
// I3  A body that is refused midway is drained for a moment and then cut, so that the peer can read the answer.

import type { IncomingMessage, ServerResponse } from "node:http";
import { HEADER } from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import { mintId } from "../mint-id.ts";
import { REFUSED_BODY_DRAIN_MS } from "../server-limits.ts";
import type { BodyOutcome, HttpExchange, ReplyHeaders, WriteOutcome } from "./http-exchange.ts";

/** A peer's own request id is taken over only if it is safe to print anywhere. */
const REQUEST_ID_SHAPE = /^[0-9A-Za-z_.-]{1,128}$/;

export interface NodeExchangeContext {
  readonly runtime: Runtime;
  readonly isLoopbackListener: boolean;
  /** Whether the node is leaving: answers then ask the peer to close its connection. */
  readonly isLeaving: () => boolean;
}

/** Wraps one request of a node:http server. */
export function createNodeExchange(
  request: IncomingMessage,
  response: ServerResponse,
  context: NodeExchangeContext,
): HttpExchange {
  const url = request.url ?? "/";
  const queryAt = url.indexOf("?");
  const requestId = usableRequestId(request) ?? mintId("req", context.runtime);
  const isGone = () => response.destroyed || response.socket === null || response.socket.destroyed;

  const allHeaders = (headers: ReplyHeaders): Record<string, string | readonly string[]> => {
    const closing = context.isLeaving() || hasUnreadBody(request) ? { Connection: "close" } : {};
    return { [HEADER.requestId]: requestId, ...closing, ...headers };
  };

  return {
    method: request.method ?? "GET",
    path: queryAt < 0 ? url : url.slice(0, queryAt),
    query: queryAt < 0 ? "" : url.slice(queryAt + 1),
    rawHeaders: request.rawHeaders,
    isLoopbackListener: context.isLoopbackListener,
    requestId,
    header: (name) => joinedHeader(request, name),
    headerLines: (name) => headerLines(request.rawHeaders, name),
    readBody: (bytesMax) => readBody(request, bytesMax),
    onGone: (run) => {
      response.once("close", () => {
        if (!response.writableFinished) run();
      });
    },
    get isGone() {
      return isGone();
    },
    reply: (status, headers, body) => {
      if (isGone()) return "not-written";
      const bytes = typeof body === "string" ? Buffer.from(body) : body;
      const length = bytes === undefined ? (mayHaveBody(status) ? 0 : undefined) : bytes.byteLength;
      response.writeHead(status, {
        ...allHeaders(headers),
        ...(length === undefined ? {} : { "Content-Length": length }),
      } as Record<string, string | string[] | number>);
      response.end(bytes);
      if (hasUnreadBody(request)) drainThenCut(request, context.runtime);
      return "written";
    },
    startStream: (status, headers): WriteOutcome => {
      if (isGone()) return "not-written";
      response.writeHead(status, allHeaders(headers) as Record<string, string | string[]>);
      response.flushHeaders();
      return "written";
    },
    writeChunk: (chunk) => {
      if (isGone()) return 0;
      response.write(chunk);
      return response.writableLength;
    },
    endStream: () => {
      response.end();
    },
    destroy: () => {
      request.destroy();
    },
  };
}

/** Whether body bytes may still come. A request without a body is not `complete` either while its head is handled. */
function hasUnreadBody(request: IncomingMessage): boolean {
  if (request.complete) return false;
  const { "transfer-encoding": coding, "content-length": length } = request.headers;
  return coding !== undefined || Number(length ?? 0) > 0;
}

function usableRequestId(request: IncomingMessage): string | undefined {
  const given = request.headers["x-request-id"];
  return typeof given === "string" && REQUEST_ID_SHAPE.test(given) ? given : undefined;
}

function joinedHeader(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

function headerLines(rawHeaders: readonly string[], name: string): string[] {
  const lines: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() === name) lines.push(rawHeaders[at + 1] ?? "");
  }
  return lines;
}

function mayHaveBody(status: number): boolean {
  return status >= 200 && status !== 204 && status !== 304;
}

function readBody(request: IncomingMessage, bytesMax: number): Promise<BodyOutcome> {
  return new Promise((resolve) => {
    const declared = Number(request.headers["content-length"] ?? 0);
    if (declared > bytesMax) return resolve({ kind: "too-large" });
    const chunks: Buffer[] = [];
    let byteCount = 0;
    const finish = (outcome: BodyOutcome) => {
      request.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose);
      resolve(outcome);
    };
    const onData = (chunk: Buffer) => {
      byteCount += chunk.byteLength;
      if (byteCount > bytesMax) {
        request.pause();
        finish({ kind: "too-large" });
      } else chunks.push(chunk);
    };
    const onEnd = () => {
      const [only] = chunks;
      finish({
        kind: "complete",
        bytes: chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, byteCount),
      });
    };
    const onClose = () => finish({ kind: "gone" });
    request.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose);
  });
}

function drainThenCut(request: IncomingMessage, runtime: Runtime): void {
  const timer = runtime.schedule(REFUSED_BODY_DRAIN_MS, () => request.destroy());
  request.once("close", () => runtime.cancel(timer));
  request.resume();
}
