// The directory as the operator's tools open it: without a node, a replica, or the guard against regressed directories.
//
// I1  A tool holds an embedded directory alone: the node that uses it has to be stopped.
// I2  Only `migrateDirectory`, and an import into a new folder, change a schema.
// I3  `view` shows one unchanging state, however long the reader takes.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ConfigError, type Logger, type Runtime } from "@moor/runtime";
import { DATABASE_BYTES_MAX_DEFAULT } from "../sqlite-directory.ts";
import { openDataFolder } from "../data-folder.ts";
import type { DirectoryLocation } from "../open-directory.ts";
import { migratePostgres, assertSchema, type MigrationReport } from "../postgres-schema.ts";
import { atOneState } from "../postgres-batch.ts";
import { PostgresLink } from "../postgres-link.ts";
import { asked } from "../postgres-store.ts";
import { PostgresWriter } from "../postgres-writer.ts";
import type { Mutation } from "../mutations.ts";
import { createSqliteStatements } from "../sqlite-statements.ts";
import { openingError, SqliteWriter } from "../sqlite-writer.ts";
import { judgeSchema, MIGRATIONS, readSqliteSchema, type SchemaVersion } from "../migrations.ts";
import { reasonOf } from "../sqlite-batch.ts";
import type { Row, SqlValue } from "../statements.ts";
import { rowsOf } from "../store.ts";

/** How long a reader waits for a lock, as of a backup. Milliseconds. */
const BUSY_MS = 5_000;

/** Runs one statement that reads. */
export type Read = (sql: string, params?: readonly SqlValue[]) => Promise<readonly Row[]>;

/** What a tool needs. `dir` of a PostgreSQL location is not touched. */
export interface ToolOptions {
  readonly location: DirectoryLocation | Omit<Extract<DirectoryLocation, { kind: "postgres" }>, "dir">;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

/** An open directory. */
export interface ToolStore {
  /** Makes a change; gives its rows, or rejects with its refusal. */
  change(mutation: Mutation): Promise<readonly Row[]>;
  view<Value>(work: (read: Read) => Promise<Value>): Promise<Value>;
  close(): Promise<void>;
}

/**
 * Opens a directory. Throws ConfigError for one that is in use or of another schema, ProtocolError when it is down.
 *
 * @param mayBeNew makes an embedded directory where there is none yet; else a folder without one is refused
 */
export async function openToolStore(options: ToolOptions, mayBeNew = false): Promise<ToolStore> {
  const { location } = options;
  if (location.kind === "sqlite" && !mayBeNew) assertMigrated(location.dir);
  return location.kind === "sqlite" ? openSqlite(location.dir, options) : openPostgres(options);
}

/**
 * Brings the schema up to this program.
 *
 * @param isDryRun only says what would be done
 */
export async function migrateDirectory(options: ToolOptions, isDryRun = false): Promise<MigrationReport> {
  const { location, runtime, logger } = options;
  if (location.kind === "sqlite") {
    const schema = embeddedSchema(location.dir);
    const verdict = judgeSchema(schema);
    if (verdict.kind === "too-new") throw openingError(location.dir, verdict);
    // Opening it is what migrates it.
    if (!isDryRun) await (await openSqlite(location.dir, options)).close();
    return { from: schema.version, to: Math.max(MIGRATIONS.at(-1)?.version ?? 0, schema.version) };
  }
  const link = new PostgresLink({ url: location.url, name: "moor migrate", logger });
  try {
    return await asked(() =>
      link.use((session) => migratePostgres(session, isDryRun ? undefined : runtime.wallMs())),
    );
  } finally {
    await link.close();
  }
}

function assertMigrated(dir: string): void {
  const verdict = judgeSchema(embeddedSchema(dir));
  if (verdict.version === 0) {
    throw new ConfigError("--data", `${dir}, which holds no directory`, "the data folder of a node");
  }
  if (verdict.kind === "too-old") {
    const got = `${dir}, whose schema is version ${verdict.version}`;
    throw new ConfigError("--data", got, `version ${verdict.known}: run moor directory migrate`);
  }
}

/** The schema of an embedded directory. Changes nothing; version 0 where there is none. */
function embeddedSchema(dir: string): SchemaVersion {
  if (!existsSync(join(dir, "moor.sqlite"))) return { version: 0, worksWith: 0 };
  const folder = openDataFolder(dir, "moor.sqlite");
  try {
    const db = new DatabaseSync(folder.databasePath, { readOnly: true, timeout: BUSY_MS });
    try {
      return readSqliteSchema(db);
    } finally {
      db.close();
    }
  } catch (error) {
    throw openingError(dir, { kind: "not-opened", reason: reasonOf(error) });
  } finally {
    folder.release();
  }
}

async function openSqlite(dir: string, { runtime, logger }: ToolOptions): Promise<ToolStore> {
  const folder = openDataFolder(dir, "moor.sqlite");
  const writer = new SqliteWriter({
    path: folder.databasePath,
    bytesMax: DATABASE_BYTES_MAX_DEFAULT,
    dataDir: dir,
    runtime,
    logger,
    onCommitted: () => {},
  });
  try {
    await writer.start();
  } catch (error) {
    folder.release();
    throw error;
  }
  const db = new DatabaseSync(folder.databasePath, { readOnly: true, timeout: BUSY_MS });
  const statements = createSqliteStatements(db);
  return {
    change: async (mutation) => rowsOf(await writer.commit(mutation)),
    view: (work) => work(async (sql, params = []) => statements.all(sql, params)),
    close: async () => {
      await writer.close(() => db.close());
      folder.release();
    },
  };
}

async function openPostgres({ location, runtime, logger }: ToolOptions): Promise<ToolStore> {
  if (location.kind !== "postgres") throw new Error("invariant broken: D12 the location is of PostgreSQL");
  const link = (name: string) => new PostgresLink({ url: location.url, name: `moor ${name}`, logger });
  const [changes, reads] = [link("tool changes"), link("tool reads")];
  const close = async () => {
    await Promise.all([changes.close(), reads.close()]);
  };
  try {
    await asked(() => reads.use(assertSchema));
  } catch (error) {
    await close();
    throw error;
  }
  const writer = new PostgresWriter({
    link: changes,
    runtime,
    logger,
    seen: () => undefined,
    onCommitted: () => Promise.resolve(true),
  });
  return {
    change: async (mutation) => rowsOf(await writer.commit(mutation)),
    view: (work) =>
      asked(() =>
        reads.use((session) => atOneState(session, () => work((sql, params) => session.rows(sql, params)))),
      ),
    close: async () => {
      await writer.close();
      await close();
    },
  };
}
