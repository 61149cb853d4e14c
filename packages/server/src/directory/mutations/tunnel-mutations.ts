// Creating, changing and deleting tunnels; noting that agents polled them.
//
// Spec: T1, T12.

import { textAt } from "../columns.ts";
import type { Ledger } from "../ledger.ts";
import { done, refused, type MutationFunction, type MutationSteps, type Steps } from "../mutation-steps.ts";
import { choosePlacement } from "../placement-choice.ts";
import { query } from "../statements.ts";
import { WRITE } from "../write-statements.ts";
import { insertKey, type NewKey } from "./key-mutations.ts";
import { liveShards, placeTenants } from "./place-tenants.ts";

/** A tunnel to be made. */
export interface CreateTunnel {
  readonly kind: "create-tunnel";
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly access: string;
  readonly deadlineMs: number;
  readonly keys: readonly NewKey[];
}

/** Fields of a tunnel to be changed; null = stays. */
export interface UpdateTunnel {
  readonly kind: "update-tunnel";
  readonly id: string;
  readonly name: string | null;
  readonly description: string | null;
  readonly access: string | null;
  readonly deadlineMs: number | null;
}

/** A tunnel to be deleted. */
export interface DeleteTunnel {
  readonly kind: "delete-tunnel";
  readonly id: string;
}

/** Tunnels that agents have polled. */
export interface RecordSeen {
  readonly kind: "record-seen";
  readonly ids: readonly string[];
}

export const createTunnel: MutationFunction<CreateTunnel> = function* (input, ledger): MutationSteps {
  yield query(WRITE.insertTunnel, [
    input.id,
    input.name,
    input.description,
    input.access,
    input.deadlineMs,
    ledger.wallMs,
  ]);
  const shard = choosePlacement(input.id, yield* liveShards());
  if (shard === undefined) {
    return refused("directory_unavailable", "no shard is live to place the tunnel on");
  }
  yield* placeTenants([{ tenant: input.id, shard, reason: "created" }], ledger);
  for (const key of input.keys) yield* insertKey(key, input.id, ledger);
  ledger.change("tunnel", input.id);
  return done();
};

export const updateTunnel: MutationFunction<UpdateTunnel> = function* (input, ledger): MutationSteps {
  const { id, name, description, access, deadlineMs } = input;
  const updated = yield query(WRITE.updateTunnel, [id, name, description, access, deadlineMs]);
  if (updated.length === 0) return refused("tunnel_not_found", "no such tunnel");
  ledger.change("tunnel", id);
  return done();
};

export const deleteTunnel: MutationFunction<DeleteTunnel> = function* ({ id }, ledger): MutationSteps {
  const deleted = yield query(WRITE.deleteTunnel, [id]);
  if (deleted.length === 0) return refused("tunnel_not_found", "no such tunnel");
  yield query(WRITE.deletePlacement, [id]);
  yield* forgetTunnel(id, ledger);
  const keys = yield query(WRITE.deleteTenantKeys, [id]);
  for (const key of keys) ledger.change("key", textAt(key, "id"));
  ledger.change("placement", id);
  ledger.change("tunnel", id);
  return done();
};

/** Takes a tunnel that is being deleted from the home that has it. Spec L26. */
function* forgetTunnel(tunnel: string, ledger: Ledger): Steps<void> {
  for (const home of yield query(WRITE.forgetTunnel, [tunnel])) ledger.change("home", textAt(home, "id"));
}

export const recordSeen: MutationFunction<RecordSeen> = function* ({ ids }, ledger: Ledger): MutationSteps {
  for (const id of ids) {
    const seen = yield query(WRITE.markSeen, [id]);
    if (seen.length > 0) ledger.change("tunnel", id);
  }
  return done();
};
