// The directory's schema as numbered steps, for both stores.
//
// Written in the words that SQLite takes; PostgreSQL reads them through `forPostgres`.
// I1  A step that has shipped never changes; a new one is added behind it (expand, then contract).
// I2  Each step commits together with its row in `migrations`, so that a kill in between repeats nothing.
// I3  A program works on the schema it knows, and on a later one that says that it still can (`works_with`): so nodes can
//     be replaced one by one after an expanding step. Any other schema is refused, not guessed at.

import type { DatabaseSync } from "node:sqlite";
import { inTransaction } from "./sqlite-statements.ts";

/** One step of the schema; `version` counts from 1 without gaps. */
export interface Migration {
  readonly version: number;
  /** Oldest version whose programs work on the schema after this step. */
  readonly worksWith: number;
  readonly sql: string;
}

/** Whether a program can work on the schema it found. */
export type SchemaVerdict =
  | { readonly kind: "current"; readonly version: number }
  | { readonly kind: "too-old"; readonly version: number; readonly known: number }
  | { readonly kind: "too-new"; readonly version: number; readonly known: number };

/** Every step so far. */
export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    worksWith: 1,
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
  {
    version: 2,
    worksWith: 2,
    sql: `
alter table migrations add column works_with integer not null default 0;
create table residency_row (
  id integer primary key, name text not null, incarnation text not null, corrections integer not null,
  corrections_by text not null, seq integer not null, last_revision integer not null
) strict;
insert into residency_row (id, name, incarnation, corrections, corrections_by, seq, last_revision)
  select 1, name, incarnation, corrections, '', (select coalesce(max(seq), 0) from changes),
    (select coalesce(max(revision), 0) from placements) from residency;
drop table residency;
alter table residency_row rename to residency;
alter table nodes add column internal_url text not null default '';
alter table nodes add column roles text not null default 'entry,shard';
alter table nodes add column version text not null default '';
alter table changes add column tx text not null default '';
alter table changes add column at_ms integer not null default 0;
alter table token_keys add column state_since_ms integer not null default 0;
alter table token_keys add column created_by text not null default '';
create table leases (
  holder text primary key, node text not null, incarnation text not null, counter integer not null,
  renewed_at_ms integer not null, seen_seq integer not null
) strict;
create table leader (
  id integer primary key, node text not null, incarnation text not null, expires_at_ms integer not null
) strict;
create table moves (
  id text primary key, tenant text not null, from_shard text, to_shard text not null, revision integer not null unique,
  token_key text not null, token_format integer not null, at_ms integer not null, actor text not null,
  reason text not null, job text
) strict;
create index moves_by_tenant on moves (tenant, revision);
create table jobs (
  id text primary key, kind text not null, from_shard text not null, to_shard text not null, rate_per_s text not null,
  state text not null, moved integer not null, total integer not null, last_tenant text, actor text not null,
  reason text not null, created_at_ms integer not null, error text, seq integer not null unique
) strict;
`,
  },
  {
    // Programs of version 2 refuse a change whose kind they do not know: to them the new kinds are 'residency', which
    // costs them a read, and `topic` says what it is.
    version: 3,
    worksWith: 2,
    sql: `
alter table residency add column default_shard text not null default '';
alter table nodes add column start_revision integer not null default 0;
alter table changes add column topic text not null default '';
alter table jobs add column is_forced integer not null default 0;
alter table jobs add column blocked integer not null default 0;
alter table jobs add column blocked_tenants text not null default '';
create table homes (
  id text primary key, label text not null, box_key text, box_has_shard integer, box_seen_at_ms integer, tunnel text,
  created_at_ms integer not null
) strict;
create index homes_by_tunnel on homes (tunnel);
create table home_apps (
  id text primary key, home text not null, app text not null, has_shard integer not null, last_seen_ms integer not null
) strict;
create index home_apps_by_home on home_apps (home, app);
create table enrolments (
  id text primary key, home text not null, secret_hash text not null, expires_at_ms integer not null,
  wrong_tries integer not null
) strict;
create index enrolments_by_home on enrolments (home);
create table service_keys (
  id text primary key, public_key text not null, secret text not null, state text not null,
  created_at_ms integer not null, state_since_ms integer not null, created_by text not null
) strict;
`,
  },
];

/** The statement that makes the table of applied steps. */
export const MIGRATIONS_TABLE =
  "create table if not exists migrations (version integer primary key, applied_at_ms integer not null) strict";

const HAS_MIGRATIONS = "select name from sqlite_schema where type = 'table' and name = 'migrations'";

/** Schema version of a database, and the oldest program version it works with. Version 0: not a directory yet. */
export interface SchemaVersion {
  readonly version: number;
  readonly worksWith: number;
}

/** Statements that read a SchemaVersion: the second one only from version 2 on. */
export const SCHEMA_READ = {
  version: "select coalesce(max(version), 0) as version from migrations",
  worksWith: "select works_with from migrations order by version desc limit 1",
} as const;

/** Whether a program that knows `migrations` can work on a schema. */
export function judgeSchema(
  schema: SchemaVersion,
  migrations: readonly Migration[] = MIGRATIONS,
): SchemaVerdict {
  const known = migrations.at(-1)?.version ?? 0;
  const { version, worksWith } = schema;
  if (version < known) return { kind: "too-old", version, known };
  // 0: a step that says nothing, of a program that knows more than this one.
  const isUsable = worksWith !== 0 && worksWith <= known;
  if (version > known && !isUsable) return { kind: "too-new", version, known };
  return { kind: "current", version };
}

/** The statements of one step with its row in `migrations`. */
export function stepSql(migration: Migration, wallMs: number): string {
  const { version, worksWith, sql } = migration;
  const row =
    version === 1
      ? `insert into migrations (version, applied_at_ms) values (1, ${Math.trunc(wallMs)});`
      : `insert into migrations (version, applied_at_ms, works_with)
          values (${version}, ${Math.trunc(wallMs)}, ${worksWith});`;
  return `${sql}\n${row}`;
}

/** SQLite's DDL in PostgreSQL's words: 64-bit integers, and text ordered by its bytes as SQLite does. */
export function forPostgres(sql: string): string {
  return sql
    .replaceAll(/\binteger\b/g, "bigint")
    .replaceAll(/\btext\b/g, 'text collate "C"')
    .replaceAll(/\) strict\b/g, ")");
}

/** Brings a SQLite database to the newest of `migrations`. Throws what SQLite throws; then nothing of the failed step is kept. */
export function applyMigrations(
  db: DatabaseSync,
  wallMs: number,
  migrations: readonly Migration[] = MIGRATIONS,
): SchemaVerdict {
  db.exec(MIGRATIONS_TABLE);
  const schema = readSqliteSchema(db);
  const verdict = judgeSchema(schema, migrations);
  if (verdict.kind !== "too-old") return verdict;
  for (const migration of migrations) {
    if (migration.version > schema.version) inTransaction(db, () => db.exec(stepSql(migration, wallMs)));
  }
  return { kind: "current", version: verdict.known };
}

/** Whether a SQLite database holds a directory of an older schema than this program's. */
export function isOlderSchema(db: DatabaseSync): boolean {
  const schema = readSqliteSchema(db);
  return schema.version > 0 && judgeSchema(schema).kind === "too-old";
}

/** The schema of a SQLite database. Version 0: it holds no directory. */
export function readSqliteSchema(db: DatabaseSync): SchemaVersion {
  if (db.prepare(HAS_MIGRATIONS).get() === undefined) return { version: 0, worksWith: 0 };
  const version = Number(db.prepare(SCHEMA_READ.version).get()?.["version"] ?? 0);
  if (version < 2) return { version, worksWith: version };
  return { version, worksWith: Number(db.prepare(SCHEMA_READ.worksWith).get()?.["works_with"] ?? 0) };
}
