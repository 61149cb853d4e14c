// Statements about many rows at once: one round trip to a database that is not in this process.
//
// I1  A statement names at most ROWS_PER_STATEMENT_MAX rows: both stores bound the parameters of a statement.

import type { Query, SqlValue } from "./statements.ts";

/** Most rows of one statement. 500 rows of 11 columns stay below SQLite's 32,766 parameters. */
export const ROWS_PER_STATEMENT_MAX = 500;

/** `$1, $2, …`: `count` parameters, the first of them `$first`. */
export function parameters(count: number, first = 1): string {
  return Array.from({ length: count }, (_, at) => `$${first + at}`).join(", ");
}

/** Inserts `rows` of `columns` into `table`, in as many statements as it takes; `suffix` as in `on conflict …`. */
export function insertRows(
  table: string,
  columns: readonly string[],
  rows: readonly (readonly SqlValue[])[],
  suffix = "",
): readonly Query[] {
  return chunksOf(rows).map((chunk) => {
    const tuples = chunk.map((_, at) => `(${parameters(columns.length, at * columns.length + 1)})`);
    const sql = `insert into ${table} (${columns.join(", ")}) values ${tuples.join(", ")} ${suffix}`;
    return { sql: sql.trimEnd(), params: chunk.flat() };
  });
}

/** `before` … `in ($1, …)` for `ids`, in as many statements as it takes. */
export function queriesIn(before: string, ids: readonly string[]): readonly Query[] {
  return chunksOf(ids).map((chunk) => ({ sql: `${before} in (${parameters(chunk.length)})`, params: chunk }));
}

/** `items` in pieces of at most `size`. */
export function chunksOf<Item>(
  items: readonly Item[],
  size: number = ROWS_PER_STATEMENT_MAX,
): readonly (readonly Item[])[] {
  const chunks: (readonly Item[])[] = [];
  for (let at = 0; at < items.length; at += size) chunks.push(items.slice(at, at + size));
  return chunks;
}
