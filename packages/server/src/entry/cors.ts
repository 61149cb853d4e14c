// Cross-origin access to the connector, by setting.
//
// Spec: T9.

import { NO_STORE, type HttpExchange, type ReplyHeaders } from "../http/http-exchange.ts";

const EXPOSED = "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, X-Request-Id, Retry-After";

/** CORS headers for an answer: empty when the setting does not name the request's origin. */
export function corsHeaders(exchange: HttpExchange, origins: readonly string[]): ReplyHeaders {
  if (origins.length === 0) return {};
  const origin = exchange.header("origin");
  if (origin === undefined || !(origins.includes("*") || origins.includes(origin))) return { Vary: "Origin" };
  return { "Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": EXPOSED, Vary: "Origin" };
}

/** Answers a preflight. `false` when this is none or its origin is not allowed. */
export function answerPreflight(exchange: HttpExchange, headers: ReplyHeaders): boolean {
  if (exchange.method !== "OPTIONS" || headers["Access-Control-Allow-Origin"] === undefined) return false;
  exchange.reply(204, {
    ...NO_STORE,
    ...headers,
    "Access-Control-Allow-Methods": "POST, DELETE",
    "Access-Control-Allow-Headers": exchange.header("access-control-request-headers") ?? "",
    "Access-Control-Max-Age": "600",
  });
  return true;
}
