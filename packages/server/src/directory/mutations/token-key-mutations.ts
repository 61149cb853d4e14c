// The ring of token keys: accepted, then sealing, then accepted again, then gone.
//
// Spec: R23.
// I1  Exactly one key seals.   I2  A key goes only when no placement's tokens are sealed with it.

import { textAt } from "../columns.ts";
import { done, refused, type MutationFunction, type MutationSteps } from "../mutation-steps.ts";
import { query } from "../statements.ts";
import { WRITE } from "../write-statements.ts";
import { TAKEOVER_SILENCE_MS, TENANTS_PER_BATCH } from "./node-mutations.ts";
import { placeTenants } from "./place-tenants.ts";

/** A token key to be added. Its secret is sealed under the node secret (token-key-vault.ts). */
export interface AddTokenKey {
  readonly kind: "add-token-key";
  readonly id: string;
  readonly sealedSecret: string;
  readonly actor: string;
}

/** A token key that is to seal. */
export interface PromoteTokenKey {
  readonly kind: "promote-token-key";
  readonly id: string;
  /** The asking node, which has every change it makes; empty when it is none. */
  readonly self: string;
}

/** One step of retiring a token key. */
export interface RetireTokenKey {
  readonly kind: "retire-token-key";
  readonly id: string;
  /** Last tenant of the step before; empty for the first. */
  readonly after: string;
}

/** Secrets that are to be kept in another sealing. */
export interface ResealTokenKeys {
  readonly kind: "reseal-token-keys";
  readonly secrets: readonly { readonly id: string; readonly sealedSecret: string }[];
}

export const addTokenKey: MutationFunction<AddTokenKey> = function* (key, ledger): MutationSteps {
  yield query(WRITE.insertTokenKey, [key.id, key.sealedSecret, "accepted", ledger.wallMs, key.actor]);
  ledger.change("token-key", key.id);
  return done();
};

export const promoteTokenKey: MutationFunction<PromoteTokenKey> = function* (input, ledger): MutationSteps {
  const { id, self } = input;
  const [found] = yield query(WRITE.tokenKey, [id]);
  if (found === undefined) return refused("token_key_not_found", "no such token key");
  if (found["state"] === "sealing") return done();
  // Null once the feed was trimmed: every node has had it for an hour then.
  const added = (yield query(WRITE.newestChangeOf, ["token-key", id]))[0]?.["seq"];
  const silentSinceMs = ledger.wallMs - TAKEOVER_SILENCE_MS;
  const lagging =
    typeof added === "number" ? yield query(WRITE.laggingNodes, [silentSinceMs, added, self]) : [];
  if (lagging.length > 0) {
    const names = lagging.map((row) => textAt(row, "id")).join(", ");
    return refused(
      "conflict",
      `nodes that are not known to have the key yet: ${names}; ask again in a moment`,
    );
  }
  for (const before of yield query(WRITE.sealingTokenKey, [])) {
    yield query(WRITE.setTokenKeyState, [textAt(before, "id"), "accepted", ledger.wallMs]);
    ledger.change("token-key", textAt(before, "id"));
  }
  yield query(WRITE.setTokenKeyState, [id, "sealing", ledger.wallMs]);
  ledger.change("token-key", id);
  return done();
};

/** Gives the tenants that were placed anew as rows; none means that the key is gone. */
export const retireTokenKey: MutationFunction<RetireTokenKey> = function* (
  { id, after },
  ledger,
): MutationSteps {
  const [found] = yield query(WRITE.tokenKey, [id]);
  if (found === undefined) return refused("token_key_not_found", "no such token key");
  if (found["state"] === "sealing") return refused("conflict", "the key seals: promote another one first");
  const rows = yield query(WRITE.placementsOfTokenKey, [id, after, TENANTS_PER_BATCH]);
  yield* placeTenants(
    rows.map((row) => ({
      tenant: textAt(row, "tenant"),
      shard: textAt(row, "shard"),
      reason: "token-key-retired",
    })),
    ledger,
  );
  if (rows.length > 0) return done(rows);
  const left = yield query(WRITE.placementsOfTokenKey, [id, "", 1]);
  if (left.length > 0) return refused("conflict", "tenants were placed with the key meanwhile: ask again");
  yield query(WRITE.deleteTokenKey, [id]);
  ledger.change("token-key", id);
  return done();
};

export const resealTokenKeys: MutationFunction<ResealTokenKeys> = function* (
  { secrets },
  ledger,
): MutationSteps {
  for (const { id, sealedSecret } of secrets) {
    yield query(WRITE.setTokenKeySecret, [id, sealedSecret]);
    ledger.change("token-key", id);
  }
  return done();
};
