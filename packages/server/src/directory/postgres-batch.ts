// Mutations as one PostgreSQL transaction, and finding out what became of one whose COMMIT got no answer.
//
// Spec: R22.
// I1  A transaction holds the residency's row from its first statement on: mutations of all nodes commit one after the
//     other, so changes are numbered in commit order, without advisory locks or sequences.
// I2  A COMMIT without an answer is looked up by the name that the transaction left in the feed. The look-up first
//     waits for the residency's row: by then the transaction has ended, one way or the other.

import { batchSteps, ConstraintError, type BatchOptions, type BatchResult } from "./mutation-batch.ts";
import type { Steps } from "./mutation-steps.ts";
import type { Mutation } from "./mutations.ts";
import { PostgresFailure, type PostgresSession } from "./postgres-link.ts";
import { READ, type Row } from "./statements.ts";

/** The database's time. */
const NOW_MS = "cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as now_ms";
/** The residency's row with the database's time, held until the transaction ends. */
const HEAD_HELD = `select name, incarnation, corrections, default_shard, seq, last_revision, ${NOW_MS}
  from residency where id = 1 for update`;
/** SQLSTATEs after which the same transaction may be tried again: serialisation failure, deadlock. */
const AGAIN = ["40001", "40P01"];
const ATTEMPTS_MAX = 5;

/** What became of a transaction. */
export type TransactionOutcome =
  | { readonly kind: "committed"; readonly result: BatchResult }
  /** Nothing of it was kept. */
  | { readonly kind: "failed"; readonly reason: string }
  /** Its COMMIT got no answer. */
  | { readonly kind: "unanswered"; readonly result: BatchResult; readonly reason: string };

/** Runs and commits `mutations`. Never rejects with PostgresFailure. */
export async function commitOnPostgres(
  use: <Value>(work: (session: PostgresSession) => Promise<Value>) => Promise<Value>,
  mutations: readonly Mutation[],
  options: Omit<BatchOptions, "headSql">,
): Promise<TransactionOutcome> {
  for (let attempt = 1; ; attempt += 1) {
    let result: BatchResult | undefined;
    try {
      return await use(async (session): Promise<TransactionOutcome> => {
        const made = await runTransaction(session, mutations, options);
        result = made;
        const word = await session.command("commit");
        return word === "COMMIT"
          ? { kind: "committed", result: made }
          : { kind: "failed", reason: "rolled back" };
      });
    } catch (error) {
      if (error instanceof ConstraintError) return { kind: "failed", reason: "constraint" };
      if (!(error instanceof PostgresFailure)) throw error;
      const { kind, reason } = error;
      if (kind === "connection" && result !== undefined) return { kind: "unanswered", result, reason };
      if (!mayTryAgain(error) || attempt >= ATTEMPTS_MAX) return { kind: "failed", reason };
    }
  }
}

/** Whether the transaction named `tx`, whose first change was numbered `firstSeq`, was committed. */
export async function wasCommitted(session: PostgresSession, firstSeq: number, tx: string): Promise<boolean> {
  await session.command("begin");
  try {
    await session.rows(HEAD_HELD);
    const [row] = await session.rows(READ.changeTx, [firstSeq]);
    return row?.["tx"] === tx;
  } finally {
    await session.command("rollback");
  }
}

/** The database's time, milliseconds since 1970. */
export async function databaseMs(session: PostgresSession): Promise<number> {
  return Number((await session.rows(`select ${NOW_MS}`))[0]?.["now_ms"]);
}

/** Runs steps to their end. Throws PostgresFailure, broken constraints after the steps have seen them. */
export async function runStepsOn<Value>(session: PostgresSession, steps: Steps<Value>): Promise<Value> {
  let step = steps.next([]);
  while (step.done !== true) {
    let rows: readonly Row[];
    try {
      rows = await session.rows(step.value.sql, step.value.params);
    } catch (error) {
      const isConstraint = error instanceof PostgresFailure && error.reason.startsWith("23");
      if (!isConstraint) throw error;
      step = steps.throw(new ConstraintError());
      continue;
    }
    step = steps.next(rows);
  }
  return step.value;
}

async function runTransaction(
  session: PostgresSession,
  mutations: readonly Mutation[],
  options: Omit<BatchOptions, "headSql">,
): Promise<BatchResult> {
  await session.command("begin");
  try {
    return await runStepsOn(session, batchSteps(mutations, { ...options, headSql: HEAD_HELD }));
  } catch (error) {
    const isStanding = !(error instanceof PostgresFailure) || error.kind === "statement";
    if (isStanding) await session.command("rollback");
    throw error;
  }
}

/** A connection that was dead before anything was asked costs nothing to make anew. */
function mayTryAgain(failure: PostgresFailure): boolean {
  return failure.kind === "connection" ? isStale(failure.reason) : AGAIN.includes(failure.reason);
}

function isStale(reason: string): boolean {
  return reason === "connection-ended" || reason === "57P01" || reason === "EPIPE" || reason === "ECONNRESET";
}

/** Does `work` in a transaction that sees one state of the database and changes nothing. */
export async function atOneState<Value>(
  session: PostgresSession,
  work: () => Promise<Value>,
): Promise<Value> {
  await session.command("begin isolation level repeatable read read only");
  try {
    return await work();
  } finally {
    await session.command("rollback");
  }
}
