// One-shots and snapshots are for pages of any origin: what they may do is in their token, not in a cookie.
//
// Spec: L2.
// I1  Every answer carries these headers, whatever its status; a preflight is answered by any node, to anybody: also by one
//     that does not serve yet, or any more, or whose handler failed.

import { LINK_PATH } from "@moor/protocol";
import { NO_STORE, type HttpExchange, type ReplyHeaders } from "../../http/http-exchange.ts";

/** How long a browser may remember a preflight. Seconds: what Chromium remembers at most is twelve times that. */
const PREFLIGHT_AGE_S = 600;

/** The headers of every answer of `/v1/app/once` and `/v1/now`. */
export function linkCorsHeaders(exchange: HttpExchange): ReplyHeaders {
  return {
    "Access-Control-Allow-Origin": exchange.header("origin") ?? "*",
    "Access-Control-Expose-Headers": "Ftw-Shard, Retry-After, ETag, Age",
    Vary: "Origin",
  };
}

/** Answers a preflight. */
export function replyPreflight(exchange: HttpExchange): void {
  exchange.reply(204, {
    ...NO_STORE,
    ...linkCorsHeaders(exchange),
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "authorization, content-type, if-none-match",
    "Access-Control-Max-Age": String(PREFLIGHT_AGE_S),
  });
}

/** The headers of an answer that its route did not make: those of I1 where it is one for pages, else none. */
export function pageHeaders(exchange: HttpExchange): ReplyHeaders {
  return isForPages(exchange) ? linkCorsHeaders(exchange) : {};
}

/** Answers a preflight of a route for pages; false when it is something else. */
export function answerPagePreflight(exchange: HttpExchange): boolean {
  if (exchange.method !== "OPTIONS" || !isForPages(exchange)) return false;
  replyPreflight(exchange);
  return true;
}

function isForPages({ path }: HttpExchange): boolean {
  return path === LINK_PATH.once || path === LINK_PATH.now;
}
