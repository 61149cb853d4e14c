// Creating, changing and deleting homes; their tokens.
//
// Spec: L7, L22, L26.
// I1  A home is placed on the default shard, whether that is live or not: it waits there.
// I2  A tunnel is at most one home's.

import { textAt } from "../columns.ts";
import {
  done,
  refused,
  type MutationFunction,
  type MutationOutcome,
  type MutationSteps,
  type Steps,
} from "../mutation-steps.ts";
import { query, READ } from "../statements.ts";
import { WRITE } from "../write-statements.ts";
import { usableDefaultShard } from "./default-shard.ts";
import { insertKey, type NewKey } from "./key-mutations.ts";
import { placeTenants } from "./place-tenants.ts";
import { createTunnel, type CreateTunnel } from "./tunnel-mutations.ts";

/** A home to be made. */
export interface CreateHome {
  readonly kind: "create-home";
  readonly id: string;
  readonly label: string;
  /** Its tunnel: none, one that exists, or one that is made with it. */
  readonly tunnel: string | CreateTunnel | null;
}

/** Fields of a home to be changed; absent = stays. */
export interface UpdateHome {
  readonly kind: "update-home";
  readonly id: string;
  readonly label?: string;
  readonly tunnel?: string | null;
}

/** A home to be deleted. */
export interface DeleteHome {
  readonly kind: "delete-home";
  readonly id: string;
}

/** A token to be added to a home. */
export interface CreateHomeToken {
  readonly kind: "create-home-token";
  readonly home: string;
  readonly key: NewKey;
}

export const createHome: MutationFunction<CreateHome> = function* (input, ledger): MutationSteps {
  const { id, label, tunnel } = input;
  if ((yield query(WRITE.home, [id])).length > 0)
    return refused("home_exists", "there is a home of this name");
  const shard = yield* usableDefaultShard();
  if (shard === undefined) {
    return refused("directory_unavailable", "no node names the default shard: moor shard default SHARD");
  }
  const tunnelId = tunnel === null || typeof tunnel === "string" ? tunnel : tunnel.id;
  if (tunnel !== null) {
    const outcome =
      typeof tunnel === "string" ? yield* tunnelRefusal(tunnel, id) : yield* createTunnel(tunnel, ledger);
    if (outcome?.kind === "refused") return outcome;
  }
  yield query(WRITE.insertHome, [id, label, tunnelId, ledger.wallMs]);
  yield* placeTenants([{ tenant: id, shard, reason: "created" }], ledger);
  ledger.change("home", id);
  return done();
};

export const updateHome: MutationFunction<UpdateHome> = function* (input, ledger): MutationSteps {
  const { id, label, tunnel } = input;
  if ((yield query(WRITE.home, [id])).length === 0) return refused("home_not_found", "no such home");
  if (label !== undefined) yield query(WRITE.setHomeLabel, [id, label]);
  if (tunnel !== undefined) {
    const refusal = tunnel === null ? undefined : yield* tunnelRefusal(tunnel, id);
    if (refusal !== undefined) return refusal;
    yield query(WRITE.setHomeTunnel, [id, tunnel]);
  }
  ledger.change("home", id);
  return done();
};

export const deleteHome: MutationFunction<DeleteHome> = function* ({ id }, ledger): MutationSteps {
  const deleted = yield query(WRITE.deleteHome, [id]);
  if (deleted.length === 0) return refused("home_not_found", "no such home");
  yield query(WRITE.deletePlacement, [id]);
  yield query(WRITE.deleteHomeEnrolments, [id]);
  for (const key of yield query(WRITE.deleteTenantKeys, [id])) ledger.change("key", textAt(key, "id"));
  for (const app of yield query(WRITE.deleteHomeApps, [id])) ledger.change("home-app", textAt(app, "id"));
  ledger.change("placement", id);
  ledger.change("home", id);
  return done();
};

export const createHomeToken: MutationFunction<CreateHomeToken> = function* (input, ledger): MutationSteps {
  const { home, key } = input;
  if ((yield query(WRITE.home, [home])).length === 0) return refused("home_not_found", "no such home");
  yield* insertKey(key, home, ledger);
  return done();
};

/** Why a home may not have a tunnel (I2). */
function* tunnelRefusal(tunnel: string, home: string): Steps<MutationOutcome | undefined> {
  if ((yield query(READ.tunnel, [tunnel])).length === 0) return refused("tunnel_not_found", "no such tunnel");
  const others = (yield query(WRITE.homeOfTunnel, [tunnel])).map((row) => textAt(row, "id"));
  const other = others.find((id) => id !== home);
  return other === undefined ? undefined : refused("conflict", `the tunnel is that of home ${other}`);
}
