// The public listener's paths: agents, callers and load balancers. Nothing administrative.
//
// Spec: T1, T3, T9.
// I1  No route ever answers 3xx: an old client re-sends its key on redirects.

import { ProtocolError } from "@moor/protocol";
import { JSON_TYPE, NO_STORE, type HttpExchange } from "../http/http-exchange.ts";
import { replyError } from "../http/reply-error.ts";
import { handleResponse } from "./agent-answers.ts";
import { handleMetadata, handlePoll, type AgentApi } from "./agent-api.ts";
import { handleConnector } from "./connector.ts";

const CONNECTOR_PATH = /^\/v1\/mcp\/([^/]*)(?:\/([^/]*))?$/;
const TUNNEL_PATH = /^\/v1\/tunnels\/([^/]*)(?:\/(poll|response))?$/;

/** Handles one request of the public listener. */
export async function handlePublicRequest(
  api: AgentApi,
  isReady: () => boolean,
  exchange: HttpExchange,
): Promise<void> {
  const connector = CONNECTOR_PATH.exec(exchange.path);
  if (connector !== null) return handleConnector(api, exchange, connector[1] ?? "", connector[2]);
  const tunnel = TUNNEL_PATH.exec(exchange.path);
  if (tunnel !== null) return handleTunnelRoute(api, exchange, tunnel[1] ?? "", tunnel[2]);
  if (replyHealth(exchange, isReady)) return;
  replyError(exchange, new ProtocolError("not_found"));
}

async function handleTunnelRoute(
  api: AgentApi,
  exchange: HttpExchange,
  tunnelText: string,
  action: string | undefined,
): Promise<void> {
  const method = action === "response" ? "POST" : "GET";
  if (exchange.method !== method) {
    return replyError(exchange, new ProtocolError("method_not_allowed"), { Allow: method });
  }
  if (action === "response") return handleResponse(api, exchange, tunnelText);
  if (action === "poll") return handlePoll(api, exchange, tunnelText);
  return handleMetadata(api, exchange, tunnelText);
}

/** Answers what balancers ask, of any node at any time; false when it is asked something else. Spec T1. */
export function replyHealth(exchange: HttpExchange, isReady: () => boolean): boolean {
  if (exchange.path === "/healthz") replyState(exchange, true);
  else if (exchange.path === "/readyz") replyState(exchange, isReady());
  else return false;
  return true;
}

/** Health and readiness say yes or no and nothing else. Spec T1. */
function replyState(exchange: HttpExchange, isOk: boolean): void {
  if (exchange.method !== "GET" && exchange.method !== "HEAD") {
    return replyError(exchange, new ProtocolError("method_not_allowed"), { Allow: "GET" });
  }
  exchange.reply(isOk ? 200 : 503, { ...NO_STORE, ...JSON_TYPE }, isOk ? '{"ok":true}' : '{"ok":false}');
}
