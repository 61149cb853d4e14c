// Who asks for a home over plain HTTP, and whether this is the place to ask.
//
// Spec: L2, L7, L21, L25, L33, L34.
// I1  The Host comes first, then the token: a 421 with a host is given to bearers of a good token only (L7).
// I2  A malformed token, one without a dot, an unknown home and a wrong secret get the same 401.

import { HEADER, type HomeId } from "@moor/protocol";
import type { HttpExchange } from "../../http/http-exchange.ts";
import { refuse, type Refusal } from "../../http/reply-error.ts";
import { RETRY_AFTER_S } from "../../server-limits.ts";
import type { LinkContext, TokenKind } from "./link-context.ts";
import type { DialledHost } from "./link-hosts.ts";
import { routeHome } from "./link-route.ts";
import type { RateBuckets } from "./rate-buckets.ts";

/** A request that may use its home here. */
export interface AdmittedRequest {
  readonly kind: "admitted";
  readonly home: HomeId;
  readonly dialled: DialledHost;
}

export interface RequestGate {
  readonly context: LinkContext;
  /** One-shots and snapshots by home. */
  readonly allowances: RateBuckets<HomeId>;
}

/** Lets a request in, or says why not. */
export function admitRequest(
  { context, allowances }: RequestGate,
  exchange: HttpExchange,
  kind: TokenKind,
): AdmittedRequest | Refusal {
  const { hosts, identities, runtime } = context;
  const dialled = hosts.find(exchange.header("host") ?? "", exchange.isLoopbackListener);
  if (dialled === undefined) return refuse("wrong_shard", "nothing here is known by that Host");
  const text = /^Bearer +([0-9A-Za-z._-]+)$/i.exec(exchange.header("authorization") ?? "")?.[1];
  const token = text === undefined ? undefined : identities.token(text, kind);
  if (token === undefined) {
    return refuse("unauthorized", "the token is missing, wrong or revoked", {
      headers: { "WWW-Authenticate": "Bearer" },
    });
  }
  const waitMs = allowances.take(token.home, runtime.monotonicMs());
  if (waitMs > 0) return refuse("rate_limit_exceeded", undefined, { retryAfterS: waitMs / 1000 });
  return checkRoute(context, token.home, dialled) ?? { kind: "admitted", home: token.home, dialled };
}

/** Where the request belongs now, if not here. */
export function checkRoute(context: LinkContext, home: HomeId, dialled: DialledHost): Refusal | undefined {
  const route = routeHome(context, home, dialled, true);
  switch (route.kind) {
    case "serve":
      return undefined;
    case "redirect":
      return refuse("wrong_shard", undefined, { headers: { [HEADER.ftwShard]: route.host } });
    case "wait":
      return refuse("link_plane_unavailable", "the home's shard is restarting", {
        retryAfterS: context.spreadMs() / 1000,
      });
  }
}

/** The owner is out of reach, or says nothing. */
export function ownerUnavailable(): Refusal {
  return refuse("link_plane_unavailable", "the home's shard cannot be reached now", {
    retryAfterS: RETRY_AFTER_S,
  });
}
