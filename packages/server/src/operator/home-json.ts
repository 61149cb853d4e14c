// Homes, their tokens and the service's keys as the operator API shows them. Texts of tokens and codes are in none of these
// but `createdTokenJson` and `enrolmentJson`, the answers that make them.
//
// Spec: L7, L22, L26, L28.

import { hash } from "node:crypto";
import type { Secret } from "@moor/runtime";
import type {
  HomeAppRecord,
  HomeRecord,
  KeyRecord,
  MoveBlocker,
  ServiceKeyRecord,
} from "../directory/directory.ts";
import { blockerJson } from "../directory/move-blockers.ts";
import type { JsonObject } from "./operator-json.ts";

/** A home. `publicUrl` is the endpoint that callers reach. */
export function homeJson(home: HomeRecord, publicUrl: string): JsonObject {
  const { id, label, tunnel, placement } = home;
  const base = publicUrl.replace(/\/+$/, "");
  return {
    id,
    label,
    shard: placement.shard,
    revision: placement.revision,
    box: {
      enrolled: home.boxKey !== null,
      /** First 16 characters of base64url(SHA-256(raw key)), as for service keys. */
      key_id: home.boxKey === null ? null : keyIdOf(home.boxKey),
      shard: home.boxHasShard,
      last_seen_at: instantOrNull(home.boxSeenAtMs),
    },
    tunnel,
    mcp_url: tunnel === null ? null : `${base}/v1/mcp/${id}`,
    created_at: instant(home.createdAtMs),
  };
}

/** A home with its links as they are now, the apps seen at it, and who keeps it on the default shard. */
export function homeDetailJson(
  home: HomeRecord,
  publicUrl: string,
  apps: readonly HomeAppRecord[],
  blockers: readonly MoveBlocker[],
  live: JsonObject | null,
): JsonObject {
  return {
    ...homeJson(home, publicUrl),
    live,
    apps: apps.map(({ app, hasShard, lastSeenAtMs }) => ({
      app,
      shard: hasShard,
      last_seen_at: instant(lastSeenAtMs),
    })),
    move_blockers: blockers.map(blockerJson),
  };
}

/** A token without its text. */
export function tokenJson(token: KeyRecord): JsonObject {
  return {
    id: token.id,
    kind: token.kind,
    home: token.tenant,
    label: token.label,
    prefix: token.prefix,
    created_at: instant(token.createdAtMs),
    revoked: token.isRevoked,
  };
}

/** A token just created, with its text. */
export function createdTokenJson(record: KeyRecord, token: Secret): JsonObject {
  return { ...tokenJson(record), token: token.reveal() };
}

/** A code just made. */
export function enrolmentJson(home: string, code: Secret, expiresAtMs: number): JsonObject {
  return { home, code: code.reveal(), expires_at: instant(expiresAtMs) };
}

/** A service key: its public half. */
export function serviceKeyJson(key: ServiceKeyRecord): JsonObject {
  return {
    id: key.id,
    public_key: key.publicKey,
    state: key.state,
    created_at: instant(key.createdAtMs),
    state_since: instant(key.stateSinceMs),
    created_by: key.createdBy,
  };
}

function keyIdOf(rawKey: string): string {
  return hash("sha256", Buffer.from(rawKey, "base64url"), "base64url").slice(0, 16);
}

function instant(wallMs: number): string {
  return new Date(wallMs).toISOString();
}

function instantOrNull(wallMs: number | null): string | null {
  return wallMs === null ? null : instant(wallMs);
}
