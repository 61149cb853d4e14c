// What an operator's request and a move job ask of the part that moves tenants.
//
// Spec: R22, R24, L22. Design: "Moves".
// I1  A move is done or not done: `unknown-outcome` only says that nobody could be asked yet, and names the move id by
//     which the directory tells later (findMove).

import type { ProtocolError } from "@moor/protocol";
import type { MoveOrder } from "../directory/directory.ts";
import type { BlockedMove } from "../directory/home-records.ts";
import type { MadeMove, ShardId } from "../directory/records.ts";

/** One move asked for. */
export interface MoveRequest {
  readonly tenant: string;
  readonly to: ShardId;
  /** Who asked, as the audit shows it. */
  readonly actor: string;
  readonly reason: string;
  /** The job it is part of. */
  readonly job?: string;
  /** Moves a home that L22 would keep on the default shard, too. Default false. */
  readonly isForced?: boolean;
}

/** What a move came to. */
export type MoveOutcome =
  /** Committed. `isAcked`: the new owner said in time that it knows. */
  | { readonly kind: "moved"; readonly move: MadeMove; readonly isAcked: boolean }
  /**
   * Certainly not made. Codes: tunnel_not_found, home_not_found, shard_not_found, move_blocked, conflict,
   * directory_unavailable, directory_regressed.
   */
  | { readonly kind: "refused"; readonly error: ProtocolError }
  /** The directory was lost in the middle and cannot be asked: `findMove(moveId)` tells once it is back. */
  | { readonly kind: "unknown-outcome"; readonly moveId: string };

/** Up to 500 moves of one job, in one transaction. */
export interface MoveBatchRequest {
  readonly moves: readonly MoveOrder[];
  readonly actor: string;
  readonly reason: string;
  readonly job: string;
  /** Default false. Spec L22. */
  readonly isForced?: boolean;
}

/** What a batch came to. */
export type MoveBatchOutcome =
  /**
   * `moves`: those made; tenants that were gone, elsewhere than `from` or already there are left out. `blocked`: those
   * that L22 kept.
   */
  | { readonly kind: "moved"; readonly moves: readonly MadeMove[]; readonly blocked: readonly BlockedMove[] }
  | { readonly kind: "refused"; readonly error: ProtocolError }
  | { readonly kind: "unknown-outcome" };

/** Moves tenants: commits at the directory, tells the new owner, the old one and the entries. Never rejects. */
export interface Mover {
  move(request: MoveRequest): Promise<MoveOutcome>;
  /** Idempotent by the move ids: asked again with the same ids it moves nobody twice. */
  moveBatch(request: MoveBatchRequest): Promise<MoveBatchOutcome>;
}

/** One thing that happened to a tenant. */
export interface TimelineEvent {
  readonly atMs: number;
  /** Node that says so; `directory` for what the directory keeps. */
  readonly node: string;
  /** A fixed name, e.g. `moved`, `poll-corrected`. */
  readonly event: string;
  /** Plain words, without secrets. */
  readonly detail: string;
}

/** Gathers what the nodes that can be reached remember about a tenant. */
export interface TimelineSource {
  /** Oldest first. `unreached`: nodes that did not answer in time. */
  timeline(tenant: string): Promise<{
    readonly events: readonly TimelineEvent[];
    readonly unreached: readonly string[];
  }>;
}
