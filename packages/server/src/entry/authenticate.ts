// Who is asking: agent keys on agent routes, connector keys on the connector.
//
// Spec: T2, T3 (unknown tunnel: 401 on agent routes), T10.
// I1  A key opens only routes of its own kind: kinds never stand in for each other.
// I2  A text that is no key is refused before any look-up; whether a key exists and whose it is costs one look-up.

import { parseTunnelId } from "@moor/protocol";
import type { KeyRecord, Replica, TunnelRecord } from "../directory/directory.ts";
import { parseKey, type KeyKind } from "../directory/keys.ts";
import type { HttpExchange } from "../http/http-exchange.ts";
import { refuse, type Refusal } from "../http/reply-error.ts";

const CHALLENGE = { "WWW-Authenticate": "Bearer" } as const;

/** An agent that proved its key for this tunnel. */
export interface AuthenticatedAgent {
  readonly kind: "agent";
  readonly tunnel: TunnelRecord;
  readonly key: KeyRecord;
}

/** Checks an agent route's tunnel id and key. Refuses with invalid_tunnel_id_format, unauthorized, forbidden. */
export function authenticateAgent(
  exchange: HttpExchange,
  tunnelText: string,
  replica: Replica,
): AuthenticatedAgent | Refusal {
  const tunnelId = parseTunnelId(tunnelText);
  if (tunnelId === undefined) return refuse("invalid_tunnel_id_format");
  const key = bearerKey(exchange, "agent", replica);
  if (key === undefined) {
    return refuse("unauthorized", "the agent key is missing, wrong or revoked", { headers: CHALLENGE });
  }
  const tunnel = replica.tunnel(tunnelId);
  if (tunnel === undefined)
    return refuse("unauthorized", "no such tunnel for this key", { headers: CHALLENGE });
  if (key.tenant !== tunnelId) return refuse("forbidden", "the agent key belongs to another tunnel");
  return { kind: "agent", tunnel, key };
}

/** Checks a caller's connector key for `tunnel`; `undefined` when it is right. */
export function authenticateCaller(
  exchange: HttpExchange,
  tunnel: TunnelRecord,
  replica: Replica,
): Refusal | undefined {
  const key = bearerKey(exchange, "connector", replica);
  if (key === undefined) {
    return refuse("unauthorized", "the connector key is missing, wrong or revoked", { headers: CHALLENGE });
  }
  return key.tenant === tunnel.id
    ? undefined
    : refuse("forbidden", "the connector key belongs to another tunnel");
}

function bearerKey(exchange: HttpExchange, kind: KeyKind, replica: Replica): KeyRecord | undefined {
  const match = /^Bearer +([0-9A-Za-z_-]+)$/i.exec(exchange.header("authorization") ?? "");
  const parsed = match?.[1] === undefined ? undefined : parseKey(match[1]);
  if (parsed === undefined || parsed.kind !== kind) return undefined;
  const record = replica.keyByHash(parsed.hash);
  return record?.kind === kind && !record.isRevoked ? record : undefined;
}
