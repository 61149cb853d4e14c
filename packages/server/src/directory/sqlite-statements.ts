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
  const prepared = new RecentMap<string, Prepared>(PREPARED_MAX);
  const prepare = (sql: string): Prepared => {
    let statement = prepared.get(sql);
    if (statement === undefined) {
      const anonymous = withAnonymousParams(sql);
      statement = { statement: db.prepare(anonymous ?? sql), isAnonymous: anonymous !== undefined };
      prepared.set(sql, statement);
    }
    return statement;
  };
  return {
    all: (sql, params) => {
      const { statement, isAnonymous } = prepare(sql);
      return isAnonymous ? statement.all(...params) : statement.all(namedParams(params));
    },
    get: (sql, params) => {
      const { statement, isAnonymous } = prepare(sql);
      return isAnonymous ? statement.get(...params) : statement.get(namedParams(params));
    },
  };
}

interface Prepared {
  readonly statement: StatementSync;
  readonly isAnonymous: boolean;
}

/**
 * A statement that names its parameters once each and in order, with `?` in their place: SQLite looks a named one up
 * among all the others, which takes too long where there are thousands. Undefined for any other statement.
 */
function withAnonymousParams(sql: string): string | undefined {
  let next = 1;
  let isInOrder = true;
  const rewritten = sql.replaceAll(/\$(\d+)/g, (_, number: string) => {
    isInOrder &&= Number(number) === next;
    next += 1;
    return "?";
  });
  return isInOrder ? rewritten : undefined;
}

/** `$1` is a named parameter to SQLite: values go in by number. */
function namedParams(params: Query["params"]): Record<string, SqlValue> {
  const named: Record<string, SqlValue> = {};
  for (const [index, value] of params.entries()) named[index + 1] = value;
  return named;
}

/** Does `work` in a transaction that writes; nothing of it is kept when it throws. */
export function inTransaction<Value>(db: DatabaseSync, work: () => Value): Value {
  db.exec("begin immediate");
  try {
    const value = work();
    db.exec("commit");
    return value;
  } catch (error) {
    // A full disk may have ended the transaction already.
    if (db.isTransaction) db.exec("rollback");
    throw error;
  }
}
