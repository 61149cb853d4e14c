// What a node asks of the directory (the durable authority) and of its replica (the local read copy).
//
// Spec: T1, T2, T7, T10. Design: "Directory, changes, replicas".
// I1  Every mutation and its `changes` rows commit in one transaction; a promise resolves after the commit is durable
//     AND the replica of this node shows it.
// I2  Nothing on the path of a call reads anything but the replica, which is synchronous and survives the directory.
// I3  A placement's revision only grows (max of last + 1 and wall-clock microseconds, below 2^53).

import type { TunnelId } from "@moor/protocol";
import type { Secret } from "@moor/runtime";
import type { KeyKind } from "./keys.ts";

declare const shardIdBrand: unique symbol;
/** A shard's name: `^[a-z0-9][a-z0-9-]{0,62}$`, a DNS label. */
export type ShardId = string & { readonly [shardIdBrand]: "ShardId" };

/** `text` as a shard id, or undefined when it is not a DNS label in lower case. */
export function parseShardId(text: string): ShardId | undefined {
  return /^[a-z0-9][a-z0-9-]{0,62}$/.test(text) ? (text as ShardId) : undefined;
}

/** Where a tenant lives. The placement with the higher revision wins, wherever it is known from. */
export interface Placement {
  readonly shard: ShardId;
  /** Microseconds-since-1970-like counter, 1 … 2^53 − 1. */
  readonly revision: number;
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

/** Every kind of row the feed tells about. */
export type ChangeKind = "tunnel" | "key" | "placement" | "token-key" | "shard" | "node";

/** One row of the feed: something about `id` changed (or `id` is gone) at `seq`; read the replica for what it is now. */
export interface Change {
  /** Grows by at least one from change to change. */
  readonly seq: number;
  readonly kind: ChangeKind;
  /** Tunnel id, key id, tenant id (for `placement`), token key id, shard id or node id. */
  readonly id: string;
}

/** What a new tunnel may be given; everything has a default. */
export interface TunnelInput {
  /** 1–128 characters without control characters. Default: `tunnel-` and the id's first 8 digits. */
  readonly name?: string;
  /** Up to 1_024 characters. Default empty. */
  readonly description?: string;
  /** Default `key`. */
  readonly access?: AccessMode;
  /** Milliseconds, 1_000–900_000, default 55_000. Spec T7. */
  readonly deadlineMs?: number;
}

/** A new tunnel and its first keys: the only time their text is known. */
export interface CreatedTunnel {
  readonly tunnel: TunnelRecord;
  readonly agentKey: Secret;
  /** Null unless access is `key`. */
  readonly connectorKey: Secret | null;
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

/** The kinds of key a tunnel can have. */
export type TunnelKeyKind = "agent" | "connector";

/** A node that starts, with the shards it runs. */
export interface NodeRegistration {
  /** Stable over restarts, so that shards a node stops running are known to be its own. */
  readonly id: string;
  /** New at each start. */
  readonly incarnation: string;
  readonly shards: readonly { readonly id: ShardId; readonly publicHost: string }[];
}

/**
 * The durable authority. Every method may reject with a ProtocolError: `directory_unavailable` (nothing was changed, or
 * the outcome of a change is not known: read it back), `tunnel_not_found`, `key_not_found`, `invalid_request` (with
 * `param`), `conflict`.
 */
export interface Directory {
  /** Creates, places on a live shard and keys a tunnel in one transaction: it works at once (T1). */
  createTunnel(input: TunnelInput): Promise<CreatedTunnel>;
  /** Changes the fields that are present. */
  updateTunnel(id: TunnelId, fields: TunnelInput): Promise<TunnelRecord>;
  /** Deletes a tunnel with its placement and keys, for good. */
  deleteTunnel(id: TunnelId): Promise<void>;
  getTunnel(id: TunnelId): Promise<TunnelRecord>;
  listTunnels(page: PageRequest): Promise<Page<TunnelRecord>>;
  createKey(input: {
    readonly tunnel: TunnelId;
    readonly kind: TunnelKeyKind;
    /** Up to 128 characters. */
    readonly label?: string;
  }): Promise<{ readonly record: KeyRecord; readonly key: Secret }>;
  /** Revokes a key for good; revoking a revoked one does nothing. */
  revokeKey(id: string): Promise<KeyRecord>;
  listKeys(page: PageRequest & { readonly tunnel?: TunnelId }): Promise<Page<KeyRecord>>;
  /** Notes that agents have polled these tunnels; unknown ids and tunnels already noted cost nothing. Spec T12. */
  recordSeen(ids: readonly TunnelId[]): Promise<void>;
  /**
   * Makes a node and its shards known and live. Shards that this node ran before and does not name any more are down,
   * and their tenants are placed on live shards in the same transaction.
   */
  registerNode(node: NodeRegistration): Promise<void>;
  /** Ends pending mutations, then lets go of files, connections and the lock. */
  close(): Promise<void>;
}

/** A key that seals tokens. */
export interface SealingKey {
  readonly id: string;
  /** 32 random bytes. */
  readonly secret: Uint8Array;
  /** `sealing`: new tokens are sealed with it; `accepted`: tokens sealed with it still open. */
  readonly state: "sealing" | "accepted";
}

/** This node's local read copy. Synchronous: the only thing the path of a call reads. */
export interface Replica {
  /** Newest change this copy shows. */
  readonly seq: number;
  tunnel(id: string): TunnelRecord | undefined;
  /** The key with this SHA-256, or undefined when there is none or it is revoked. */
  keyByHash(hash: Uint8Array): KeyRecord | undefined;
  /** A key by its id, revoked ones included: for asking again after a `key` change. */
  key(id: string): KeyRecord | undefined;
  /** At least one, the sealing one first. */
  sealingKeys(): readonly SealingKey[];
  /** Name of the residency, e.g. `global`. */
  residency(): string;
  /** Calls `listener` after each change is readable here, in order; returns how to stop. A throwing listener is logged. */
  onChange(listener: (change: Change) => void): () => void;
}
