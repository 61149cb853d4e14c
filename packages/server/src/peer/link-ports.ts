// What an entry that holds links and a shard that owns homes say to each other. In one process these are function calls;
// between nodes the same messages travel on the peer link. Nothing here returns an answer but `readNow` and
// `describeHome`. In one process an answer may come before the call that caused it returns.
//
// Spec: L20–L24, L31, L33, L34; docs/protocol/peer-link.md.
// I1  A link lives where its socket is: the entry handshakes, verifies and writes; a shard knows a link as an id, its role
//     and what routing needs.
// I2  A command is delivered to a box's link at most once. Until the box's entry has said `written`, the shard may give it
//     back (`not-owner`, `not-delivered`, `expired`); from then on it ends as result or unknown. A one-shot, which sees no
//     ack, may also hear the box's own `not-delivered` or `expired`.
// I3  A shard never forwards: asked for what it does not own it says `not-owner`, and the entry goes on from there.
// I4  Of the box links of one home the one with the highest generation is the live one; what an older one says or how it
//     ends changes nothing (L23).
// I5  Shards are soft. When a shard comes back within reach, or runs in another process, an entry registers the links of
//     its homes again, with the generations they have, and submits every open command it had sent there once more with
//     `isAgain`: the shard goes on with it if it has it, and else ends it as unknown. It never runs a command anew.
// I6  While a shard is out of reach an entry tells its apps presence `unknown`, holds what it has not sent within its
//     TTL, and ends what it had sent as unknown COMMAND_LATE_ANSWER_MS after its TTL at the latest.

import type { AppInstance, CommandId, HomeId } from "@moor/protocol";
import type { ShardId } from "../directory/directory.ts";
import type { EntryId, KnownPlacement, NotOwner } from "./peer-link.ts";

/** A link as its entry names it. Unique in the residency: made from the entry's incarnation and a counter. */
export type LinkId = string & { readonly brand: "LinkId" };
/** A command as the entry of its app names it. Unique as a LinkId is. */
export type SubmissionId = string & { readonly brand: "SubmissionId" };

/** A link whose client has proved who it is. */
export interface RegisteredLink {
  readonly linkId: LinkId;
  readonly entry: EntryId;
  readonly home: HomeId;
  readonly role: "box" | "app";
  /** Instance id of the app; undefined for a box. */
  readonly app: AppInstance | undefined;
  /** Whether its client follows (listed `shard`). Spec L6, L21. */
  readonly isFollowing: boolean;
  /** What it was verified with: a box's public key (raw, base64url), or the id of an app's token. Up to 64 characters. */
  readonly credential: string;
  /** Number of the newest change of the directory that its entry knew then; undefined from one that does not say. */
  readonly seenSeq?: number | undefined;
  /** Generation it was given before, when a box's link is registered again (I5, moves); undefined for a new link and for apps. */
  readonly generation: number | undefined;
  /** The placement the sender goes by. */
  readonly placement: KnownPlacement;
}

/**
 * Why a shard does not take a link. `incumbent-stays`: another box link of the home is kept for `waitMs` (4429, L23).
 * `superseded`: a newer box link was there since it got its generation (4409). `busy`: the home has too many app links
 * (4429). `revoked`: what it was verified with does not count any more (4401).
 */
export type LinkRefusal =
  | NotOwner
  | { readonly kind: "incumbent-stays"; readonly waitMs: number }
  | { readonly kind: "superseded" }
  | { readonly kind: "busy"; readonly waitMs: number }
  | { readonly kind: "revoked" }
  | { readonly kind: "home-gone" };

/** Why a shard lets go of a link it had taken. `replaced`: a newer box link (4409); `revoked`: as above. Spec L21, L23. */
export type LinkEnding =
  | NotOwner
  | { readonly kind: "replaced" }
  | { readonly kind: "revoked" }
  | { readonly kind: "home-gone" };

/** Whether a home's box is linked, and for how many milliseconds, as far as the shard knows, it has been so. Spec L31. */
export interface Presence {
  readonly box: "online" | "offline" | "unknown";
  readonly sinceMs: number;
}

/** A command of an app link or a one-shot, as its entry submits it. Spec L31, L33. */
export interface SubmittedCommand {
  readonly submission: SubmissionId;
  readonly entry: EntryId;
  readonly home: HomeId;
  readonly id: CommandId;
  /** Undefined for a one-shot. */
  readonly app: AppInstance | undefined;
  /** Milliseconds left of its TTL at the moment of sending. */
  readonly remainingMs: number;
  /** Raw JSON, up to LINK_DATA_BYTES_MAX bytes, passed on byte for byte. */
  readonly data: string;
  readonly placement: KnownPlacement;
  /** Whether this submission was sent before and may have arrived (I5). */
  readonly isAgain: boolean;
}

/**
 * How a command ends for its app. `not-delivered`: `no-box`, the box is not linked; `busy`, the home has too much open;
 * `box`, the box had it and says that it did not act (one-shots only). `not-owner`: never delivered; the entry submits it
 * to the owner within its TTL. Spec L20, L31.
 */
export type CommandEnding =
  | { readonly kind: "result"; readonly data: string }
  | { readonly kind: "unknown" }
  | { readonly kind: "not-delivered"; readonly why: "no-box" | "busy" | "box" }
  | { readonly kind: "expired" }
  | NotOwner;

/** A command on its way to the box's link. */
export interface DeliveredCommand {
  readonly linkId: LinkId;
  readonly home: HomeId;
  readonly id: CommandId;
  readonly app: AppInstance | undefined;
  /** Milliseconds left of its TTL at the moment of sending. */
  readonly remainingMs: number;
  readonly data: string;
}

/** What a box says of a command. Spec L20, L31. */
export type BoxAnswer =
  | { readonly kind: "result"; readonly data: string }
  | { readonly kind: "outcome"; readonly outcome: "unknown" | "not_delivered" | "expired" };

/** The kept snapshot of a home. `ageMs`: since the shard got it. `etag`: opaque, without quotes. Spec L34. */
export type NowOutcome =
  | { readonly kind: "snapshot"; readonly data: string; readonly ageMs: number; readonly etag: string }
  | { readonly kind: "none" }
  /** The shard did not answer. */
  | { readonly kind: "unavailable" }
  | NotOwner;

/** A link of a home as an operator is shown it. */
export interface LinkStatus {
  readonly entry: EntryId;
  /** Since the shard took it. Milliseconds. */
  readonly ageMs: number;
  readonly isFollowing: boolean;
}

/** What an operator is shown of a home's links. */
export interface HomeStatus {
  readonly presence: Presence;
  readonly box: (LinkStatus & { readonly generation: number }) | undefined;
  readonly apps: readonly (LinkStatus & { readonly app: AppInstance })[];
  /** Set while newcomers with the box's identity are held off; `heldOff`: how many were. Spec L23. */
  readonly duplicateIdentity: { readonly remainingMs: number; readonly heldOff: number } | undefined;
  readonly commandsOpen: number;
}

/** What an entry asks of the shard that owns a home. */
export interface HomeShardPort {
  readonly shard: ShardId;
  registerLink(link: RegisteredLink): void;
  /**
   * The link ended at its entry, for any reason.
   *
   * @param backWithinMs set when its client was told to come back (4503): a box counts as neither there nor gone until
   *   then
   */
  withdrawLink(home: HomeId, linkId: LinkId, backWithinMs?: number): void;
  submitCommand(command: SubmittedCommand): void;
  /** The app left: nobody waits for the ending any more. A written command still runs. */
  withdrawCommand(home: HomeId, submission: SubmissionId): void;
  /** First word on a delivered command: it stands in the box's socket, or never will. */
  commandSettled(home: HomeId, linkId: LinkId, id: CommandId, outcome: "written" | "not-written"): void;
  boxAnswered(home: HomeId, linkId: LinkId, id: CommandId, answer: BoxAnswer): void;
  /** Raw JSON for all apps of the home. */
  boxEvent(home: HomeId, linkId: LinkId, data: string): void;
  /** Raw JSON of at most NOW_BYTES_MAX bytes. */
  boxNow(home: HomeId, linkId: LinkId, data: string): void;
  readNow(home: HomeId, placement: KnownPlacement, answer: (outcome: NowOutcome) => void): void;
  /** `undefined`: the shard does not own the home, or did not answer. */
  describeHome(home: HomeId, answer: (status: HomeStatus | undefined) => void): void;
}

/**
 * What shards ask of the entry that holds a link or waits for a command. Ids it does not know any more it ignores, and what
 * a shard says of a link that is not registered with it now: words of a former owner may come after those of the new one.
 */
export interface LinkEntryPort {
  readonly entry: EntryId;
  /**
   * The shard has taken the link, anew or again (I5).
   *
   * @param taken.generation of a box
   * @param taken.presence what an app is told first
   */
  linkAccepted(
    linkId: LinkId,
    taken: { readonly generation: number | undefined; readonly presence: Presence },
    shard: HomeShardPort,
  ): void;
  linkRefused(linkId: LinkId, refusal: LinkRefusal, shard: HomeShardPort): void;
  /** Writes a command to a box's link, then says `commandSettled`; `not-written` also for a link it does not know. */
  deliverCommand(command: DeliveredCommand, shard: HomeShardPort): void;
  /** The command stands in the box's socket: the app gets its `ack`. */
  commandWritten(submission: SubmissionId): void;
  commandEnded(submission: SubmissionId, ending: CommandEnding): void;
  /** One event for several app links of this entry. */
  sendEvent(linkIds: readonly LinkId[], data: string): void;
  sendPresence(linkIds: readonly LinkId[], presence: Presence, shard: HomeShardPort): void;
  closeLink(linkId: LinkId, ending: LinkEnding, shard: HomeShardPort): void;
}

/** The part of a node that holds links, as its node tells it what changes. */
export interface LinkEntry {
  readonly port: LinkEntryPort;
  /** Shards came within reach or went out of it, or run in another process than before (I5, I6). */
  shardsChanged(shards: ReadonlySet<ShardId>): void;
  /** A home was placed elsewhere. Told after this node's own shards. */
  placementChanged(home: HomeId): void;
  /** A home was changed (its box has another key) or deleted. */
  homeChanged(home: HomeId): void;
  /** A token stopped working. */
  keyRevoked(keyId: string): void;
}
