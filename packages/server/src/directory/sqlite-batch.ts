// Runs steps on a SQLite connection, and commits batches of mutations in one transaction each.
//
// I1  When anything fails, nothing of the batch is kept and every mutation of it is unavailable.

import type { DatabaseSync } from "node:sqlite";
import { batchSteps, ConstraintError, type BatchOptions } from "./mutation-batch.ts";
import type { MutationOutcome, Steps } from "./mutation-steps.ts";
import type { Mutation } from "./mutations.ts";
import { READ, type Row } from "./statements.ts";
import { inTransaction, type SqliteStatements } from "./sqlite-statements.ts";

/** What became of a batch: one outcome per mutation, or the reason why nothing of it was kept. */
export type BatchOutcome =
  | { readonly kind: "committed"; readonly outcomes: readonly MutationOutcome[] }
  | { readonly kind: "failed"; readonly reason: string };

const SQLITE_CONSTRAINT = 19;

/** Runs and commits `mutations` in order. Never throws. */
export function commitBatch(
  db: DatabaseSync,
  statements: SqliteStatements,
  mutations: readonly Mutation[],
  options: Omit<BatchOptions, "headSql">,
): BatchOutcome {
  try {
    const steps = batchSteps(mutations, { ...options, headSql: READ.head });
    const { outcomes } = inTransaction(db, () => runSteps(statements, steps));
    return { kind: "committed", outcomes };
  } catch (error) {
    return { kind: "failed", reason: reasonOf(error) };
  }
}

/** Runs steps to their end. Throws what SQLite throws, broken constraints after the steps have seen them. */
export function runSteps<Value>(statements: SqliteStatements, steps: Steps<Value>): Value {
  let step = steps.next([]);
  while (step.done !== true) {
    let rows: readonly Row[];
    try {
      rows = statements.all(step.value.sql, step.value.params);
    } catch (error) {
      if (primaryCodeOf(error) !== SQLITE_CONSTRAINT) throw error;
      step = steps.throw(new ConstraintError());
      continue;
    }
    step = steps.next(rows);
  }
  return step.value;
}

/** SQLite's own words for a failure, e.g. `database or disk is full`: they hold no values. */
export function reasonOf(error: unknown): string {
  if (error instanceof Error && "errstr" in error) return String(error.errstr);
  return error instanceof Error ? error.name : "unknown failure";
}

function primaryCodeOf(error: unknown): number {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : -1;
}
