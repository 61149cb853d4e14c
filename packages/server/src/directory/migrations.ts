// The directory's schema in SQLite, as numbered steps that are applied at start.
//
// I1  A step that has shipped never changes; a new one is added behind it (expand, then contract).
// I2  Each step commits together with its row in `migrations`, so that a kill in between repeats nothing.
// I3  A database with a step this program does not know is refused, not guessed at.

import type { DatabaseSync } from "node:sqlite";

/** One step of the schema; `version` counts from 1 without gaps. */
export interface Migration {
  readonly version: number;
  readonly sql: string;
}

/** What applying migrations came to. */
export type MigrationOutcome =
  | { readonly kind: "current"; readonly version: number }
  | { readonly kind: "too-new"; readonly version: number; readonly known: number };

/** Every step so far. */
export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    sql: `
create table residency (name text primary key, incarnation text not null, corrections integer not null) strict;
create table nodes (
  id text primary key, incarnation text not null, state text not null, registered_at_ms integer not null
) strict;
create table shards (
  id text primary key, node text not null, public_host text not null, state text not null,
  lease_counter integer not null
) strict;
create table tunnels (
  id text primary key, name text not null, description text not null, access text not null,
  deadline_ms integer not null, created_at_ms integer not null, is_seen integer not null
) strict;
create table keys (
  id text primary key, kind text not null, tenant text not null, hash text not null unique,
  prefix text not null, label text not null, created_at_ms integer not null, is_revoked integer not null
) strict;
create index keys_by_tenant on keys (tenant, id);
create table placements (
  tenant text primary key, shard text not null, revision integer not null, token_key text not null,
  token_format integer not null, reason text not null
) strict;
create index placements_by_shard on placements (shard, tenant);
create table token_keys (
  id text primary key, secret text not null, state text not null, created_at_ms integer not null
) strict;
create table changes (seq integer primary key, kind text not null, id text not null) strict;
`,
  },
];

/** Brings `db` to the newest of `migrations`. Throws what SQLite throws; then nothing of the failed step is kept. */
export function applyMigrations(
  db: DatabaseSync,
  wallMs: number,
  migrations: readonly Migration[] = MIGRATIONS,
): MigrationOutcome {
  db.exec(
    "create table if not exists migrations (version integer primary key, applied_at_ms integer not null) strict",
  );
  const row = db.prepare("select coalesce(max(version), 0) as version from migrations").get();
  const applied = Number(row?.["version"] ?? 0);
  const known = migrations.at(-1)?.version ?? 0;
  if (applied > known) return { kind: "too-new", version: applied, known };
  for (const migration of migrations) {
    if (migration.version > applied) applyOne(db, migration, wallMs);
  }
  return { kind: "current", version: known };
}

function applyOne(db: DatabaseSync, migration: Migration, wallMs: number): void {
  db.exec("begin immediate");
  try {
    db.exec(migration.sql);
    db.prepare("insert into migrations (version, applied_at_ms) values (?, ?)").run(
      migration.version,
      wallMs,
    );
    db.exec("commit");
  } catch (error) {
    if (db.isTransaction) db.exec("rollback");
    throw error;
  }
}
