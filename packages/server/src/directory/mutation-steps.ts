// How a change of the directory is written: as statements that any store can run.
//
// A mutation is plain data, made complete (ids, hashes, sealed secrets) by the asker, so that it can cross a thread or a
// connection. Its function yields one Query after the other and is resumed with its rows; the store runs them in a
// transaction: synchronously in SQLite, awaiting each in PostgreSQL.
//
// I1  A mutation that changes something notes it in the ledger, tombstones included.
// I2  A refused mutation's statements and ledger entries are undone by the batch (mutation-batch.ts).

import type { Ledger } from "./ledger.ts";
import type { Query, Row } from "./statements.ts";

/** Why a mutation was not made: codes of the protocol's error table. */
export type RefusalCode =
  | "tunnel_not_found"
  | "home_not_found"
  | "home_exists"
  | "service_key_not_found"
  | "move_blocked"
  | "key_not_found"
  | "shard_not_found"
  | "job_not_found"
  | "token_key_not_found"
  | "invalid_request"
  | "conflict"
  | "directory_unavailable"
  | "directory_regressed";

/** What a mutation came to. */
export type MutationOutcome =
  /** `rows`: what the asker wants to know of it, in the columns of the matching read. */
  | { readonly kind: "done"; readonly rows: readonly Row[] }
  | {
      readonly kind: "refused";
      readonly code: RefusalCode;
      readonly message: string;
      /** Machine-readable detail, as the error carries it. */
      readonly data?: Readonly<Record<string, unknown>>;
    };

/** Statements under way: yields each, takes its rows, ends with a value. */
export type Steps<Value> = Generator<Query, Value, readonly Row[]>;

/** A mutation under way. */
export type MutationSteps = Steps<MutationOutcome>;

/** The function of one kind of mutation. */
export type MutationFunction<Input> = (input: Input, ledger: Ledger) => MutationSteps;

/** The outcome of a mutation that was made. */
export function done(rows: readonly Row[] = []): MutationOutcome {
  return { kind: "done", rows };
}

/** The outcome of a mutation that was not. `message` is for people and names no secret. */
export function refused(
  code: RefusalCode,
  message: string,
  data?: Readonly<Record<string, unknown>>,
): MutationOutcome {
  return { kind: "refused", code, message, ...(data === undefined ? {} : { data }) };
}

/** Runs several statements; gives all their rows. */
export function* all(queries: readonly Query[]): Steps<readonly Row[]> {
  const rows: Row[] = [];
  for (const each of queries) rows.push(...(yield each));
  return rows;
}
