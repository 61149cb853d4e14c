// What the directory needs of a store: SQLite (sqlite-store.ts) or PostgreSQL (postgres-store.ts).
//
// I1  `commit` resolves after the change is durable AND this node's replica shows it.
// I2  A lost answer is looked up again; only when that fails too does the error say that the outcome is unknown.

import { ProtocolError } from "@moor/protocol";
import type { MutationOutcome } from "./mutation-steps.ts";
import type { Mutation } from "./mutations.ts";
import type { RenewLeases, TryLead } from "./mutations/node-mutations.ts";
import type { ReplicaHealth } from "./replica.ts";
import type { Query, Row } from "./statements.ts";

/** Where the directory keeps its rows. */
export interface Store {
  /** The outcome of a mutation; rejects with `directory_unavailable` or `directory_regressed`. */
  commit(mutation: Mutation): Promise<MutationOutcome>;
  /** The same for leases: never behind other mutations. */
  commitLease(mutation: RenewLeases | TryLead): Promise<MutationOutcome>;
  /** Rows of the authority itself; rejects with `directory_unavailable`. */
  read(query: Query): Promise<readonly Row[]>;
  /** Ends pending mutations, then lets go of everything. */
  close(): Promise<void>;
}

/** Mutations that may wait in a store's writer; more are refused at once. */
export const WAITING_MUTATIONS_MAX = 10_000;

/** Nothing was changed, and `reason` says why. */
export function unavailable(reason: string): ProtocolError {
  return new ProtocolError("directory_unavailable", { message: `changes are not possible now: ${reason}` });
}

/** Refuses changes while this node has seen more than the authority knows. Spec R22. */
export function throwIfRegressed(health: ReplicaHealth): void {
  if (health.kind !== "regressed") return;
  throw new ProtocolError("directory_regressed", {
    message: `changes are not possible now: ${health.detail}`,
  });
}

/** The directory could not be asked, and `reason` says why. */
export function unreachable(reason: string): ProtocolError {
  return new ProtocolError("directory_unavailable", {
    message: `the directory cannot be asked now: ${reason}`,
  });
}

/** Whether something was changed could not be found out. */
export function outcomeUnknown(reason: string): ProtocolError {
  return new ProtocolError("directory_unavailable", {
    message: `${reason}: the outcome of the change is unknown, read it back`,
    data: { outcome: "unknown" },
  });
}

/** How whoever asked for a mutation hears of its end. */
export interface Asker {
  readonly resolve: (outcome: MutationOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/** Tells the end of a mutation whose transaction is committed. `isShown`: this node's replica shows what it changed. */
export function settleCommitted(asker: Asker, outcome: MutationOutcome, isShown: boolean): void {
  // Of what was refused there is nothing to show.
  if (isShown || outcome.kind === "refused") return asker.resolve(outcome);
  asker.reject(
    new ProtocolError("directory_unavailable", {
      message: "the change is made, but this node cannot read it yet",
      data: { outcome: "made" },
    }),
  );
}

/** The rows of a mutation that was made; throws the refusal of one that was not. */
export function rowsOf(outcome: MutationOutcome): readonly Row[] {
  if (outcome.kind === "done") return outcome.rows;
  const { code, message, data } = outcome;
  throw new ProtocolError(code, { message, data });
}
