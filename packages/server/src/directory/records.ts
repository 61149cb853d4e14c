// What the directory keeps, as its readers see it: tenants, placements, keys, shards, nodes, moves, jobs.
//
// Spec: T1, T2, T7, T10, R22, R23. Design: "Directory, changes, replicas".
// I1  No record holds the text of a key or of a token key's secret but SealingKey, which never leaves the node.

import type { TunnelId } from "@moor/protocol";
import type { KeyKind } from "./keys.ts";

declare const shardIdBrand: unique symbol;
/** A shard's name: `^[a-z0-9][a-z0-9-]{0,62}$`, a DNS label. */
export type ShardId = string & { readonly [shardIdBrand]: "ShardId" };

/** `text` as a shard id, or undefined when it is not a DNS label in lower case. */
export function parseShardId(text: string): ShardId | undefined {
  return /^[a-z0-9][a-z0-9-]{0,62}$/.test(text) ? (text as ShardId) : undefined;
}

/** A node's name: the same rule as a shard's. */
export type NodeId = string;

/** Where a tenant lives. The placement with the higher revision wins, wherever it is known from. */
export interface Placement {
  readonly shard: ShardId;
  /** Unique in its residency and growing there, 1 … 2^53 − 1; at least the database's time in microseconds. Spec R22. */
  readonly revision: number;
  /** Id of the token key that polling tokens of this placement are sealed with. Spec R23. */
  readonly tokenKey: string;
  /** Format of those tokens, 1 or more. Spec R23. */
  readonly tokenFormat: number;
}

/** Every access mode of a tunnel's connector. Spec T10. */
export const ACCESS_MODES = ["key", "passthrough", "open"] as const;
/** Who may call the connector: bearers of a connector key, whoever the MCP server lets in, or anyone. Spec T10. */
export type AccessMode = (typeof ACCESS_MODES)[number];

/** A tunnel as the directory knows it. */
export interface TunnelRecord {
  readonly id: TunnelId;
  readonly name: string;
  readonly description: string;
  readonly access: AccessMode;
  /** Longest time a command may take, milliseconds, 1_000–900_000. Spec T7. */
  readonly deadlineMs: number;
  readonly createdAtMs: number;
  /** An agent has polled it once, ever. Spec T12. */
  readonly isSeen: boolean;
  readonly placement: Placement;
}

/** A key as the directory knows it: never its text. */
export interface KeyRecord {
  /** `key_` and 24 hexadecimal digits; not secret. */
  readonly id: string;
  readonly kind: KeyKind;
  /** The tunnel (or home) the key belongs to. */
  readonly tenant: string;
  readonly label: string;
  /** First characters of the key's text, safe to show. */
  readonly prefix: string;
  readonly createdAtMs: number;
  readonly isRevoked: boolean;
}

/** Every state of a shard. */
export const SHARD_STATES = ["live", "draining", "down"] as const;
/** `live` takes tenants; `draining` only loses them; `down` is run by no node now. */
export type ShardState = (typeof SHARD_STATES)[number];

/** A shard as the directory knows it. */
export interface ShardRecord {
  readonly id: ShardId;
  /** The node that runs it, or that ran it last; empty when its node does not name it any more. */
  readonly node: NodeId;
  readonly publicHost: string;
  readonly state: ShardState;
  /** Renewals of its lease so far. Its age is measured by watching it stand still on one's own monotonic clock. */
  readonly leaseCounter: number;
}

/** Every part a node can play. */
export const NODE_ROLES = ["entry", "shard"] as const;
/** `entry` holds sockets of clients, `shard` owns tenants. */
export type NodeRole = (typeof NODE_ROLES)[number];

/** A node as the directory knows it. */
export interface NodeRecord {
  readonly id: NodeId;
  /** New at each start. */
  readonly incarnation: string;
  /** Where its peers reach it; empty for a node without peers. */
  readonly internalUrl: string;
  readonly roles: readonly NodeRole[];
  /** Version of its program. */
  readonly version: string;
  /** `left` when it said good-bye; a node that was killed stays `live`. */
  readonly state: "live" | "left";
  /** A revision of this start's own; 0 for a start by a program that did not take one. */
  readonly startRevision: number;
}

/** A key that seals tokens, open: for this node's own use. */
export interface SealingKey {
  readonly id: string;
  /** 32 random bytes. */
  readonly secret: Uint8Array;
  /** `sealing`: new tokens are sealed with it; `accepted`: tokens sealed with it still open. */
  readonly state: "sealing" | "accepted";
}

/** A token key as it may be shown. */
export interface TokenKeyRecord {
  readonly id: string;
  readonly state: "sealing" | "accepted";
  readonly createdAtMs: number;
  /** When it came into its present state. */
  readonly stateSinceMs: number;
  readonly createdBy: string;
  /** Placements whose polling tokens are sealed with it. */
  readonly placementCount: number;
}

/** A change of a tenant's shard that was made on somebody's order. */
export interface Move {
  /** `move_` and 32 hexadecimal digits, minted by who asked: the handle by which a lost answer is asked for again. */
  readonly id: string;
  readonly tenant: string;
  /** Null when the tenant was not placed before. */
  readonly from: ShardId | null;
  readonly to: ShardId;
  readonly revision: number;
  readonly atMs: number;
  readonly actor: string;
  readonly reason: string;
  /** The job it was part of. */
  readonly job: string | null;
}

/** A move with the placement it made. */
export interface MadeMove extends Move {
  readonly placement: Placement;
}

/** Most tenants a job names that it could not move. Count. */
export const BLOCKED_NAMED_MAX = 20;

/** Every state of a job; all but `running` are final. */
export const JOB_STATES = ["running", "done", "aborted", "failed"] as const;
/** `failed` carries an `error`. */
export type JobState = (typeof JOB_STATES)[number];

/** Many moves, made by the leader at a pace. */
export interface Job {
  /** `job_` and 24 hexadecimal digits. */
  readonly id: string;
  readonly kind: "move";
  /** Which tenants, and where to: one shard, or spread over the live ones. */
  readonly selector: { readonly from: ShardId; readonly to: ShardId | "spread" };
  /** Moves a second. */
  readonly ratePerS: number;
  readonly state: JobState;
  /** Moves homes that L22 would keep on the default shard, too. */
  readonly isForced: boolean;
  /** Tenants moved so far. */
  readonly moved: number;
  /** Tenants that L22 kept where they are, so far. */
  readonly blocked: number;
  /** The first of those, at most BLOCKED_NAMED_MAX. */
  readonly blockedTenants: readonly string[];
  /** Tenants on the source when the job was made. */
  readonly total: number;
  /** Last tenant dealt with, in id order. */
  readonly cursor: string | null;
  readonly actor: string;
  readonly reason: string;
  readonly createdAtMs: number;
  readonly error?: string;
}

/** Every kind of row the feed tells about. */
export const CHANGE_KINDS = [
  "tunnel",
  "key",
  "placement",
  "token-key",
  "shard",
  "node",
  "move",
  "job",
  "residency",
  "home",
  "home-app",
  "service-key",
] as const;
/** What changed. `residency` is its corrections switch, its default shard or its incarnation. */
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** One row of the feed: something about `id` changed (or `id` is gone) at `seq`; read the replica for what it is now. */
export interface Change {
  /** Never falls from change to change; what a snapshot brought carries the number of the snapshot. */
  readonly seq: number;
  readonly kind: ChangeKind;
  /**
   * Id of the tunnel, home, key, tenant (`placement`), token key, service key, shard, node, move or job; the name of the
   * residency; home, slash and app of a `home-app`.
   */
  readonly id: string;
}

/** One page of a list in id order. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** Opaque cursor for `after`, or null on the last page. */
  readonly next: string | null;
}

/** Which page of a list. */
export interface PageRequest {
  /** Items on the page, 1–500. */
  readonly limit: number;
  /** A `next` of an earlier page. */
  readonly after?: string;
}
