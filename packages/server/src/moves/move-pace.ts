// How many tenants a job moves at once, and how long it waits between.
//
// I1  The rate is never exceeded, also after a stall: what was missed is not made up for.
// I2  A batch is at most a directory's transaction (500) and, within that, about a quarter of a second of the rate.

/** Most moves of one batch: one short transaction. Count. Design: "Directory, changes, replicas". */
export const MOVE_BATCH_MAX = 500;

/** Time that one batch is worth, where the rate allows more than one move in it. Seconds. */
const BATCH_S = 0.25;

/** A pace. */
export interface MovePace {
  /** Tenants in a batch. 1–500. */
  readonly batchSize: number;
  /** From the start of one batch to the start of the next. Milliseconds. */
  readonly intervalMs: number;
}

/** The pace of `ratePerS` moves a second, above 0. */
export function movePace(ratePerS: number): MovePace {
  const batchSize = Math.min(Math.max(Math.floor(ratePerS * BATCH_S), 1), MOVE_BATCH_MAX);
  return { batchSize, intervalMs: (batchSize / ratePerS) * 1000 };
}
