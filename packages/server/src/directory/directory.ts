// What a node asks of the directory: the durable authority of tenants, placements, keys, shards, nodes, moves and jobs.
//
// Spec: T1, T2, T7, T10, R22. Design: "Directory, changes, replicas".
// I1  Every mutation and its `changes` rows commit in one transaction; a promise resolves after the commit is durable
//     AND the replica of this node shows it.
// I2  Nothing on the path of a call reads anything but the replica, which is synchronous and survives the directory.
// I3  A revision is given to one placement once: the next is max(last + 1, database time in microseconds), below 2^53.
// I4  A change whose COMMIT got no answer is looked up again; only when that is impossible too is its outcome unknown.

import { isProtocolError, type HomeId, type ProtocolError, type TunnelId } from "@moor/protocol";
import type { Secret } from "@moor/runtime";
import type { HomeDirectory } from "./home-directory.ts";
import type { BlockedMove } from "./home-records.ts";
import type {
  AccessMode,
  Job,
  JobState,
  KeyRecord,
  MadeMove,
  Move,
  NodeId,
  NodeRole,
  Page,
  PageRequest,
  ShardId,
  TokenKeyRecord,
  TunnelRecord,
} from "./records.ts";

export type * from "./home-directory.ts";
export * from "./home-records.ts";
export * from "./records.ts";
export type * from "./replica.ts";

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

/** The kinds of key a tunnel can have. */
export type TunnelKeyKind = "agent" | "connector";

/** One start of a node. */
export interface NodeIncarnation {
  readonly id: NodeId;
  /** New at each start. */
  readonly incarnation: string;
}

/** A node that starts, with the shards it runs. */
export interface NodeRegistration extends NodeIncarnation {
  readonly shards: readonly { readonly id: ShardId; readonly publicHost: string }[];
  /** Where its peers reach it. Default empty: it has none. */
  readonly internalUrl?: string;
  /** Default entry and shard. */
  readonly roles?: readonly NodeRole[];
  /** Version of its program, up to 64 characters. Default empty. */
  readonly version?: string;
}

/** What a node is given when it registers. */
export interface NodeRegistered {
  /** A revision of its own: link generations of this start are above it. Spec L23. */
  readonly startRevision: number;
}

/** Who orders a change, for the audit. */
export interface Order {
  /** 1–128 characters without control characters. */
  readonly actor: string;
  /** Up to 1_024 characters. Default empty. */
  readonly reason?: string;
}

/** One tenant to move. */
export interface MoveOrder {
  /** `move_` and 32 hexadecimal digits (`mintMoveId`); a second order with the id of a made move makes nothing new. */
  readonly moveId: string;
  readonly tenant: string;
  readonly to: ShardId;
  /** Moves it only from there. */
  readonly from?: ShardId;
}

/** What a new job is to do. */
export interface JobInput extends Order {
  readonly selector: Job["selector"];
  /** Moves a second, 0.01–10_000. */
  readonly ratePerS: number;
  /** Moves homes that L22 would keep on the default shard, too. Default false. */
  readonly isForced?: boolean;
}

/** What a batch of moves came to. */
export interface MovedTenants {
  readonly moves: readonly MadeMove[];
  readonly blocked: readonly BlockedMove[];
}

/** What the leader notes about a job's progress; fields that are absent stay. */
export interface JobProgress {
  readonly id: string;
  readonly moved?: number;
  /** Tenants that L22 kept where they are, so far, and the first of them. */
  readonly blocked?: { readonly count: number; readonly tenants: readonly string[] };
  readonly cursor?: string;
  readonly state?: Exclude<JobState, "running" | "aborted">;
  /** With state `failed`: why, up to 1_024 characters. */
  readonly error?: string;
}

/** What `check` found. */
export interface DirectoryCheck {
  /** Rows of each table. */
  readonly counts: Readonly<Record<string, number>>;
  readonly seq: number;
  /** Highest revision given out. */
  readonly lastRevision: number;
  /** What is wrong, a sentence each; empty when all is well. At most 100. */
  readonly problems: readonly string[];
}

/** Whether the directory is away or regressed: nobody's fault, and it passes. */
export function isDirectoryAway(error: unknown): error is ProtocolError {
  if (!isProtocolError(error)) return false;
  return error.code === "directory_unavailable" || error.code === "directory_regressed";
}

/**
 * The durable authority. Every method may reject with a ProtocolError:
 * - `directory_unavailable`: nothing was changed, unless `error.data.outcome` is `"unknown"`: then read it back by id;
 *   or `"made"`: it is made, and this node cannot read it yet;
 * - `directory_regressed`: it knows less than this node has seen (R22); nothing was changed;
 * - `tunnel_not_found`, `home_not_found`, `key_not_found`, `shard_not_found`, `job_not_found`, `token_key_not_found`,
 *   `invalid_request` (with `param`), `conflict`.
 */
export interface Directory extends HomeDirectory {
  /** Creates, places on a live shard and keys a tunnel in one transaction: it works at once (T1). */
  createTunnel(input: TunnelInput): Promise<CreatedTunnel>;
  /** Changes the fields that are present. */
  updateTunnel(id: TunnelId, fields: TunnelInput): Promise<TunnelRecord>;
  /** Deletes a tunnel with its placement and keys, for good; a home that had it has none then. */
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
  /** Keys of a tunnel, tokens of a home, or all. */
  listKeys(
    page: PageRequest & { readonly tunnel?: TunnelId; readonly home?: HomeId },
  ): Promise<Page<KeyRecord>>;
  /** Notes that agents have polled these tunnels; unknown ids and tunnels already noted cost nothing. Spec T12. */
  recordSeen(ids: readonly TunnelId[]): Promise<void>;

  /**
   * Makes a node and its shards known and live. Shards that this node ran before and does not name any more are down,
   * and their tenants are placed on live shards, homes on the default one while it is live. The first shard ever
   * registered is the default shard; one that is dropped hands that on. `conflict` when another node runs one of the
   * shards: it has neither left nor been silent for a minute.
   */
  registerNode(node: NodeRegistration): Promise<NodeRegistered>;
  /** The node says good-bye: it is `left`, its shards are down and keep their tenants. Of an older start: nothing. */
  leaveNode(node: NodeIncarnation): Promise<void>;
  /**
   * Renews the leases of a node and of these shards of its, on a connection of its own. `seq` is what its replica
   * shows. `conflict` when the node was started anew since; a directory that does not answer is `directory_unavailable`
   * after 4 s, 8 s where a connection has to be made first.
   */
  renewLeases(lease: {
    readonly node: NodeId;
    readonly incarnation: string;
    readonly shards: readonly ShardId[];
    readonly seq?: number;
  }): Promise<void>;
  /** Takes or keeps the leader's lease for `ttlMs` milliseconds of the database's time; false while another holds it. */
  tryLead(lease: {
    readonly node: NodeId;
    readonly incarnation: string;
    readonly ttlMs: number;
  }): Promise<boolean>;

  /**
   * Moves one tenant. Asked again with the id of a move that was made, it gives that move. `conflict` when the target
   * is not live, or the tenant is there already; `move_blocked`, with `data.blockers`, for a home that L22 keeps on the
   * default shard, unless `isForced`.
   */
  moveTenant(
    order: MoveOrder & Order & { readonly job?: string; readonly isForced?: boolean },
  ): Promise<MadeMove>;
  /**
   * Moves up to 500 tenants in one transaction, as a step of a job whose leader this node is (else `conflict`). Tenants
   * that are gone, elsewhere than `from`, or there already are left out of the answer; homes that L22 keeps are named
   * in it, unless `isForced`.
   */
  moveTenants(
    order: Order & {
      readonly moves: readonly MoveOrder[];
      readonly job: string;
      readonly isForced?: boolean;
    },
  ): Promise<MovedTenants>;
  /** A move by its id, from the authority. */
  findMove(moveId: string): Promise<Move | undefined>;
  /** Moves, newest first. */
  listMoves(page: PageRequest & { readonly tenant?: string }): Promise<Page<Move>>;

  /** `conflict` while another job runs from the same shard. */
  createJob(input: JobInput): Promise<Job>;
  /** For the leader only, on a running job (else `conflict`). */
  updateJob(progress: JobProgress): Promise<Job>;
  getJob(id: string): Promise<Job>;
  /** Jobs, newest first. */
  listJobs(page: PageRequest & { readonly state?: JobState }): Promise<Page<Job>>;
  /** Ends a running job within its batch; aborting an aborted one does nothing, another ended one is a `conflict`. */
  abortJob(id: string, order: Order): Promise<Job>;

  /** Turns corrections of polls on or off in the residency. Spec R25. */
  setCorrections(isOn: boolean, order: Order): Promise<void>;
  /** Adds a token key that is accepted, not yet used. */
  addTokenKey(order: Order): Promise<TokenKeyRecord>;
  /**
   * Seals new tokens with an accepted key from now on; the key before it stays accepted. `conflict` while a live node
   * is known not to have it yet.
   */
  promoteTokenKey(id: string, order: Order): Promise<TokenKeyRecord>;
  /**
   * Places every tenant whose tokens the key seals anew where it is, at a new revision, then forgets the key.
   * `conflict` for the one that seals. Interrupted, it may be asked again.
   */
  retireTokenKey(id: string, order: Order): Promise<void>;
  listTokenKeys(): Promise<readonly TokenKeyRecord[]>;

  /** Ends pending mutations, then lets go of files, connections and the lock. */
  close(): Promise<void>;
}
