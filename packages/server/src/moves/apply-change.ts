// What a change of the directory means for the parts of a node that hold calls, polls and links.
//
// Spec: T2 (revocation), R22, L21; design "Moves". Called for each change the replica shows, and for pushed placements.
// I1  Knowledge changes first, then the new owner (it takes the tenant's agents and box for on their way, T12, L31), then
//     the other shards (they give back what they held), entries last (they re-submit the rest).

import type { HomeId, TunnelId } from "@moor/protocol";
import type { Change, Replica, ShardId } from "../directory/directory.ts";
import { isTunnelId, type TenantId } from "../directory/tenant-id.ts";
import type { Entry } from "../entry/entry.ts";
import type { PlacementKnowledge } from "../entry/placement-knowledge.ts";
import type { LinkEntry } from "../peer/link-ports.ts";
import type { KnownPlacement } from "../peer/peer-link.ts";
import type { HomeTable } from "../shard/home/home-table.ts";
import type { Shard } from "../shard/shard.ts";

/** The parts of a node that changes concern. */
export interface ChangedParts {
  readonly placements: PlacementKnowledge;
  readonly shards: readonly Shard[];
  readonly entry: Entry;
  /** The homes of the same shards. */
  readonly homes: readonly HomeTable[];
  /** The part that holds links. */
  readonly links: LinkEntry;
}

/** What is asked about a change. */
type ChangeReplica = Pick<Replica, "tunnel" | "home" | "key">;

/** Takes in one change that the replica shows. */
export function applyChange(change: Change, parts: ChangedParts & { readonly replica: ChangeReplica }): void {
  switch (change.kind) {
    case "tunnel":
      return applyTunnel(change.id as TunnelId, parts);
    case "home":
      return applyHome(change.id as HomeId, parts);
    case "placement":
      parts.placements.forget(change.id as TenantId);
      return applyPlacement(change.id as TenantId, parts);
    case "key":
      return applyKey(change.id, parts);
    case "token-key":
    case "shard":
    case "node":
    case "move":
    case "job":
    case "residency":
    case "home-app":
    case "service-key":
      return; // Read when they are needed.
  }
}

/** Takes in a placement that a peer pushed, before the feed brings it. */
export function applyPush(tenant: TenantId, placement: KnownPlacement, parts: ChangedParts): void {
  if (parts.placements.learn(tenant, placement)) applyPlacement(tenant, parts);
}

function applyPlacement(tenant: TenantId, { placements, shards, entry, homes, links }: ChangedParts): void {
  const placement = placements.best(tenant);
  if (placement === undefined) return; // Its own row tells the rest.
  // The new owner first: what the old one gives back must find it ready (I1).
  if (isTunnelId(tenant)) {
    for (const shard of ownerFirst(shards, placement)) shard.placementChanged(tenant, placement);
    entry.placementChanged(tenant);
  } else {
    for (const table of ownerFirst(homes, placement)) table.placementChanged(tenant, placement);
    links.placementChanged(tenant);
  }
}

function ownerFirst<Part extends { readonly shard: ShardId }>(
  parts: readonly Part[],
  owner: KnownPlacement,
): readonly Part[] {
  const isOwner = ({ shard }: Part) => shard === owner.shard;
  return [...parts.filter(isOwner), ...parts.filter((part) => !isOwner(part))];
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

function applyHome(home: HomeId, parts: ChangedParts & { readonly replica: Pick<Replica, "home"> }): void {
  const record = parts.replica.home(home);
  if (record === undefined) parts.placements.forget(home);
  for (const table of parts.homes) {
    if (record === undefined) table.homeDeleted(home);
    else table.boxKeyChanged(home, record.boxKey ?? undefined);
  }
  parts.links.homeChanged(home);
}

function applyKey(keyId: string, parts: ChangedParts & { readonly replica: Pick<Replica, "key"> }): void {
  const key = parts.replica.key(keyId);
  if (key !== undefined && !key.isRevoked) return;
  parts.entry.keyRevoked(keyId);
  parts.links.keyRevoked(keyId);
  if (key === undefined) return;
  if (key.kind === "app" || key.kind === "extension") {
    for (const table of parts.homes) table.tokenRevoked(key.tenant as HomeId, keyId);
    return;
  }
  for (const shard of parts.shards) shard.keyRevoked(key.tenant as TunnelId, keyId);
}
