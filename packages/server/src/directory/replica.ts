// What a node reads on the path of calls and polls: its local copy of the directory.
//
// Spec: R22, R24. Design: "Directory, changes, replicas".
// I1  Every read is synchronous and survives the directory.
// I2  A listener hears of a change after every read shows it.
// I3  A regressed replica goes on serving what it knows; it never shows a revision below one it has shown.

import type { HomeAppRecord, HomeRecord, ServiceKeys } from "./home-records.ts";
import type { Change, KeyRecord, Move, NodeRecord, Placement, SealingKey, ShardId } from "./records.ts";
import type { ShardRecord, TunnelRecord } from "./records.ts";

/** How far a replica can be trusted to be the present. */
export type ReplicaHealth =
  | { readonly kind: "current" }
  /** The directory cannot be read; `sinceMs` is when it last could, on the node's monotonic clock. */
  | { readonly kind: "behind"; readonly sinceMs: number }
  /** The directory knows less than this node has seen: changes are refused until `moor directory fence`. Spec R22. */
  | { readonly kind: "regressed"; readonly detail: string };

/** Tenants of one shard. */
export interface TenantCounts {
  readonly tunnels: number;
  readonly homes: number;
}

/** This node's local read copy. Synchronous: the only thing the path of a call reads. */
export interface Replica {
  /** Newest change this copy shows. */
  readonly seq: number;
  readonly health: ReplicaHealth;
  tunnel(id: string): TunnelRecord | undefined;
  home(id: string): HomeRecord | undefined;
  /** Apps that said hello to a home, in id order. Spec L22. */
  homeApps(home: string): readonly HomeAppRecord[];
  /** Where a tenant lives. */
  placement(tenant: string): Placement | undefined;
  /** The key with this SHA-256, or undefined when there is none or it is revoked. */
  keyByHash(hash: Uint8Array): KeyRecord | undefined;
  /** A key by its id, revoked ones included: for asking again after a `key` change. */
  key(id: string): KeyRecord | undefined;
  /** Keys whose tokens open; at least one, the sealing one first. */
  sealingKeys(): readonly SealingKey[];
  /** The keys that sign `hello_ok`; undefined in a copy of a directory that has none yet. Spec L29. */
  serviceKeys(): ServiceKeys | undefined;
  /** Where new homes are placed and the base host leads; undefined while no shard was ever registered. */
  defaultShard(): ShardId | undefined;
  /** Name of the residency, e.g. `global`. */
  residency(): string;
  /** Whether polls may be corrected in this residency. Spec R25. */
  correctionsOn(): boolean;
  /** Every shard in id order. */
  shards(): readonly ShardRecord[];
  shard(id: string): ShardRecord | undefined;
  /** Every node in id order, those that left included. */
  nodes(): readonly NodeRecord[];
  /** At most `limit` tenants of a shard in id order, after `after` (empty = from the first). */
  tenantsOfShard(shard: ShardId, after: string, limit: number): readonly string[];
  /** Tenants of each shard that has any. Counts them: not for the path of a call. */
  countsByShard(): ReadonlyMap<ShardId, TenantCounts>;
  /** The newest moves of a tenant, newest first, at most `limit` (default 100). */
  movesOf(tenant: string, limit?: number): readonly Move[];
  /**
   * Asks the authority now; resolves when everything committed before the call is shown, or when `waitMs` milliseconds
   * have passed. Never rejects.
   */
  catchUp(waitMs: number): Promise<void>;
  /**
   * A revision met elsewhere: in a token that opens, from a peer. When the directory, asked again, has never given out
   * one so high, health becomes `regressed`. Spec R22.
   */
  noteRevision(revision: number): void;
  /** Calls `listener` after each change is readable here, in order; returns how to stop. A throwing listener is logged. */
  onChange(listener: (change: Change) => void): () => void;
}
