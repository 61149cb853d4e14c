// The schema of a PostgreSQL directory: read by nodes, changed only by `moor directory migrate`.

import { ConfigError } from "@moor/runtime";
import {
  forPostgres,
  judgeSchema,
  MIGRATIONS,
  MIGRATIONS_TABLE,
  SCHEMA_READ,
  stepSql,
  type Migration,
  type SchemaVersion,
} from "./migrations.ts";
import type { PostgresSession } from "./postgres-link.ts";

const HAS_MIGRATIONS = `select table_name from information_schema.tables
  where table_schema = current_schema() and table_name = 'migrations'`;

/** What applying steps came to. */
export interface MigrationReport {
  readonly from: number;
  readonly to: number;
}

/** The schema of the database. Version 0: it holds no directory. */
export async function readSchema(session: PostgresSession): Promise<SchemaVersion> {
  const tables = await session.rows(HAS_MIGRATIONS);
  if (tables.length === 0) return { version: 0, worksWith: 0 };
  const version = Number((await session.rows(SCHEMA_READ.version))[0]?.["version"] ?? 0);
  if (version < 2) return { version, worksWith: version };
  return { version, worksWith: Number((await session.rows(SCHEMA_READ.worksWith))[0]?.["works_with"] ?? 0) };
}

/** Throws ConfigError when this program cannot work on the database's schema. */
export async function assertSchema(session: PostgresSession): Promise<void> {
  const verdict = judgeSchema(await readSchema(session));
  if (verdict.kind === "current") return;
  const got = verdict.version === 0 ? "a database without a directory" : `schema version ${verdict.version}`;
  const expected =
    verdict.kind === "too-old"
      ? `version ${verdict.known}: run moor directory migrate`
      : `version ${verdict.known} or older: run the newer moor`;
  throw new ConfigError("directory", got, expected);
}

/**
 * Brings the database to the newest of `migrations`.
 *
 * @param wallMs when, milliseconds since 1970; undefined only tells what would be done
 * @throws ConfigError for a schema that is newer, PostgresFailure otherwise
 */
export async function migratePostgres(
  session: PostgresSession,
  wallMs: number | undefined,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<MigrationReport> {
  const before = await readSchema(session);
  const verdict = judgeSchema(before, migrations);
  if (verdict.kind === "too-new") {
    throw new ConfigError(
      "directory",
      `schema version ${verdict.version}`,
      `version ${verdict.known} or older: run the newer moor`,
    );
  }
  const to = Math.max(migrations.at(-1)?.version ?? 0, before.version);
  if (wallMs === undefined || to === before.version) return { from: before.version, to };
  await session.command(forPostgres(MIGRATIONS_TABLE));
  for (const migration of migrations) {
    if (migration.version > before.version) await applyOne(session, migration, wallMs);
  }
  return { from: before.version, to };
}

async function applyOne(session: PostgresSession, migration: Migration, wallMs: number): Promise<void> {
  await session.command("begin");
  try {
    await session.command(forPostgres(stepSql(migration, wallMs)));
    await session.command("commit");
  } catch (error) {
    await session.command("rollback").catch(() => {});
    throw error;
  }
}
