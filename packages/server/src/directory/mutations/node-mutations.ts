// Nodes and shards coming and going, their leases, and who leads.
//
// Design: "Liveness". Instants here are compared with instants of the same database only.
// I1  A lease is a counter: who watches it judges its age by their own monotonic clock. `renewed_at_ms` serves only the
//     database's own questions.
// I2  Renewals and the leader's lease are no changes: they touch rows that no other mutation locks.

import { integerAt, textAt } from "../columns.ts";
import type { Ledger } from "../ledger.ts";
import { parameters } from "../multi-row.ts";
import { done, refused, type MutationFunction, type MutationSteps, type Steps } from "../mutation-steps.ts";
import { choosePlacement } from "../placement-choice.ts";
import { query } from "../statements.ts";
import { WRITE } from "../write-statements.ts";
import { electDefaultShard, usableDefaultShard } from "./default-shard.ts";
import { liveShards, placeTenants } from "./place-tenants.ts";

/** A node whose lease stood still for so long may lose its shards to another that names them. Milliseconds. */
export const TAKEOVER_SILENCE_MS = 60_000;
/** Tenants placed anew in one transaction. Count. */
export const TENANTS_PER_BATCH = 500;

/** A node that starts. */
export interface RegisterNode {
  readonly kind: "register-node";
  readonly id: string;
  readonly incarnation: string;
  readonly internalUrl: string;
  /** Comma between them. */
  readonly roles: string;
  readonly version: string;
  readonly shards: readonly { readonly id: string; readonly publicHost: string }[];
}

/** A node that says good-bye. */
export interface LeaveNode {
  readonly kind: "leave-node";
  readonly id: string;
  readonly incarnation: string;
}

/** One step of placing the tenants of dropped shards on live ones. */
export interface PlaceDropped {
  readonly kind: "place-dropped";
}

/** Leases to be renewed. */
export interface RenewLeases {
  readonly kind: "renew-leases";
  readonly node: string;
  readonly incarnation: string;
  readonly shards: readonly string[];
  readonly seq: number;
}

/** The leader's lease to be taken or kept. */
export interface TryLead {
  readonly kind: "try-lead";
  readonly node: string;
  readonly incarnation: string;
  readonly ttlMs: number;
}

/** Gives the start's own revision as a row. */
export const registerNode: MutationFunction<RegisterNode> = function* (node, ledger): MutationSteps {
  for (const shard of node.shards) {
    const owner = yield* ownerInTheWay(shard.id, node.id, ledger);
    if (owner !== undefined) return refused("conflict", `shard ${shard.id} is run by node ${owner}`);
  }
  const { id, incarnation, internalUrl, roles, version } = node;
  const startRevision = ledger.takeRevision();
  const { wallMs } = ledger;
  yield query(WRITE.upsertNode, [id, incarnation, internalUrl, roles, version, wallMs, startRevision]);
  yield query(WRITE.upsertLease, [`node/${id}`, id, incarnation, ledger.wallMs]);
  yield query(WRITE.endLead, [id]);
  ledger.change("node", id);
  const before = yield query(WRITE.shardsOfNode, [id]);
  for (const shard of node.shards) {
    yield query(WRITE.upsertShard, [shard.id, id, shard.publicHost]);
    yield query(WRITE.upsertLease, [`shard/${shard.id}`, id, incarnation, ledger.wallMs]);
    ledger.change("shard", shard.id);
  }
  const named = new Set(node.shards.map((shard) => shard.id));
  const dropped = before.map((row) => textAt(row, "id")).filter((shard) => !named.has(shard));
  for (const shard of dropped) {
    yield query(WRITE.dropShard, [shard]);
    ledger.change("shard", shard);
  }
  yield* electDefaultShard([...named], ledger);
  return done([{ start_revision: startRevision }]);
};

/** The node that runs a shard and has neither left nor been silent; undefined when nobody is in the way. */
function* ownerInTheWay(shard: string, node: string, ledger: Ledger): Steps<string | undefined> {
  const [found] = yield query(WRITE.shard, [shard]);
  if (found === undefined || found["state"] === "down") return undefined;
  const owner = textAt(found, "node");
  if (owner === node) return undefined;
  const [lease] = yield query(WRITE.lease, [`shard/${shard}`]);
  const isSilent =
    lease === undefined || integerAt(lease, "renewed_at_ms") <= ledger.wallMs - TAKEOVER_SILENCE_MS;
  return isSilent ? undefined : owner;
}

export const leaveNode: MutationFunction<LeaveNode> = function* (node, ledger): MutationSteps {
  const left = yield query(WRITE.leaveNode, [node.id, node.incarnation]);
  if (left.length === 0) return done();
  yield query(WRITE.endLead, [node.id]);
  ledger.change("node", node.id);
  const shards = yield query(WRITE.downShardsOfNode, [node.id]);
  for (const shard of shards) ledger.change("shard", textAt(shard, "id"));
  return done();
};

/** Gives the placed tenants as rows: none means that nothing is left to do, or no shard is live. */
export const placeDropped: MutationFunction<PlaceDropped> = function* (_, ledger): MutationSteps {
  const tenants = yield query(WRITE.tenantsOfDroppedShards, [TENANTS_PER_BATCH]);
  if (tenants.length === 0) return done();
  const live = yield* liveShards();
  if (live.length === 0) return done();
  const home = yield* usableDefaultShard();
  const assignments = tenants.map((row) => {
    const tenant = textAt(row, "tenant");
    // A home goes where every client follows it; a tunnel anywhere.
    const isHome = !tenant.startsWith("tunnel_") && home !== undefined && live.includes(home);
    const shard = isHome ? home : (choosePlacement(tenant, live) ?? "");
    return { tenant, shard, reason: "shard-dropped" };
  });
  yield* placeTenants(assignments, ledger);
  return done(tenants);
};

export const renewLeases: MutationFunction<RenewLeases> = function* (lease, ledger): MutationSteps {
  const holders = [`node/${lease.node}`, ...lease.shards.map((shard) => `shard/${shard}`)];
  const renewed = yield query(`${WRITE.renewLeases} in (${parameters(holders.length, 5)}) returning holder`, [
    lease.node,
    lease.incarnation,
    ledger.wallMs,
    lease.seq,
    ...holders,
  ]);
  if (renewed.length === holders.length) return done();
  return refused("conflict", "another start of the node, or another node, holds the lease");
};

export const tryLead: MutationFunction<TryLead> = function* (lease, ledger): MutationSteps {
  const { node, incarnation, ttlMs } = lease;
  return done(yield query(WRITE.lead, [node, incarnation, ledger.wallMs + ttlMs, ledger.wallMs]));
};
