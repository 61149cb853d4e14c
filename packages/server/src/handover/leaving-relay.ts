// Takes to a process that leaves what only it can use: agents' answers to the calls it holds, and polls that may bring its
// queued calls out. Its port has been taken over, so they come to the process that follows.
//
// Spec: T4, T6, L24.
// I1  A body is read only once somebody at the other end takes it; what breaks after that is answered 503, and the agent
//     delivers again (T19).
// I2  A poll is answered from there only with commands; else it waits for this process.

import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { HEADER, isHopByHop, ProtocolError, RESPONSE_BODY_BYTES_MAX } from "@moor/protocol";
import type { HttpExchange, ReplyHeaders } from "../http/http-exchange.ts";
import { readRequestBody } from "../http/request-body.ts";
import { replyError } from "../http/reply-error.ts";
import { RETRY_AFTER_S } from "../server-limits.ts";

/** Most bytes of an answer that is passed on: commands, several of the largest size. Bytes. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

const RELAYED = /^\/v1\/tunnels\/[^/]+\/(poll|response)$/;

/** Where a leaving process serves the one that follows. */
export function leavingSocketPath(dataDir: string): string {
  return join(dataDir, "leaving.sock");
}

/** Has the leaving process at `socketPath` answer; false when this request is none of its business, or it is gone. */
export async function relayToLeaving(exchange: HttpExchange, socketPath: string): Promise<boolean> {
  const action = RELAYED.exec(exchange.path)?.[1];
  if (action === undefined) return false;
  const socket = await open(socketPath);
  if (socket === undefined) return false;
  const body = action === "response" ? await exchange.readBody(RESPONSE_BODY_BYTES_MAX) : undefined;
  if (body?.kind === "gone" || exchange.isGone) {
    socket.destroy();
    return true;
  }
  if (body?.kind === "too-large") {
    socket.destroy();
    replyError(exchange, new ProtocolError("request_body_too_large"));
    return true;
  }
  const answer = await ask(exchange, socket, body?.bytes).catch(() => undefined);
  socket.destroy();
  if (action === "poll" && answer?.status !== 200) return exchange.isGone;
  if (answer === undefined) {
    replyError(exchange, new ProtocolError("node_draining", { retryAfterS: RETRY_AFTER_S }));
  } else {
    exchange.reply(answer.status, answer.headers, answer.body);
  }
  return true;
}

function open(path: string): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once("connect", () => resolve(socket));
    socket.on("error", () => resolve(undefined));
  });
}

interface Answer {
  readonly status: number;
  readonly headers: ReplyHeaders;
  readonly body: Uint8Array;
}

async function ask(exchange: HttpExchange, socket: Socket, body: Uint8Array | undefined): Promise<Answer> {
  const { method, path, query, requestId } = exchange;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const sent = httpRequest({
    createConnection: () => socket,
    method,
    path: query === "" ? path : `${path}?${query}`,
    headers: [...forwarded(exchange.rawHeaders), HEADER.requestId, requestId],
    setHost: false,
  });
  sent.on("response", resolve).on("error", reject);
  exchange.onGone(() => sent.destroy());
  sent.end(body);
  const response = await promise;
  const read = await readRequestBody(response, 0, ANSWER_BYTES_MAX);
  if (read.kind !== "complete") throw new Error("the answer did not come whole");
  return { status: response.statusCode ?? 502, headers: answered(response), body: read.bytes };
}

/** Field lines for the next connection. */
function forwarded(rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_, at) => {
    const name = (rawHeaders[at - (at % 2)] ?? "").toLowerCase();
    return !isHopByHop(name) && name !== "x-request-id" && name !== "expect";
  });
}

function answered({ headers }: IncomingMessage): ReplyHeaders {
  const own = new Set(["content-length", "date", "x-request-id"]);
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || own.has(name) || isHopByHop(name) ? [] : [[name, value]],
    ),
  );
}
