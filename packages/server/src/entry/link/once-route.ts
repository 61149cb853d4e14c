// `POST /v1/app/once`: one command, and its ending as the answer.
//
// Spec: L33; L2 for where it is answered.
// I1  503 and 410 say that the box certainly did not act; 504 that nobody knows.
// I2  A client that leaves withdraws its command; the box may still act on it.

import { LINK_FRAME_BYTES_MAX, type CommandId, type HomeId } from "@moor/protocol";
import { JSON_TYPE, NO_STORE, type HttpExchange } from "../../http/http-exchange.ts";
import { refuse, type Refusal } from "../../http/reply-error.ts";
import type { SubmissionId } from "../../peer/link-ports.ts";
import { RETRY_AFTER_S } from "../../server-limits.ts";
import { admitRequest, type RequestGate } from "./home-request.ts";
import { linkCorsHeaders } from "./link-cors.ts";
import type { CommandEnd, CommandTable } from "./link-commands.ts";
import { ONCE_TTL_MS_MAX } from "./link-limits.ts";
import { parseOnceBody } from "./once-body.ts";

/** How a one-shot ends: with the raw JSON of its result, or refused. */
export type OnceEnd = { readonly kind: "result"; readonly id: CommandId; readonly data: string } | Refusal;

/** Serves a one-shot; resolves with what is to be answered, or undefined when the client has left. */
export async function runOnce(
  gate: RequestGate,
  commands: CommandTable,
  exchange: HttpExchange,
): Promise<OnceEnd | undefined> {
  const admitted = admitRequest(gate, exchange, "app");
  if (admitted.kind === "refused") return admitted;
  if (!/^application\/json\s*(;|$)/i.test(exchange.header("content-type") ?? "")) {
    return refuse("unsupported_media_type");
  }
  const body = await exchange.readBody(LINK_FRAME_BYTES_MAX);
  if (body.kind === "gone") return undefined;
  if (body.kind === "too-large") return refuse("request_body_too_large");
  const parsed = parseOnceBody(body.bytes);
  if (parsed.kind === "refused") return parsed;
  const { id, ttlMs, data } = parsed;
  const command = { home: admitted.home, id, ttlMs: Math.min(ttlMs, ONCE_TTL_MS_MAX), data };
  const end = await submitted(commands, exchange, command);
  return end.kind === "result" ? { kind: "result", id, data: end.data } : refusalOf(end);
}

/** Answers with a result. */
export function replyResult(
  exchange: HttpExchange,
  { id, data }: Extract<OnceEnd, { readonly kind: "result" }>,
): void {
  exchange.reply(
    200,
    { ...NO_STORE, ...JSON_TYPE, ...linkCorsHeaders(exchange) },
    `{"id":"${id}","data":${data}}`,
  );
}

function submitted(
  commands: CommandTable,
  exchange: HttpExchange,
  command: {
    readonly home: HomeId;
    readonly id: CommandId;
    readonly ttlMs: number;
    readonly data: string;
  },
): Promise<CommandEnd> {
  return new Promise((resolve) => {
    const submission: SubmissionId = commands.submit({
      ...command,
      app: undefined,
      waiter: { written: () => {}, ended: resolve },
    });
    exchange.onGone(() => commands.withdraw(submission));
  });
}

function refusalOf(end: Exclude<CommandEnd, { readonly kind: "result" }>): Refusal {
  switch (end.kind) {
    case "unknown":
      return refuse("command_unknown");
    case "not-delivered":
      return refuse("command_not_delivered", undefined, { retryAfterS: RETRY_AFTER_S });
    case "expired":
      return refuse("command_expired");
  }
}
