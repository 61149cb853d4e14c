// Commits a batch of mutations in one SQLite transaction.
//
// I1  All or none: when the store fails, nothing of the batch is kept and every mutation of it is unavailable.
// I2  A refused mutation is undone alone (savepoint); the rest of the batch commits.

import type { DatabaseSync } from "node:sqlite";
import { mutationSteps, type Mutation, type MutationOutcome } from "./mutations.ts";
import type { Row } from "./statements.ts";
import type { SqliteStatements } from "./sqlite-statements.ts";

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
): BatchOutcome {
  try {
    db.exec("begin immediate");
    const outcomes = mutations.map((mutation) => runMutation(db, statements, mutation));
    db.exec("commit");
    return { kind: "committed", outcomes };
  } catch (error) {
    // A full disk may have ended the transaction already.
    if (db.isTransaction) db.exec("rollback");
    return { kind: "failed", reason: reasonOf(error) };
  }
}

function runMutation(db: DatabaseSync, statements: SqliteStatements, mutation: Mutation): MutationOutcome {
  db.exec("savepoint mutation");
  const outcome = runSteps(statements, mutation);
  if (outcome.kind === "refused") db.exec("rollback to mutation");
  db.exec("release mutation");
  return outcome;
}

function runSteps(statements: SqliteStatements, mutation: Mutation): MutationOutcome {
  const steps = mutationSteps(mutation);
  let rows: readonly Row[] = [];
  for (;;) {
    const step = steps.next(rows);
    if (step.done === true) return step.value;
    try {
      rows = statements.all(step.value.sql, step.value.params);
    } catch (error) {
      if (primaryCodeOf(error) !== SQLITE_CONSTRAINT) throw error;
      return { kind: "refused", code: "conflict", message: "it contradicts what is there" };
    }
  }
}

/** SQLite's own words for a failure, e.g. `database or disk is full`: they hold no values. */
export function reasonOf(error: unknown): string {
  if (error instanceof Error && "errstr" in error) return String(error.errstr);
  return error instanceof Error ? error.name : "unknown failure";
}

function primaryCodeOf(error: unknown): number {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : -1;
}
