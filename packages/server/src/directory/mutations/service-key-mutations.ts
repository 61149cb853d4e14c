// The keys that sign hello_ok: one signs, at most one more is announced as the next.
//
// Spec: L28, L29.   I1  While there is any service key, exactly one signs.

import { textAt } from "../columns.ts";
import type { Ledger } from "../ledger.ts";
import { done, refused, type MutationFunction, type MutationSteps, type Steps } from "../mutation-steps.ts";
import { query } from "../statements.ts";
import { WRITE } from "../write-statements.ts";

/** A service key to be kept. Its private half is sealed under the node secret (token-key-vault.ts). */
export interface NewServiceKey {
  readonly id: string;
  readonly publicKey: string;
  readonly sealedSecret: string;
}

/** A service key for a directory that has none. */
export interface MintServiceKey {
  readonly kind: "mint-service-key";
  readonly key: NewServiceKey;
}

/** A service key to be announced. */
export interface AddServiceKey {
  readonly kind: "add-service-key";
  readonly key: NewServiceKey;
  readonly actor: string;
}

/** A service key to be forgotten. */
export interface RetireServiceKey {
  readonly kind: "retire-service-key";
  readonly id: string;
}

export const mintServiceKey: MutationFunction<MintServiceKey> = function* ({ key }, ledger): MutationSteps {
  yield* mintFirstServiceKey(key, ledger);
  return done();
};

export const addServiceKey: MutationFunction<AddServiceKey> = function* (
  { key, actor },
  ledger,
): MutationSteps {
  const states = yield* readStates();
  const next = [...states].find(([, state]) => state === "next");
  if (next !== undefined) {
    return refused(
      "conflict",
      `service key ${next[0]} is the next one already: retire the active one, or it`,
    );
  }
  const state = states.size === 0 ? "active" : "next";
  yield* insertServiceKey(key, state, actor, ledger);
  return done();
};

export const retireServiceKey: MutationFunction<RetireServiceKey> = function* (
  { id },
  ledger,
): MutationSteps {
  const states = yield* readStates();
  const state = states.get(id);
  if (state === undefined) return refused("service_key_not_found", "no such service key");
  if (state === "active") {
    const next = [...states.keys()].find((each) => each !== id);
    if (next === undefined)
      return refused("conflict", "the key signs and there is no next one: add one first");
    yield query(WRITE.setServiceKeyState, [next, "active", ledger.wallMs]);
    ledger.change("service-key", next);
  }
  yield query(WRITE.deleteServiceKey, [id]);
  ledger.change("service-key", id);
  return done();
};

/** Keeps the first service key of a directory; does nothing where there is one. */
export function* mintFirstServiceKey(key: NewServiceKey, ledger: Ledger): Steps<void> {
  if ((yield* readStates()).size > 0) return;
  yield* insertServiceKey(key, "active", "foundation", ledger);
}

function* readStates(): Steps<ReadonlyMap<string, string>> {
  const rows = yield query(WRITE.serviceKeyStates, []);
  return new Map(rows.map((row) => [textAt(row, "id"), textAt(row, "state")]));
}

function* insertServiceKey(key: NewServiceKey, state: string, actor: string, ledger: Ledger): Steps<void> {
  const { id, publicKey, sealedSecret } = key;
  yield query(WRITE.insertServiceKey, [id, publicKey, sealedSecret, state, ledger.wallMs, actor]);
  ledger.change("service-key", id);
}
