// Shards, nodes, placements, moves, jobs and token keys as the operator API shows them.

import type {
  Job,
  Move,
  NodeRecord,
  Placement,
  ReplicaHealth,
  ShardRecord,
  TenantCounts,
  TokenKeyRecord,
} from "../directory/directory.ts";
import type { TimelineEvent } from "../moves/mover.ts";
import type { JsonObject } from "./operator-json.ts";

/** A shard. `leaseAgeMs`: how long its lease's counter stood still, as this node sees it. */
export function shardJson(
  shard: ShardRecord,
  counts: TenantCounts,
  leaseAgeMs: number | undefined,
  isLate: boolean,
  isDefault: boolean,
): JsonObject {
  return {
    id: shard.id,
    state: shard.state,
    node: shard.node,
    public_host: shard.publicHost,
    tunnels: counts.tunnels,
    homes: counts.homes,
    lease_age_ms: leaseAgeMs === undefined ? null : Math.round(leaseAgeMs),
    late: isLate && shard.state !== "down",
    /** New homes are placed here, and the base host leads here. */
    default: isDefault,
  };
}

/** A node with the shards it runs. */
export function nodeJson(node: NodeRecord, shards: readonly ShardRecord[]): JsonObject {
  return {
    id: node.id,
    state: node.state,
    roles: node.roles,
    shards: shards.filter((shard) => shard.node === node.id).map(({ id }) => id),
    internal_url: node.internalUrl,
    incarnation: node.incarnation,
    version: node.version,
  };
}

/** Where a tenant lives. `view`: how far this node's knowledge can be trusted to be the present. */
export function whereJson(
  tenant: string,
  placement: Placement,
  shard: ShardRecord | undefined,
  health: ReplicaHealth,
): JsonObject {
  return {
    tenant,
    shard: placement.shard,
    state: shard?.state ?? "down",
    node: shard?.node ?? "",
    public_host: shard?.publicHost ?? "",
    revision: placement.revision,
    view: health.kind,
  };
}

/** A move with its audit. */
export function moveJson(move: Move): JsonObject {
  return {
    id: move.id,
    tenant: move.tenant,
    from: move.from,
    to: move.to,
    revision: move.revision,
    at: instant(move.atMs),
    actor: move.actor,
    reason: move.reason,
    job: move.job,
  };
}

/** A job with its progress. */
export function jobJson(job: Job): JsonObject {
  const isSpread = job.selector.to === "spread";
  return {
    id: job.id,
    kind: job.kind,
    from: job.selector.from,
    to: isSpread ? null : job.selector.to,
    spread: isSpread,
    rate: job.ratePerS,
    state: job.state,
    forced: job.isForced,
    moved: job.moved,
    /** Homes that stayed where they are because L22 keeps them, and the first of them. */
    blocked: job.blocked,
    blocked_tenants: job.blockedTenants,
    total: job.total,
    actor: job.actor,
    reason: job.reason,
    created_at: instant(job.createdAtMs),
    error: job.error ?? null,
  };
}

/** A token key, never its bytes. */
export function tokenKeyJson(key: TokenKeyRecord): JsonObject {
  return {
    id: key.id,
    state: key.state,
    created_at: instant(key.createdAtMs),
    state_since: instant(key.stateSinceMs),
    created_by: key.createdBy,
    placements: key.placementCount,
  };
}

/** One line of a tenant's past. */
export function timelineEventJson({ atMs, node, event, detail }: TimelineEvent): JsonObject {
  return { at: instant(atMs), node, event, detail };
}

function instant(wallMs: number): string {
  return new Date(wallMs).toISOString();
}
