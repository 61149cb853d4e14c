// Where a new tenant is placed, and at which revision.
//
// I1  The choice depends on nothing but the tenant and the live shards (rendezvous hashing), so that an entry without a
//     replica can guess it, and a shard that comes or goes moves only the tenants it gains or loses.

import { hash } from "node:crypto";

/** Largest revision a placement can have: 2^53 − 1, reached by wall-clock microseconds in the year 2255. */
const REVISION_MAX = Number.MAX_SAFE_INTEGER;

/** The shard with the highest SHA-256 of `tenant NUL shard`; undefined when there is none. */
export function choosePlacement(tenant: string, shards: readonly string[]): string | undefined {
  let best: { readonly shard: string; readonly weight: string } | undefined;
  for (const shard of shards) {
    const weight = hash("sha256", `${tenant}\0${shard}`, "hex");
    if (best === undefined || weight > best.weight) best = { shard, weight };
  }
  return best?.shard;
}

/** The wall clock as a lower bound for a revision: microseconds, 1 … 2^53 − 1. */
export function revisionFloor(wallMs: number): number {
  return Math.min(Math.max(Math.trunc(wallMs * 1000), 1), REVISION_MAX);
}
