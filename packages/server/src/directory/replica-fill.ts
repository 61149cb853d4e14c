// Filling a new copy of the directory: everything at once, faster than comparing it with nothing.
//
// Spec: R22.
// I1  It is one transaction of the copy's: what fails leaves the copy as empty as it was.
// I2  The copy's journal is in memory meanwhile, so that nothing is written twice. A process that dies leaves a file that
//     nobody may read, and beside it the mark that says so: made before the first write, gone after the last is on disk.
// I3  The copy's own indexes are made after its rows, sorted, and are there again when the transaction ends.

import { closeSync, existsSync, fsyncSync, ftruncateSync, openSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { PostgresSession } from "./postgres-link.ts";
import { REPLICATED_TABLES, selectAfter, type ReplicatedTable } from "./replicated-tables.ts";
import type { SqlValue } from "./statements.ts";

/** Rows read at once. Count: about 500 KB, so that the next page is under way while this one is written. */
const FILL_ROWS = 2_000;

/** Whether the copy has no row of any replicated table. */
export function isEmptyCopy(db: DatabaseSync): boolean {
  return REPLICATED_TABLES.every(
    ({ name }) => db.prepare(`select 1 from ${name} limit 1`).get() === undefined,
  );
}

/**
 * Empties the copy's file when a fill of it did not end; before SQLite opens it.
 *
 * @param path the copy's file, which exists
 */
export function discardUnfinished(path: string): void {
  if (!existsSync(markOf(path))) return;
  for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
  // Emptied, not removed: the file keeps its mode.
  withFile(path, "r+", (file) => {
    ftruncateSync(file);
    fsyncSync(file);
  });
  rmSync(markOf(path));
}

/**
 * Fills an empty copy whose journal is a WAL, and gives what `copy` gives.
 *
 * @param copy writes the rows; the transaction is open meanwhile
 * @throws what `copy` and SQLite throw
 */
export async function fillCopy<Value>(db: DatabaseSync, copy: () => Promise<Value>): Promise<Value> {
  const path = db.location();
  if (path === null) throw new Error("invariant broken: I2 a copy is a file");
  withFile(markOf(path), "w", fsyncSync);
  withFile(dirname(path), "r", fsyncSync);
  db.exec("pragma journal_mode = memory; begin immediate;");
  let value: Value;
  try {
    const indexes = takeIndexes(db);
    value = await copy();
    for (const sql of indexes) db.exec(sql);
    // Returns when the file is on disk, with this journal too.
    db.exec("commit");
  } catch (error) {
    if (db.isTransaction) db.exec("rollback");
    throw error;
  }
  db.exec("pragma journal_mode = wal");
  rmSync(markOf(path));
  return value;
}

/** Writes every row of the authority's replicated tables. Throws PostgresFailure, and what SQLite throws. */
export async function copyTables(db: DatabaseSync, session: Pick<PostgresSession, "values">): Promise<void> {
  for (const table of REPLICATED_TABLES) {
    const { name, columns } = table;
    const places = columns.map(() => "?").join(", ");
    const insert = db.prepare(`insert into ${name} (${columns.join(", ")}) values (${places})`);
    for await (const page of pagesOf(session, table)) {
      for (const row of page) insert.run(...row);
    }
  }
}

function markOf(path: string): string {
  return `${path}-unfinished`;
}

function withFile(path: string, flags: "r" | "r+" | "w", use: (file: number) => void): void {
  const file = openSync(path, flags, 0o600);
  try {
    use(file);
  } finally {
    closeSync(file);
  }
}

/** Drops the indexes that no constraint made; gives the statements that make them. */
function takeIndexes(db: DatabaseSync): readonly string[] {
  const names = REPLICATED_TABLES.map((table) => table.name);
  const rows = db
    .prepare(
      `select name, sql from sqlite_schema where type = 'index' and sql is not null
        and tbl_name in (${names.map(() => "?").join(", ")})`,
    )
    .all(...names);
  for (const row of rows) db.exec(`drop index ${row["name"] as string}`);
  return rows.map((row) => row["sql"] as string);
}

/** The table in id order, the next page asked for before the present one is given. */
async function* pagesOf(
  session: Pick<PostgresSession, "values">,
  table: ReplicatedTable,
): AsyncGenerator<readonly (readonly SqlValue[])[]> {
  const idAt = table.columns.indexOf(table.idColumn);
  const ask = (after: SqlValue) => {
    const page = session.values(selectAfter(table), [after, FILL_ROWS]);
    // Whoever stops in the middle does not wait for the page under way.
    page.catch(() => {});
    return page;
  };
  let next: ReturnType<typeof ask> | undefined = ask("");
  while (next !== undefined) {
    const page: readonly (readonly SqlValue[])[] = await next;
    const last = page.length < FILL_ROWS ? undefined : page.at(-1);
    next = last === undefined ? undefined : ask(last[idAt] ?? "");
    yield page;
  }
}
