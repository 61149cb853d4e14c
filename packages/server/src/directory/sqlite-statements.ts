// Runs Queries on one SQLite connection, each statement prepared once.

import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Query, Row, SqlValue } from "./statements.ts";

/** Prepared statements of one connection. */
export interface SqliteStatements {
  /** Every row of a statement; throws what SQLite throws. */
  all(sql: string, params: readonly SqlValue[]): readonly Row[];
  /** The first row, if any. */
  get(sql: string, params: readonly SqlValue[]): Row | undefined;
}

/** A runner of Queries on `db`. Statements are few and fixed, so none is ever dropped. */
export function createSqliteStatements(db: DatabaseSync): SqliteStatements {
  const prepared = new Map<string, StatementSync>();
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
