// Where a tenant lives, as far as this node knows: the higher revision wins, wherever it is known from.
//
// Spec: R22; design "Shape" (Knowledge).
// I1  What a peer or a push said is kept only while it is newer than the replica.
// I2  `best` never gives an older placement than one it gave or was told before, as far as memory reaches.

import type { Replica } from "../directory/directory.ts";
import type { TenantId } from "../directory/tenant-id.ts";
import type { KnownPlacement } from "../peer/peer-link.ts";

/** Placements remembered beyond the replica: those of a large move under way, or a bootstrap entry's busiest. Count. */
const LEARNED_MAX = 20_000;

export interface PlacementKnowledge {
  /** The newest placement known, `hint` included; `undefined` when nothing is known. */
  best(tenant: TenantId, hint?: KnownPlacement): KnownPlacement | undefined;
  /** Takes in a placement from a peer, a push or a token; returns whether it was news. */
  learn(tenant: TenantId, placement: KnownPlacement): boolean;
  /** The tenant is gone, or the replica caught up. */
  forget(tenant: TenantId): void;
}

/**
 * @param read what this node's replica says, if it has one
 * @param noteRevision told of every revision that is news to the replica: the directory may know less than is out
 *   there (R22)
 */
export function createPlacementKnowledge(
  read: ((tenant: TenantId) => KnownPlacement | undefined) | undefined,
  noteRevision: (revision: number) => void = () => {},
): PlacementKnowledge {
  const learned = new Map<TenantId, KnownPlacement>();
  return {
    best: (tenant, hint) => newer(newer(read?.(tenant), learned.get(tenant)), hint),
    learn: (tenant, placement) => {
      const known = newer(read?.(tenant), learned.get(tenant));
      if (known !== undefined && known.revision >= placement.revision) return false;
      noteRevision(placement.revision);
      learned.delete(tenant); // Moves it behind the others: the oldest is dropped first.
      learned.set(tenant, placement);
      if (learned.size > LEARNED_MAX)
        for (const oldest of learned.keys()) {
          learned.delete(oldest);
          break;
        }
      return true;
    },
    forget: (tenant) => {
      const kept = learned.get(tenant);
      if (kept === undefined) return;
      const shown = read?.(tenant);
      if (shown === undefined || shown.revision >= kept.revision) learned.delete(tenant);
    },
  };
}

/** What a replica says of a tenant's placement. */
export function replicaPlacements(
  replica: Pick<Replica, "placement">,
): (tenant: TenantId) => KnownPlacement | undefined {
  return (tenant) => replica.placement(tenant);
}

function newer(
  left: KnownPlacement | undefined,
  right: KnownPlacement | undefined,
): KnownPlacement | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return right.revision > left.revision ? right : left;
}
