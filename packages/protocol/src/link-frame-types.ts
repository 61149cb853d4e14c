// The frames of a link, as unions on `t`. Member names are the wire's.
// Spec: L28, L30–L32.
//
// I1  `data` is the raw JSON text of a value, byte for byte as its author wrote it: it is never parsed and written again
//     on the way, and may nest as deep as its 64 KiB allow.

import type {
  AppInstance,
  Base64url32,
  Base64url64,
  CommandId,
  HomeId,
  LinkGeneration,
  LinkSender,
  ServiceKeyId,
} from "./link-names.ts";

/** A box's first frame. Spec L28. */
export interface BoxHelloFrame {
  readonly t: "hello";
  readonly v: 1;
  readonly home: HomeId;
  /** Capabilities by name; `shard`: follows redirects (L6). Unknown ones are kept. */
  readonly caps: readonly string[];
  readonly nonce: Base64url32;
}

/** An app's first frame. Spec L30. */
export interface AppHelloFrame extends BoxHelloFrame {
  /** `<home>.<secret>`, as sent: parseLinkToken judges it, and a bad one is a 4401, not a 4400. */
  readonly token: string;
  readonly app: AppInstance;
}

/** Asks a box to prove its key. Spec L28. */
export interface ChallengeFrame {
  readonly t: "challenge";
  readonly nonce: Base64url32;
}

/** A box's answer to a challenge: its signature of linkProofBytes. Spec L28, L29. */
export interface ProofFrame {
  readonly t: "proof";
  readonly sig: Base64url64;
}

/** The service takes the link; to be believed once `sig` verifies over linkHelloOkBytes. Spec L28, L29. */
export interface HelloOkFrame {
  readonly t: "hello_ok";
  /** The host the client dialled, without port; another one is a failed dial. */
  readonly host: string;
  readonly home: HomeId;
  readonly generation: LinkGeneration;
  readonly key: ServiceKeyId;
  readonly sig: Base64url64;
  /** Milliseconds between the service's pings; linkPingMs clamps it. */
  readonly ping_ms?: number | undefined;
  /** Milliseconds over which clients come back if this link breaks; clampSpreadMs clamps it. Absent: none. */
  readonly spread_ms?: number | undefined;
  /** Raw key of the service's next signing key. */
  readonly next_key?: Base64url32 | undefined;
}

/** A command, as its app sends it. Spec L31. */
export interface CommandFrame {
  readonly t: "cmd";
  readonly id: CommandId;
  /** Milliseconds left to live: a safe integer from 0. */
  readonly ttl_ms: number;
  readonly data: string;
}

/** A command, as its box gets it: with the time left and the app it is from. Spec L31. */
export interface BoxCommandFrame extends CommandFrame {
  readonly app: AppInstance;
}

/** The command was written to the box's link: from here on only `result` or `unknown`. Spec L31. */
export interface AckFrame {
  readonly t: "ack";
  readonly id: CommandId;
}

/** What came of a command. Spec L31. */
export interface ResultFrame {
  readonly t: "result";
  readonly id: CommandId;
  readonly data: string;
}

/** Why a command has no result. `not_delivered`: it certainly was not acted on. `unknown`: it may have been. Spec L20, L31. */
export type CommandOutcome = "unknown" | "not_delivered" | "expired";

/** A command ended without a result. Spec L31. */
export interface OutcomeFrame {
  readonly t: "outcome";
  readonly id: CommandId;
  readonly outcome: CommandOutcome;
}

/** Something a box tells all apps of its home. Spec L31. */
export interface EventFrame {
  readonly t: "event";
  readonly data: string;
}

/** The snapshot the service keeps of a home, at most 4 KiB. Spec L31, L34. */
export interface NowFrame {
  readonly t: "now";
  readonly data: string;
}

/** Whether the home's box is linked. Spec L31. */
export interface PresenceFrame {
  readonly t: "presence";
  readonly box: "online" | "offline" | "unknown";
  readonly since_ms: number;
}

/** Asks for a sign of life. Spec L32. */
export interface PingFrame {
  readonly t: "ping";
}

/** A sign of life. Spec L32. */
export interface PongFrame {
  readonly t: "pong";
}

/** What a box sends. */
export type BoxFrame =
  | BoxHelloFrame
  | ProofFrame
  | ResultFrame
  | OutcomeFrame
  | EventFrame
  | NowFrame
  | PingFrame
  | PongFrame;

/** What an app sends. */
export type AppFrame = AppHelloFrame | CommandFrame | PingFrame | PongFrame;

/** What the service sends, to boxes and apps together. */
export type ServiceFrame =
  | ChallengeFrame
  | HelloOkFrame
  | BoxCommandFrame
  | AckFrame
  | ResultFrame
  | OutcomeFrame
  | EventFrame
  | PresenceFrame
  | PingFrame
  | PongFrame;

/** Any frame. */
export type LinkFrame = BoxFrame | AppFrame | ServiceFrame;

/** The frames each side sends. */
export interface LinkFramesFrom extends Readonly<Record<LinkSender, LinkFrame>> {
  readonly box: BoxFrame;
  readonly app: AppFrame;
  readonly service: ServiceFrame;
}
