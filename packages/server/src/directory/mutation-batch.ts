// Mutations as one transaction, whatever store runs it.
//
// Spec: R22.
// I1  All or none: when the store fails, nothing of the batch is kept.
// I2  A refused mutation is undone alone (savepoint, ledger mark); the rest of the batch commits.
// I3  A batch whose asker has seen more than the directory tells changes nothing.

import { integerAt, textAt } from "./columns.ts";
import { Ledger, type ResidencyHead } from "./ledger.ts";
import { refused, type MutationOutcome, type Steps } from "./mutation-steps.ts";
import { mutationSteps, type Mutation } from "./mutations.ts";
import { query, type Row } from "./statements.ts";

/** What a batch is run with. */
export interface BatchOptions {
  /** Names the transaction in the changes it makes. */
  readonly tx: string;
  /** The time, where the head's row carries none. Milliseconds since 1970. */
  readonly wallMs: number;
  /** The statement that reads, and where the store can locks, the residency's row. */
  readonly headSql: string;
  /** What the asker has seen: a directory that tells less is regressed. */
  readonly seen?: { readonly incarnation: string; readonly seq: number; readonly revision: number };
}

/** What a batch came to, before its commit. */
export interface BatchResult {
  readonly outcomes: readonly MutationOutcome[];
  /** Number of the directory's newest change once it is committed. */
  readonly seq: number;
  /** Number of its first change; undefined when it has none, so that nothing depends on its commit. */
  readonly firstSeq: number | undefined;
}

/** Thrown into the steps where a statement would break a constraint: the mutation contradicts what is there. */
export class ConstraintError extends Error {
  constructor() {
    super("a constraint would be broken");
    this.name = "ConstraintError";
  }
}

/** The statements of a transaction, without its begin and commit. */
export function* batchSteps(mutations: readonly Mutation[], options: BatchOptions): Steps<BatchResult> {
  const [row] = yield query(options.headSql, []);
  const head = row === undefined ? undefined : headFromRow(row);
  const wallMs = row?.["now_ms"] === undefined ? options.wallMs : integerAt(row, "now_ms");
  const regression = head === undefined ? undefined : regressionOf(head, options);
  if (regression !== undefined) {
    return { outcomes: mutations.map(() => regression), seq: head?.seq ?? 0, firstSeq: undefined };
  }
  const ledger = new Ledger(head, wallMs, options.tx);
  const outcomes: MutationOutcome[] = [];
  for (const mutation of mutations)
    outcomes.push(yield* stepsOfOne(mutation, ledger, mutations.length === 1));
  for (const closing of ledger.closingQueries()) yield closing;
  return { outcomes, seq: ledger.seq, firstSeq: ledger.firstSeq };
}

/** A row of READ.head. */
export function headFromRow(row: Row): ResidencyHead {
  return {
    name: textAt(row, "name"),
    incarnation: textAt(row, "incarnation"),
    isCorrecting: integerAt(row, "corrections") === 1,
    defaultShard: textAt(row, "default_shard"),
    seq: integerAt(row, "seq"),
    lastRevision: integerAt(row, "last_revision"),
  };
}

function* stepsOfOne(mutation: Mutation, ledger: Ledger, isAlone: boolean): Steps<MutationOutcome> {
  const mark = ledger.mark();
  yield query("savepoint mutation", []);
  let outcome: MutationOutcome;
  try {
    outcome = yield* mutationSteps(mutation, ledger);
  } catch (error) {
    if (!(error instanceof ConstraintError)) throw error;
    outcome = refused("conflict", "it contradicts what is there");
  }
  if (outcome.kind === "refused") {
    yield query("rollback to savepoint mutation", []);
    ledger.rollBack(mark);
  }
  if (!isAlone) yield query("release savepoint mutation", []);
  return outcome;
}

function regressionOf(head: ResidencyHead, { seen }: BatchOptions): MutationOutcome | undefined {
  if (seen === undefined) return undefined;
  const isSameIncarnation = head.incarnation === seen.incarnation;
  const isLess = head.lastRevision < seen.revision || (isSameIncarnation && head.seq < seen.seq);
  return isLess
    ? refused("directory_regressed", "the directory knows less than this node has seen: moor directory fence")
    : undefined;
}
