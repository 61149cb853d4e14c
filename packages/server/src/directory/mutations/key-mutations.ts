// Creating and revoking keys.
//
// Spec: T2.

import type { Ledger } from "../ledger.ts";
import { done, refused, type MutationFunction, type MutationSteps, type Steps } from "../mutation-steps.ts";
import { query, READ } from "../statements.ts";
import { WRITE } from "../write-statements.ts";

/** A key to be kept: never its text. */
export interface NewKey {
  readonly id: string;
  readonly kind: string;
  readonly hashHex: string;
  readonly prefix: string;
  readonly label: string;
}

/** A key to be added to a tunnel. */
export interface CreateKey {
  readonly kind: "create-key";
  readonly tunnel: string;
  readonly key: NewKey;
}

/** A key to be revoked. */
export interface RevokeKey {
  readonly kind: "revoke-key";
  readonly id: string;
}

export const createKey: MutationFunction<CreateKey> = function* (input, ledger): MutationSteps {
  // An update that changes nothing tells whether the tunnel exists.
  const tunnel = yield query(WRITE.updateTunnel, [input.tunnel, null, null, null, null]);
  if (tunnel.length === 0) return refused("tunnel_not_found", "no such tunnel");
  yield* insertKey(input.key, input.tunnel, ledger);
  return done();
};

export const revokeKey: MutationFunction<RevokeKey> = function* ({ id }, ledger): MutationSteps {
  const revoked = yield query(WRITE.revokeKey, [id]);
  if (revoked.length > 0) {
    ledger.change("key", id);
    return done();
  }
  const known = yield query(READ.key, [id]);
  return known.length > 0 ? done() : refused("key_not_found", "no such key");
};

/** Keeps a key of `tenant`. */
export function* insertKey(key: NewKey, tenant: string, ledger: Ledger): Steps<void> {
  const { id, kind, hashHex, prefix, label } = key;
  yield query(WRITE.insertKey, [id, kind, tenant, hashHex, prefix, label, ledger.wallMs]);
  ledger.change("key", id);
}
