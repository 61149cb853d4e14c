// Who is asking: agent keys on agent routes, connector keys on the connector.
//
// Spec: T2, T3 (unknown tunnel: 401 on agent routes), T10.
// I1  A key opens only routes of its own kind: kinds never stand in for each other.
// I2  A text that is no key is refused before any look-up; whether a key exists and whose it is costs one look-up.

import { parseTunnelId } from "@moor/protocol";
import type { KeyRecord, TunnelRecord } from "../directory/directory.ts";
import { parseKey, type KeyKind } from "../directory/keys.ts";
import type { HttpExchange } from "../http/http-exchange.ts";
import { refuse, type Refusal } from "../http/reply-error.ts";
import { RETRY_AFTER_S } from "../server-limits.ts";
import type { TenantDirectory } from "./tenant-directory.ts";

const CHALLENGE = { "WWW-Authenticate": "Bearer" } as const;

/** An agent that proved its key for this tunnel. */
export interface AuthenticatedAgent {
  readonly kind: "agent";
  readonly tunnel: TunnelRecord;
  readonly key: KeyRecord;
}

/** Checks an agent route's tunnel id and key. Refuses with invalid_tunnel_id_format, unauthorized, forbidden. */
export async function authenticateAgent(
  exchange: HttpExchange,
  tunnelText: string,
  tenants: TenantDirectory,
): Promise<AuthenticatedAgent | Refusal> {
  const tunnelId = parseTunnelId(tunnelText);
  if (tunnelId === undefined) return refuse("invalid_tunnel_id_format");
  const keyHash = bearerKeyHash(exchange, "agent");
  if (keyHash === undefined) return unauthorized("the agent key is missing, wrong or revoked");
  const facts = await tenants.lookUp(tunnelId, keyHash);
  if (facts.kind === "unavailable") return unavailable();
  const { tunnel, key } = facts;
  if (key?.kind !== "agent") return unauthorized("the agent key is missing, wrong or revoked");
  if (tunnel === undefined) return unauthorized("no such tunnel for this key");
  if (key.tenant !== tunnelId) return refuse("forbidden", "the agent key belongs to another tunnel");
  return { kind: "agent", tunnel, key };
}

/** The hash of the connector key a caller sent, if it has the shape of one. */
export function connectorKeyHash(exchange: HttpExchange): Uint8Array | undefined {
  return bearerKeyHash(exchange, "connector");
}

/** Judges a caller's connector key for `tunnel`; `undefined` when it is right. */
export function judgeCaller(tunnel: TunnelRecord, key: KeyRecord | undefined): Refusal | undefined {
  if (key?.kind !== "connector") return unauthorized("the connector key is missing, wrong or revoked");
  return key.tenant === tunnel.id
    ? undefined
    : refuse("forbidden", "the connector key belongs to another tunnel");
}

/** Nobody who knows the tunnel could be asked. */
export function unavailable(): Refusal {
  return refuse("tunnel_transport_unavailable", undefined, { retryAfterS: RETRY_AFTER_S });
}

function unauthorized(message: string): Refusal {
  return refuse("unauthorized", message, { headers: CHALLENGE });
}

function bearerKeyHash(exchange: HttpExchange, kind: KeyKind): Uint8Array | undefined {
  const match = /^Bearer +([0-9A-Za-z_-]+)$/i.exec(exchange.header("authorization") ?? "");
  const parsed = match?.[1] === undefined ? undefined : parseKey(match[1]);
  return parsed?.kind === kind ? parsed.hash : undefined;
}
