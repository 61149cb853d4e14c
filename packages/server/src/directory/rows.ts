// Rows of the store as the records of directory.ts.
//
// The store is our own and its writers validate, so a row that does not fit is a bug or a damaged file: it throws.

import { parseTunnelId } from "@moor/protocol";
import { invariant } from "@moor/runtime";
import {
  ACCESS_MODES,
  parseShardId,
  type Change,
  type ChangeKind,
  type KeyRecord,
  type SealingKey,
  type TunnelRecord,
} from "./directory.ts";
import { KEY_KINDS } from "./keys.ts";
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
  const shard = parseShardId(textAt(row, "shard"));
  const access = ACCESS_MODES.find((mode) => mode === row["access"]);
  invariant(
    id !== undefined && shard !== undefined && access !== undefined,
    "D1 a stored tunnel is well formed",
  );
  return {
    id,
    name: textAt(row, "name"),
    description: textAt(row, "description"),
    access,
    deadlineMs: integerAt(row, "deadline_ms"),
    createdAtMs: integerAt(row, "created_at_ms"),
    isSeen: integerAt(row, "is_seen") === 1,
    placement: { shard, revision: integerAt(row, "revision") },
  };
}

/** A row of READ.key. */
export function keyFromRow(row: Row): StoredKey {
  const kind = KEY_KINDS.find((known) => known === row["kind"]);
  invariant(kind !== undefined, "D2 a stored key is of a known kind");
  const record = {
    id: textAt(row, "id"),
    kind,
    tenant: textAt(row, "tenant"),
    label: textAt(row, "label"),
    prefix: textAt(row, "prefix"),
    createdAtMs: integerAt(row, "created_at_ms"),
    isRevoked: integerAt(row, "is_revoked") === 1,
  };
  return { record, hashHex: textAt(row, "hash") };
}

const CHANGE_KINDS: readonly ChangeKind[] = ["tunnel", "key", "placement", "token-key", "shard", "node"];

/** A row of READ.changesAfter. */
export function changeFromRow(row: Row): Change {
  const kind = CHANGE_KINDS.find((known) => known === row["kind"]);
  invariant(kind !== undefined, "D3 a stored change is of a known kind");
  return { seq: integerAt(row, "seq"), kind, id: textAt(row, "id") };
}

/** A row of READ.sealingKeys. */
export function sealingKeyFromRow(row: Row): SealingKey {
  const secret = Buffer.from(textAt(row, "secret"), "base64url");
  invariant(secret.length === 32, "D4 a token key has 32 bytes");
  return {
    id: textAt(row, "id"),
    secret: new Uint8Array(secret),
    state: row["state"] === "sealing" ? "sealing" : "accepted",
  };
}

/** A text column. */
export function textAt(row: Row, column: string): string {
  const value = row[column];
  invariant(typeof value === "string", `D5 ${column} is text`);
  return value;
}

/** An integer column. */
export function integerAt(row: Row, column: string): number {
  const value = row[column];
  invariant(Number.isSafeInteger(value), `D6 ${column} is a safe integer`);
  return value as number;
}
