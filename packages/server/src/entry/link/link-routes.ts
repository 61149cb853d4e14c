// The plain HTTP routes of the link plane.
//
// Spec: L2, L33, L34; L1 for the paths that are for WebSockets only.
// I1  No answer is a 3xx. I2  What any node may answer, a node without links answers too: preflights, 426.

import { LINK_PATH, ProtocolError } from "@moor/protocol";
import type { HttpExchange, ReplyHeaders } from "../../http/http-exchange.ts";
import { replyError, type Refusal } from "../../http/reply-error.ts";
import { RETRY_AFTER_S } from "../../server-limits.ts";
import { handleEnroll, type EnrollGate } from "./enroll-route.ts";
import type { RequestGate } from "./home-request.ts";
import { linkCorsHeaders, replyPreflight } from "./link-cors.ts";
import type { OneShotOutcome } from "./link-metrics.ts";
import type { LinkTable } from "./link-table.ts";
import { readSnapshot, replySnapshot } from "./now-route.ts";
import { replyResult, runOnce } from "./once-route.ts";

/** What the routes work with; none at a node without links. */
export interface LinkRoutes {
  readonly table: LinkTable;
  readonly requests: RequestGate;
  readonly enrolments: EnrollGate;
}

/** Serves a request of the link plane; undefined when its path is none of it. */
export function handleLinkRoute(
  routes: LinkRoutes | undefined,
  exchange: HttpExchange,
): Promise<void> | undefined {
  switch (exchange.path) {
    case LINK_PATH.box:
    case LINK_PATH.app:
      return handlePlainLink(routes, exchange);
    case LINK_PATH.once:
      return handleOnce(routes, exchange);
    case LINK_PATH.now:
      return handleNow(routes, exchange);
    case LINK_PATH.enroll:
      return handleEnrolment(routes, exchange);
    default:
      return undefined;
  }
}

async function handlePlainLink(routes: LinkRoutes | undefined, exchange: HttpExchange): Promise<void> {
  if (routes === undefined) return replyError(exchange, noLinks());
  replyError(exchange, new ProtocolError("upgrade_required"), {
    Upgrade: "websocket",
    Connection: "Upgrade",
  });
}

async function handleOnce(routes: LinkRoutes | undefined, exchange: HttpExchange): Promise<void> {
  const headers = linkCorsHeaders(exchange);
  if (exchange.method === "OPTIONS") return replyPreflight(exchange);
  if (exchange.method !== "POST") return refuseMethod(exchange, "POST", headers);
  if (routes === undefined) return replyError(exchange, noLinks(), headers);
  const { table, requests } = routes;
  if (table.isRefusing) return answer(routes, exchange, draining());
  const end = await runOnce(requests, table.commands, exchange);
  if (end === undefined) return;
  if (end.kind === "refused") return answer(routes, exchange, end);
  count(routes, 200);
  replyResult(exchange, end);
}

async function handleNow(routes: LinkRoutes | undefined, exchange: HttpExchange): Promise<void> {
  const headers = linkCorsHeaders(exchange);
  if (exchange.method === "OPTIONS") return replyPreflight(exchange);
  if (exchange.method !== "GET") return refuseMethod(exchange, "GET", headers);
  if (routes === undefined) return replyError(exchange, noLinks(), headers);
  const end = await readSnapshot(routes.requests, exchange);
  if (end.kind === "refused") return answer(routes, exchange, end);
  count(routes, replySnapshot(exchange, end));
}

async function handleEnrolment(routes: LinkRoutes | undefined, exchange: HttpExchange): Promise<void> {
  if (exchange.method !== "POST") return refuseMethod(exchange, "POST", {});
  if (routes === undefined) return replyError(exchange, noLinks());
  const refusal = await handleEnroll(routes.enrolments, exchange);
  if (refusal !== undefined) replyError(exchange, refusal.error, refusal.headers);
}

/** Answers a refused one-shot or snapshot. */
function answer(routes: LinkRoutes, exchange: HttpExchange, { error, headers }: Refusal): void {
  count(routes, error.status);
  replyError(exchange, error, { ...linkCorsHeaders(exchange), ...headers });
}

function count({ table }: LinkRoutes, status: number): void {
  table.context.metrics.oneShots.inc(String(status) as OneShotOutcome);
}

function refuseMethod(exchange: HttpExchange, allowed: string, headers: ReplyHeaders): void {
  replyError(exchange, new ProtocolError("method_not_allowed"), { ...headers, Allow: allowed });
}

function noLinks(): ProtocolError {
  return new ProtocolError("link_plane_unavailable", { retryAfterS: RETRY_AFTER_S });
}

function draining(): Refusal {
  return { kind: "refused", error: new ProtocolError("node_draining", { retryAfterS: RETRY_AFTER_S }) };
}
