// PostgreSQL directories for tests: one server for a file of tests, a migrated database for each test.

import { createNodeRuntime, createSilentLogger, Secret } from "@moor/runtime";
import { createTempDir, postgresMissing, startPostgres, until, type PostgresServer } from "@moor/testkit";
import { Client, type QueryResult } from "pg";
import { afterAll, beforeAll, describe } from "vitest";
import {
  openPostgresDirectory,
  type PostgresDirectoryOptions,
} from "../../packages/server/src/directory/postgres-directory.ts";
import { PostgresLink } from "../../packages/server/src/directory/postgres-link.ts";
import { migratePostgres } from "../../packages/server/src/directory/postgres-schema.ts";
import type { Row } from "../../packages/server/src/directory/statements.ts";
import type { OpenDirectory } from "../../packages/server/src/directory/sqlite-directory.ts";

/** The node secret of every node under test. */
export const NODE_SECRET = new Uint8Array(32).fill(7);

/** Deadline of a server's start and removal: a hundred databases are some ten thousand files. Milliseconds. */
const HOOK_MS_MAX = 180_000;

const logger = createSilentLogger();

/** Declares tests that need a server; skipped, saying why, where there are no binaries. */
export function describePostgres(title: string, declare: (server: () => PostgresServer) => void): void {
  const missing = postgresMissing();
  describe.skipIf(missing !== undefined)(missing === undefined ? title : `${title} (${missing})`, () => {
    let server: PostgresServer | undefined;
    beforeAll(async () => {
      server = await startPostgres();
    }, HOOK_MS_MAX);
    afterAll(() => server?.remove(), HOOK_MS_MAX);
    declare(() => server as PostgresServer);
  });
}

/** Runs statements as the server's owner. */
export async function runSql(server: PostgresServer, database: string, sql: string): Promise<readonly Row[]> {
  const client = new Client({ connectionString: server.url(database) });
  client.on("error", () => {});
  await client.connect();
  try {
    const result: QueryResult | readonly QueryResult[] = await client.query(sql);
    return [result].flat().at(-1)?.rows ?? [];
  } finally {
    await client.end();
  }
}

/** Makes `copy` of a database as a backup does, while its nodes live: they are cut and come back. */
export async function copyDatabase(server: PostgresServer, database: string, copy: string): Promise<void> {
  await cutOff(server, database);
  await runSql(server, "postgres", `create database "${copy}" template "${database}"`);
  await runSql(server, "postgres", `alter database "${database}" allow_connections true`);
  await runSql(server, "postgres", `alter database "${copy}" allow_connections true`);
}

/** Puts `copy` in a database's place, as a restore or a failover that lost writes does. */
export async function restoreDatabase(server: PostgresServer, database: string, copy: string): Promise<void> {
  await cutOff(server, database);
  await runSql(server, "postgres", `alter database "${database}" rename to "${database}_lost"`);
  await runSql(server, "postgres", `alter database "${copy}" rename to "${database}"`);
}

async function cutOff(server: PostgresServer, database: string): Promise<void> {
  await runSql(server, "postgres", `alter database "${database}" allow_connections false`);
  await until(async () => {
    const left = await runSql(
      server,
      "postgres",
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database}'`,
    );
    return left.length === 0;
  }, `the connections to ${database} to end`);
}

let databaseCount = 0;

/** A migrated, empty database; gives its name. */
export async function createMigrated(server: PostgresServer): Promise<string> {
  databaseCount += 1;
  const name = `moor_${databaseCount}`;
  await server.createDatabase(name);
  const link = new PostgresLink({ url: new Secret(server.url(name)), name: "test", logger });
  await link.use((session) => migratePostgres(session, 1));
  await link.close();
  return name;
}

/** A node's view of a database: its directory and replica, on a data folder of its own. */
export interface TestNode extends OpenDirectory {
  readonly dir: string;
  /** Closes it and deletes its folder. */
  readonly remove: () => Promise<void>;
}

/** Opens `url` as one more node does, on real time. */
export async function openNode(
  url: string,
  more: Partial<Pick<PostgresDirectoryOptions, "dir" | "logger" | "residency" | "patience">> = {},
): Promise<TestNode> {
  const temp = more.dir === undefined ? await createTempDir("node") : undefined;
  const dir = more.dir ?? temp?.path ?? "";
  const opened = await openPostgresDirectory({
    runtime: createNodeRuntime(),
    logger,
    nodeSecret: NODE_SECRET,
    ...more,
    url: new Secret(url),
    dir,
  });
  return {
    ...opened,
    dir,
    remove: async () => {
      await opened.directory.close();
      await temp?.remove();
    },
  };
}
