// The one way a node says no over HTTP. Spec T3.

import { encodeErrorEnvelope, ProtocolError, type ErrorCode } from "@moor/protocol";
import { JSON_TYPE, NO_STORE, type HttpExchange, type ReplyHeaders } from "./http-exchange.ts";

/** Answers with the T3 envelope; `Retry-After` when the error has one. */
export function replyError(exchange: HttpExchange, error: ProtocolError, headers: ReplyHeaders = {}): void {
  const retryAfter =
    error.retryAfterS === undefined ? {} : { "Retry-After": String(Math.ceil(error.retryAfterS)) };
  exchange.reply(
    error.status,
    { ...NO_STORE, ...JSON_TYPE, ...retryAfter, ...headers },
    encodeErrorEnvelope(error),
  );
}

/** A refusal as a value: routes return it, one place answers it. */
export interface Refusal {
  readonly kind: "refused";
  readonly error: ProtocolError;
  readonly headers?: ReplyHeaders;
}

export function refuse(
  code: ErrorCode,
  message?: string,
  more: { readonly param?: string; readonly retryAfterS?: number; readonly headers?: ReplyHeaders } = {},
): Refusal {
  const { headers, ...rest } = more;
  const error = new ProtocolError(code, { ...(message === undefined ? {} : { message }), ...rest });
  return headers === undefined ? { kind: "refused", error } : { kind: "refused", error, headers };
}
