// Runs Queries on one SQLite connection, each statement prepared once while it is in use.

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { RecentMap } from "./recent-map.ts";
import type { Query, Row, SqlValue } from "./statements.ts";

/** Prepared statements kept, at most twice as many: all fixed ones, and those about many rows that are used often. */
const PREPARED_MAX = 100;

/** Prepared statements of one connection. */
export interface SqliteStatements {
  /** Every row of a statement; throws what SQLite throws. */
  all(sql: string, params: readonly SqlValue[]): readonly Row[];
  /** The first row, if any. */
  get(sql: string, params: readonly SqlValue[]): Row | undefined;
}

/** A runner of Queries on `db`. */
export function createSqliteStatements(db: DatabaseSync): SqliteStatements {
  const prepared = new RecentMap<string, StatementSync>(PREPARED_MAX);
  const prepare = (sql: string): StatementSync => {
    let statement = prepared.get(sql);
    if (statement === undefined) {
      statement = db.prepare(sql);
      prepared.set(sql, statement);
    }
    return statement;
  };
  return {
    all: (sql, params) => prepare(sql).all(namedParams(params)),
    get: (sql, params) => prepare(sql).get(namedParams(params)),
  };
}

/** `$1` is a named parameter to SQLite: values go in by number. */
function namedParams(params: Query["params"]): Record<string, SqlValue> {
  const named: Record<string, SqlValue> = {};
  for (const [index, value] of params.entries()) named[index + 1] = value;
  return named;
}
