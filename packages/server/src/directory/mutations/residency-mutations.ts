// The residency itself: its foundation, its corrections switch, and the fence after a restore.
//
// Spec: R22, R25.
// I1  A fence first raises the revisions above every one that may have been seen, then places every tenant anew, and
//     only then takes a new incarnation: nodes trust the directory again when no lower revision is left in it.

import { textAt } from "../columns.ts";
import { insertRows } from "../multi-row.ts";
import { all, done, refused, type MutationFunction, type MutationSteps } from "../mutation-steps.ts";
import { query, type SqlValue } from "../statements.ts";
import { WRITE } from "../write-statements.ts";
import { TENANTS_PER_BATCH } from "./node-mutations.ts";
import { placeTenants } from "./place-tenants.ts";
import { mintFirstServiceKey, type NewServiceKey } from "./service-key-mutations.ts";

/** A directory to be founded, unless it is already. */
export interface FoundResidency {
  readonly kind: "found-residency";
  readonly name: string;
  readonly incarnation: string;
  readonly isCorrecting: boolean;
  readonly tokenKey: { readonly id: string; readonly sealedSecret: string };
  readonly serviceKey: NewServiceKey;
}

/** The corrections switch to be set. */
export interface SetCorrections {
  readonly kind: "set-corrections";
  readonly isOn: boolean;
  readonly actor: string;
}

/** First step of a fence: no revision at or below `above` is given out any more. */
export interface RaiseRevision {
  readonly kind: "raise-revision";
  readonly above: number;
}

/** Steps of a fence: places tenants whose revision is at or below `upTo` anew, where they are. */
export interface RestampPlacements {
  readonly kind: "restamp-placements";
  readonly upTo: number;
  /** Last tenant of the step before; empty for the first. */
  readonly after: string;
}

/** Last step of a fence. */
export interface SetIncarnation {
  readonly kind: "set-incarnation";
  readonly incarnation: string;
}

/** Rows of an export, for a directory that is not founded yet. */
export interface ImportRows {
  readonly kind: "import-rows";
  readonly table: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly SqlValue[])[];
}

/** Last step of an import: the residency, with numbers that go on from the exported ones. */
export interface ImportResidency {
  readonly kind: "import-residency";
  readonly name: string;
  readonly incarnation: string;
  readonly isCorrecting: boolean;
  /** Empty when the export names none. */
  readonly defaultShard: string;
  readonly seq: number;
  readonly lastRevision: number;
}

export const foundResidency: MutationFunction<FoundResidency> = function* (input, ledger): MutationSteps {
  if (ledger.head !== undefined) return done();
  // Token keys are what an import writes first.
  if ((yield query(WRITE.anyTokenKey, [])).length > 0 || (yield query(WRITE.anyPlacement, [])).length > 0) {
    return refused("conflict", "an import into this directory was interrupted: import into a new one");
  }
  const { name, incarnation, isCorrecting, tokenKey, serviceKey } = input;
  yield query(WRITE.insertResidency, [name, incarnation, isCorrecting ? 1 : 0, 0, 0, ""]);
  const { id, sealedSecret } = tokenKey;
  yield query(WRITE.insertTokenKey, [id, sealedSecret, "sealing", ledger.wallMs, "foundation"]);
  ledger.change("token-key", id);
  yield* mintFirstServiceKey(serviceKey, ledger);
  return done();
};

export const setCorrections: MutationFunction<SetCorrections> = function* (input, ledger): MutationSteps {
  const changed = yield query(WRITE.setCorrections, [input.isOn ? 1 : 0, input.actor]);
  if (changed.length > 0) ledger.change("residency", ledger.head?.name ?? "");
  return done();
};

// oxlint-disable-next-line require-yield -- it needs no statement of its own
export const raiseRevision: MutationFunction<RaiseRevision> = function* (input, ledger): MutationSteps {
  ledger.raiseRevision(input.above);
  // The row tells where the fence's own revisions begin.
  return done([{ up_to: ledger.lastRevision }]);
};

/** Gives the tenants that were placed anew as rows; none means that nothing is left to do. */
export const restampPlacements: MutationFunction<RestampPlacements> = function* (
  { upTo, after },
  ledger,
): MutationSteps {
  const rows = yield query(WRITE.placementsUpTo, [upTo, after, TENANTS_PER_BATCH]);
  yield* placeTenants(
    rows.map((row) => ({ tenant: textAt(row, "tenant"), shard: textAt(row, "shard"), reason: "fenced" })),
    ledger,
  );
  return done(rows);
};

export const setIncarnation: MutationFunction<SetIncarnation> = function* (input, ledger): MutationSteps {
  if (ledger.head === undefined) return refused("conflict", "the directory is not founded");
  yield query(WRITE.setIncarnation, [input.incarnation]);
  ledger.change("residency", ledger.head.name);
  return done();
};

export const importRows: MutationFunction<ImportRows> = function* (input, ledger): MutationSteps {
  if (ledger.head !== undefined) return refused("conflict", "the directory is not empty");
  yield* all(insertRows(input.table, input.columns, input.rows));
  return done();
};

export const importResidency: MutationFunction<ImportResidency> = function* (input, ledger): MutationSteps {
  if (ledger.head !== undefined) return refused("conflict", "the directory is not empty");
  const { name, incarnation, isCorrecting, defaultShard, seq, lastRevision } = input;
  const corrections = isCorrecting ? 1 : 0;
  yield query(WRITE.insertResidency, [name, incarnation, corrections, seq, lastRevision, defaultShard]);
  return done();
};
