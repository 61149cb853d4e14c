// Rows of the store as the records of records.ts.
//
// The store is our own and its writers validate, so a row that does not fit is a bug or a damaged file: it throws.

import { parseHomeId, parseTunnelId } from "@moor/protocol";
import { invariant } from "@moor/runtime";
import { integerAt, memberAt, textAt, textOrNullAt } from "./columns.ts";
import { SERVICE_KEY_STATES, type HomeRecord, type ServiceKeyRecord } from "./home-records.ts";
import { KEY_KINDS } from "./keys.ts";
import {
  ACCESS_MODES,
  CHANGE_KINDS,
  JOB_STATES,
  NODE_ROLES,
  parseShardId,
  SHARD_STATES,
  type Change,
  type Job,
  type KeyRecord,
  type MadeMove,
  type NodeRecord,
  type Placement,
  type ShardId,
  type ShardRecord,
  type TokenKeyRecord,
  type TunnelRecord,
} from "./records.ts";
import type { Row } from "./statements.ts";

/** A key as stored: its record, and the hash that its text is looked up by. */
export interface StoredKey {
  readonly record: KeyRecord;
  /** SHA-256 of the key's text, 64 hexadecimal digits. */
  readonly hashHex: string;
}

/** A row of READ.tunnel. */
export function tunnelFromRow(row: Row): TunnelRecord {
  const id = parseTunnelId(textAt(row, "id"));
  invariant(id !== undefined, "D1 a stored tunnel is well formed");
  return {
    id,
    name: textAt(row, "name"),
    description: textAt(row, "description"),
    access: memberAt(row, "access", ACCESS_MODES),
    deadlineMs: integerAt(row, "deadline_ms"),
    createdAtMs: integerAt(row, "created_at_ms"),
    isSeen: integerAt(row, "is_seen") === 1,
    placement: placementFromRow(row),
  };
}

/** A row of READ.home. */
export function homeFromRow(row: Row): HomeRecord {
  const id = parseHomeId(textAt(row, "id"));
  const tunnelText = textOrNullAt(row, "tunnel");
  const tunnel = tunnelText === null ? null : parseTunnelId(tunnelText);
  invariant(id !== undefined && tunnel !== undefined, "D15 a stored home is well formed");
  return {
    id,
    label: textAt(row, "label"),
    boxKey: textOrNullAt(row, "box_key"),
    boxHasShard: row["box_has_shard"] === null ? null : integerAt(row, "box_has_shard") === 1,
    boxSeenAtMs: row["box_seen_at_ms"] === null ? null : integerAt(row, "box_seen_at_ms"),
    tunnel,
    createdAtMs: integerAt(row, "created_at_ms"),
    placement: placementFromRow(row),
  };
}

/** A row of READ.serviceKeys: never its secret. */
export function serviceKeyFromRow(row: Row): ServiceKeyRecord {
  return {
    id: textAt(row, "id"),
    publicKey: textAt(row, "public_key"),
    state: memberAt(row, "state", SERVICE_KEY_STATES),
    createdAtMs: integerAt(row, "created_at_ms"),
    stateSinceMs: integerAt(row, "state_since_ms"),
    createdBy: textAt(row, "created_by"),
  };
}

/** A row of READ.placement. */
export function placementFromRow(row: Row, shardColumn = "shard"): Placement {
  return {
    shard: shardAt(row, shardColumn),
    revision: integerAt(row, "revision"),
    tokenKey: textAt(row, "token_key"),
    tokenFormat: integerAt(row, "token_format"),
  };
}

/** A row of READ.key. */
export function keyFromRow(row: Row): StoredKey {
  const record = {
    id: textAt(row, "id"),
    kind: memberAt(row, "kind", KEY_KINDS),
    tenant: textAt(row, "tenant"),
    label: textAt(row, "label"),
    prefix: textAt(row, "prefix"),
    createdAtMs: integerAt(row, "created_at_ms"),
    isRevoked: integerAt(row, "is_revoked") === 1,
  };
  return { record, hashHex: textAt(row, "hash") };
}

/** A row of READ.changesAfter. */
export function changeFromRow(row: Row): Change {
  return { seq: integerAt(row, "seq"), kind: memberAt(row, "kind", CHANGE_KINDS), id: textAt(row, "id") };
}

/** A row of READ.tokenKeys. */
export function tokenKeyFromRow(row: Row): TokenKeyRecord {
  return {
    id: textAt(row, "id"),
    state: memberAt(row, "state", ["sealing", "accepted"]),
    createdAtMs: integerAt(row, "created_at_ms"),
    stateSinceMs: integerAt(row, "state_since_ms"),
    createdBy: textAt(row, "created_by"),
    placementCount: integerAt(row, "placement_count"),
  };
}

/** A row of READ.shards. */
export function shardFromRow(row: Row): ShardRecord {
  return {
    id: shardAt(row, "id"),
    node: textAt(row, "node"),
    publicHost: textAt(row, "public_host"),
    state: memberAt(row, "state", SHARD_STATES),
    leaseCounter: integerAt(row, "lease_counter"),
  };
}

/** A row of READ.nodes. */
export function nodeFromRow(row: Row): NodeRecord {
  const roles = textAt(row, "roles").split(",");
  return {
    id: textAt(row, "id"),
    incarnation: textAt(row, "incarnation"),
    internalUrl: textAt(row, "internal_url"),
    roles: NODE_ROLES.filter((role) => roles.includes(role)),
    version: textAt(row, "version"),
    state: memberAt(row, "state", ["live", "left"]),
    startRevision: integerAt(row, "start_revision"),
  };
}

/** A row of READ.move. */
export function moveFromRow(row: Row): MadeMove {
  const from = textOrNullAt(row, "from_shard");
  return {
    id: textAt(row, "id"),
    tenant: textAt(row, "tenant"),
    from: from === null ? null : shardAt(row, "from_shard"),
    to: shardAt(row, "to_shard"),
    revision: integerAt(row, "revision"),
    atMs: integerAt(row, "at_ms"),
    actor: textAt(row, "actor"),
    reason: textAt(row, "reason"),
    job: textOrNullAt(row, "job"),
    placement: placementFromRow(row, "to_shard"),
  };
}

/** A row of READ.job. */
export function jobFromRow(row: Row): Job {
  const to = textAt(row, "to_shard");
  const error = textOrNullAt(row, "error");
  return {
    id: textAt(row, "id"),
    kind: memberAt(row, "kind", ["move"]),
    selector: { from: shardAt(row, "from_shard"), to: to === "spread" ? to : shardAt(row, "to_shard") },
    ratePerS: Number(textAt(row, "rate_per_s")),
    state: memberAt(row, "state", JOB_STATES),
    isForced: integerAt(row, "is_forced") === 1,
    moved: integerAt(row, "moved"),
    blocked: integerAt(row, "blocked"),
    blockedTenants: textAt(row, "blocked_tenants")
      .split(" ")
      .filter((tenant) => tenant !== ""),
    total: integerAt(row, "total"),
    cursor: textOrNullAt(row, "last_tenant"),
    actor: textAt(row, "actor"),
    reason: textAt(row, "reason"),
    createdAtMs: integerAt(row, "created_at_ms"),
    ...(error === null ? {} : { error }),
  };
}

/** A column that holds a shard's id. */
export function shardAt(row: Row, column: string): ShardId {
  const shard = parseShardId(textAt(row, column));
  invariant(shard !== undefined, `D8 ${column} is a shard id`);
  return shard;
}
