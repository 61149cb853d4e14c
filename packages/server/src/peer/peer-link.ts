// What an entry and a shard say to each other. In one process these are function calls; between nodes the same
// messages travel on one stream. Nothing here returns an answer: answers are messages the other way.
//
// I1  A call lives where its caller is: the entry keeps the socket, the body and the deadline.
// I2  A poll is held by its own entry and is a registration at the shard.
// I3  Hand-out is two-phase: after `handOut` the entry says `handOutEnded` exactly once per poll. "not-written" puts
//     the commands back at the head of the queue; "written" makes them handed out for good (T4).
// I4  A shard never forwards: asked for what it does not own it says `not-owner`, and the entry goes on from there.

import type { ChannelName, CommandType, InstanceId, TunnelId } from "@moor/protocol";
import type { Placement, ShardId } from "../directory/directory.ts";

/** Incarnation of the node whose entry sent a message: new at each start, so that a dead one's id never returns. */
export type EntryId = string & { readonly brand: "EntryId" };
export type CallId = string & { readonly brand: "CallId" };
export type PollId = string & { readonly brand: "PollId" };

/** A call's command, encoded but for the time it has left, which is known only at hand-out. Spec T5. */
export interface EncodedCommand {
  /** JSON members without braces, `"request_id":…,…`. */
  readonly members: string;
  /** Raw bytes of the caller's message, or none (`session_termination`). */
  readonly payload: Uint8Array | undefined;
}

/** A call as an entry gives it to the shard that owns its tunnel. */
export interface SubmittedCall {
  readonly callId: CallId;
  readonly entry: EntryId;
  readonly tunnel: TunnelId;
  readonly channel: ChannelName;
  readonly commandType: CommandType;
  readonly command: EncodedCommand;
  /** Milliseconds until the call's deadline, at the moment of sending. */
  readonly remainingMs: number;
  /** The only instance that may get it, if its session is pinned. Spec T8. */
  readonly pinnedTo: InstanceId | undefined;
  /** The placement the sender goes by. */
  readonly placement: Placement;
}

/** A poll as its entry registers it. Spec T4. */
export interface RegisteredPoll {
  readonly pollId: PollId;
  readonly entry: EntryId;
  readonly tunnel: TunnelId;
  /** Channels it asks for; empty = every channel. */
  readonly channels: ReadonlySet<ChannelName>;
  /** Most commands it takes. 1–25. */
  readonly limit: number;
  readonly instance: InstanceId;
  readonly placement: Placement;
}

/** A command on its way to a waiting poll. */
export interface HandedOutCommand {
  readonly callId: CallId;
  readonly command: EncodedCommand;
  readonly remainingMs: number;
}

export type CallRefusal =
  | {
      readonly kind: "refused";
      readonly code:
        | "tunnel_client_not_seen"
        | "tunnel_client_not_connected"
        | "tunnel_queue_full"
        | "session_not_found"
        | "tunnel_not_found";
    }
  /** The shard does not own the tunnel; `placement` is what it knows, if anything. */
  | { readonly kind: "not-owner"; readonly placement: Placement | undefined };

/** What an entry asks of the shard that owns a tunnel. */
export interface ShardPort {
  readonly shard: ShardId;
  submitCall(call: SubmittedCall): void;
  /** The caller left or its deadline passed. A queued call is removed; a handed-out one is forgotten by the entry. */
  withdrawCall(tunnel: TunnelId, callId: CallId): void;
  /** A handed-out call got its final answer. */
  endCall(tunnel: TunnelId, callId: CallId): void;
  registerPoll(poll: RegisteredPoll): void;
  /** The poll ended at its entry, answered or not, for any reason but a hand-out. */
  withdrawPoll(tunnel: TunnelId, pollId: PollId): void;
  /** Second phase of a hand-out (I3). */
  handOutEnded(tunnel: TunnelId, pollId: PollId, outcome: "written" | "not-written"): void;
  /** A response or notification of this instance arrived somewhere: it is alive. Spec T12. */
  noteActivity(tunnel: TunnelId, instance: InstanceId): void;
  /** An agent was told to wait this many milliseconds: it is not gone. Spec T12. */
  noteToldToWait(tunnel: TunnelId, instance: InstanceId, waitMs: number): void;
}

/** What a shard tells the entry that holds a call or a poll. */
export interface EntryPort {
  readonly entry: EntryId;
  refuseCall(callId: CallId, refusal: CallRefusal): void;
  /** The call was written to a poll: from here on it is never given again. */
  callHandedOut(callId: CallId, instance: InstanceId): void;
  /** First phase of a hand-out (I3). */
  handOut(pollId: PollId, commands: readonly HandedOutCommand[]): void;
  /** The shard lets go of a waiting poll. */
  endPoll(
    pollId: PollId,
    reason:
      | { readonly kind: "not-owner"; readonly placement: Placement | undefined }
      | { readonly kind: "too-many" },
  ): void;
}
