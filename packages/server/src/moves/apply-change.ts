// What a change of the directory means for the parts of a node that hold calls and polls.
//
// Spec: T2 (revocation), R22; design "Moves". Called for each change the replica shows, and for pushed placements.
// I1  Knowledge changes first, then the new owner (it takes the tenant's agents for connected, T12), then the other
//     shards (they give back what they held), entries last (they re-submit the rest).

import type { TunnelId } from "@moor/protocol";
import type { Change, Replica } from "../directory/directory.ts";
import type { Entry } from "../entry/entry.ts";
import type { PlacementKnowledge } from "../entry/placement-knowledge.ts";
import type { KnownPlacement } from "../peer/peer-link.ts";
import type { Shard } from "../shard/shard.ts";

/** The parts of a node that changes concern. */
export interface ChangedParts {
  readonly placements: PlacementKnowledge;
  readonly shards: readonly Shard[];
  readonly entry: Entry;
}

/** Takes in one change that the replica shows. */
export function applyChange(
  change: Change,
  parts: ChangedParts & { readonly replica: Pick<Replica, "tunnel" | "key"> },
): void {
  switch (change.kind) {
    case "tunnel":
      return applyTunnel(change.id as TunnelId, parts);
    case "placement":
      parts.placements.forget(change.id as TunnelId);
      return applyPlacement(change.id as TunnelId, parts);
    case "key":
      return applyKey(change.id, parts);
    case "token-key":
    case "shard":
    case "node":
    case "move":
    case "job":
    case "residency":
    case "home":
    case "home-app":
    case "service-key":
      return; // Read when they are needed.
  }
}

/** Takes in a placement that a peer pushed, before the feed brings it. */
export function applyPush(tenant: TunnelId, placement: KnownPlacement, parts: ChangedParts): void {
  if (parts.placements.learn(tenant, placement)) applyPlacement(tenant, parts);
}

function applyPlacement(tenant: TunnelId, { placements, shards, entry }: ChangedParts): void {
  const placement = placements.best(tenant);
  if (placement === undefined) return; // Its tunnel row tells the rest.
  // The new owner first: what the old one gives back must find it ready (I1).
  const owner = shards.find((shard) => shard.shard === placement.shard);
  owner?.placementChanged(tenant, placement);
  for (const shard of shards) if (shard !== owner) shard.placementChanged(tenant, placement);
  entry.placementChanged(tenant);
}

function applyTunnel(
  tunnel: TunnelId,
  parts: ChangedParts & { readonly replica: Pick<Replica, "tunnel"> },
): void {
  if (parts.replica.tunnel(tunnel) !== undefined) return;
  parts.placements.forget(tunnel);
  for (const shard of parts.shards) shard.placementChanged(tunnel, undefined);
  parts.entry.tunnelDeleted(tunnel);
}

function applyKey(keyId: string, parts: ChangedParts & { readonly replica: Pick<Replica, "key"> }): void {
  const key = parts.replica.key(keyId);
  if (key !== undefined && !key.isRevoked) return;
  parts.entry.keyRevoked(keyId);
  if (key === undefined) return;
  for (const shard of parts.shards) shard.keyRevoked(key.tenant as TunnelId, keyId);
}
