// What an entry and a shard, and two entries, say to each other. In one process these are function calls; between
// nodes the same messages travel on one stream per pair of nodes. Nothing here returns an answer but `claim`.
//
// I1  A call lives where its caller is: the entry keeps the socket, the body and the deadline. A shard knows a call
//     only as an id with what matching needs.
// I2  A poll is held by its own entry and is a registration at the shard.
// I3  Hand-out: the shard offers calls to one waiting poll; the poll's entry claims each from the call's entry, which
//     gives a call to one claimant only and hands over its command; the poll's entry writes and settles. The claim,
//     not the shard, is what makes a command handed out at most once: a shard may forget or repeat an offer.
// I4  A claim settled "not-written" makes the call claimable again; one that is never settled stays claimed: its
//     outcome is unknown and it is never given again (T4).
// I5  A shard never forwards: asked for what it does not own it says `not-owner`, and the entry goes on from there.

import type { ChannelName, InstanceId, TunnelId } from "@moor/protocol";
import type { Placement, ShardId } from "../directory/directory.ts";

/** Incarnation of the node whose entry sent a message: new at each start, so that a dead one's id never returns. */
export type EntryId = string & { readonly brand: "EntryId" };
export type CallId = string & { readonly brand: "CallId" };
export type PollId = string & { readonly brand: "PollId" };

/** A placement as one node tells another: from a polling token only shard and revision are known. */
export type KnownPlacement = Pick<Placement, "shard" | "revision"> &
  Partial<Pick<Placement, "tokenKey" | "tokenFormat">>;

/** A call's command, encoded but for the time it has left, which is known only at hand-out. Spec T5. */
export interface EncodedCommand {
  /** JSON members without braces, `"request_id":…,…`. */
  readonly members: string;
  /** Raw bytes of the caller's message, or none (`session_termination`). */
  readonly payload: Uint8Array | undefined;
}

/** A call as an entry tells it to the shard that owns its tunnel. */
export interface SubmittedCall {
  readonly callId: CallId;
  readonly entry: EntryId;
  readonly tunnel: TunnelId;
  readonly channel: ChannelName;
  /** Bytes of its message, which stays at the entry. */
  readonly payloadBytes: number;
  /** Milliseconds until the call's deadline, at the moment of sending. */
  readonly remainingMs: number;
  /** The only instance that may get it, if its session is pinned. Spec T8. */
  readonly pinnedTo: InstanceId | undefined;
  /** The placement the sender goes by. */
  readonly placement: KnownPlacement;
}

/** A poll as its entry registers it. Spec T4. */
export interface RegisteredPoll {
  readonly pollId: PollId;
  readonly entry: EntryId;
  readonly tunnel: TunnelId;
  /** The agent key it came with: its revocation ends the poll (T2). */
  readonly keyId: string;
  /** Channels it asks for; empty = every channel. */
  readonly channels: ReadonlySet<ChannelName>;
  /** Most commands it takes. 1–25. */
  readonly limit: number;
  readonly instance: InstanceId;
  readonly placement: KnownPlacement;
}

/** A call as a shard offers it to a waiting poll. */
export interface OfferedCall {
  readonly callId: CallId;
  readonly entry: EntryId;
}

/** A command on its way to a poll. */
export interface HandedOutCommand {
  readonly callId: CallId;
  readonly command: EncodedCommand;
  /** Milliseconds the agent has for it. */
  readonly remainingMs: number;
}

/** What a shard offers to one waiting poll: 1–25 calls. */
export interface Offer {
  readonly pollId: PollId;
  readonly tunnel: TunnelId;
  readonly calls: readonly OfferedCall[];
}

/** What a call's entry says to a claim. `busy`: somebody else holds the claim. `gone`: the call has ended. */
export type ClaimOutcome =
  | { readonly kind: "granted"; readonly command: EncodedCommand; readonly remainingMs: number }
  | { readonly kind: "busy" }
  | { readonly kind: "gone" };

/** Who claims: told again when the claim is settled, so that a late settlement never ends another's claim. */
export interface Claimant {
  readonly pollId: PollId;
  readonly entry: EntryId;
  readonly instance: InstanceId;
}

/** What became of the calls of one offer. */
export interface OfferEnd {
  readonly written: readonly CallId[];
  /** The poll was gone: to be offered to any other. */
  readonly returned: readonly CallId[];
  /** The poll's entry could not claim them now: to be offered to another entry's poll, or here later. */
  readonly blocked: readonly CallId[];
  /** Ended meanwhile. */
  readonly gone: readonly CallId[];
}

/** The shard does not own the tunnel; `placement` is what it knows, if anything. */
export interface NotOwner {
  readonly kind: "not-owner";
  readonly placement: KnownPlacement | undefined;
}

export type CallRefusal =
  | {
      readonly kind: "refused";
      readonly code:
        | "tunnel_client_not_seen"
        | "tunnel_client_not_connected"
        | "tunnel_queue_full"
        | "session_not_found"
        | "tunnel_not_found"
        | "tunnel_transport_unavailable";
    }
  | NotOwner;

/** Why a shard lets go of a waiting poll. */
export type PollEnding = NotOwner | { readonly kind: "too-many" } | { readonly kind: "revoked" };

/** What an entry asks of the shard that owns a tunnel. */
export interface ShardPort {
  readonly shard: ShardId;
  submitCall(call: SubmittedCall): void;
  /** The caller left or its deadline passed. */
  withdrawCall(tunnel: TunnelId, callId: CallId): void;
  /** A handed-out call got its final answer. */
  endCall(tunnel: TunnelId, callId: CallId): void;
  registerPoll(poll: RegisteredPoll): void;
  /** The poll ended at its entry, answered or not, for any reason but an offer. */
  withdrawPoll(tunnel: TunnelId, pollId: PollId): void;
  /** The poll of an offer is no longer registered; these calls went this way (I3). */
  offerEnded(tunnel: TunnelId, pollId: PollId, end: OfferEnd): void;
  /** A response or notification of this instance arrived somewhere: it is alive. Spec T12. */
  noteActivity(tunnel: TunnelId, instance: InstanceId): void;
  /** An agent was told to wait this many milliseconds: it is not gone. Spec T12. */
  noteToldToWait(tunnel: TunnelId, instance: InstanceId, waitMs: number): void;
}

/** What shards and other entries ask of the entry that holds a call or a poll. */
export interface EntryPort {
  readonly entry: EntryId;
  refuseCall(callId: CallId, refusal: CallRefusal): void;
  /** First phase of a hand-out (I3). */
  offerCalls(offer: Offer, shard: ShardPort): void;
  endPoll(pollId: PollId, ending: PollEnding): void;
  /** Asks for the call's command; `answer` is called once, at once within a process. */
  claimCall(callId: CallId, claimant: Claimant, answer: (outcome: ClaimOutcome) => void): void;
  settleClaim(callId: CallId, claimant: Claimant, outcome: "written" | "not-written"): void;
}
