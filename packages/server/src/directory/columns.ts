// Columns of rows that our own statements gave.
//
// The store is our own and its writers validate, so a column that does not fit is a bug or a damaged file: it throws.
// Imports nothing at run time: the writer thread loads it at each start.

import type { Row, SqlValue } from "./statements.ts";

/** A text column. */
export function textAt(row: Row | undefined, column: string): string {
  const value = row?.[column];
  if (typeof value !== "string") throw new Error(`invariant broken: D5 ${column} is text`);
  return value;
}

/** A text column that may be null. */
export function textOrNullAt(row: Row, column: string): string | null {
  return row[column] === null ? null : textAt(row, column);
}

/** An integer column. */
export function integerAt(row: Row | undefined, column: string): number {
  const value = row?.[column];
  if (!Number.isSafeInteger(value)) throw new Error(`invariant broken: D6 ${column} is a safe integer`);
  return value as number;
}

/** A column that holds one of `known`. */
export function memberAt<Member extends string>(row: Row, column: string, known: readonly Member[]): Member {
  const member = known.find((each) => each === row[column]);
  if (member === undefined) throw new Error(`invariant broken: D7 ${column} is one of ${known.join(", ")}`);
  return member;
}

/** A row's values in the order of `columns`. */
export function valuesOf(row: Row, columns: readonly string[]): SqlValue[] {
  return columns.map((column) => row[column] as SqlValue);
}
