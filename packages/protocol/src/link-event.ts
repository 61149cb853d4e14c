// What happens to a client's link, as facts, and what its follower orders.
// Spec: L10–L18, L23, L28.   Pure.
//
// I1  `atMs` is of a monotonic clock and never falls; a wall clock's jumps change nothing.
// I2  `random` is uniform in [0, 1), drawn anew for each event.

import type { LinkRecord } from "./link-record.ts";
import type { LinkTrouble } from "./link-trouble.ts";

interface At {
  /** Monotonic milliseconds, fractions allowed. */
  readonly atMs: number;
}

interface AtRandom extends At {
  /** Uniform in [0, 1): the U of L15, L16 and L28; one draw serves both sides of L28's maximum. */
  readonly random: number;
}

/** The process starts, or is told to link. `record` is what parseLinkRecord made of the kept one. */
export interface StartedEvent extends At {
  readonly kind: "started";
  readonly record?: LinkRecord | undefined;
}

/** The timer of the last `wait` effect fired. Its lateness tells of a sleep (L14). */
export interface TimerFiredEvent extends At {
  readonly kind: "timer-fired";
}

/** The dial ended before a verified hello_ok, other than by 4421 and 4503. The shell measures DIAL_WAIT_MS and
 *  HELLO_OK_WAIT_MS. If a timer of its own was WAKE_LATE_MS late, it reports `woke` after this. Spec L15. */
export interface DialFailedEvent extends AtRandom {
  readonly kind: "dial-failed";
  readonly cause: LinkTrouble;
}

/** The peer closed with 4421. `reason` is the raw close reason. Spec L11. */
export interface RedirectedEvent extends AtRandom {
  readonly kind: "redirected";
  readonly reason: string;
}

/** The peer closed with 4503. `reason` is the raw close reason. Spec L16. */
export interface RestartingEvent extends AtRandom {
  readonly kind: "restarting";
  readonly reason: string;
}

/** hello_ok came and its signature is valid for the host dialled. Spec L12. */
export interface VerifiedEvent extends At {
  readonly kind: "verified";
  /** hello_ok's `spread_ms`, unclamped; absent: none. Spec L28. */
  readonly spreadMs?: number | undefined;
}

/** A link ended after its hello_ok, other than by 4421 and 4503. Spec L15, L23, L28. */
export interface LostEvent extends AtRandom {
  readonly kind: "lost";
  /** Who ended it: silence (L32) and whatever else this client closes for are its own. */
  readonly by: "peer" | "client";
  /** The peer's close code; absent for EOF and reset. */
  readonly closeCode?: number | undefined;
  /** What to show; default: told from the close code. */
  readonly cause?: LinkTrouble | undefined;
}

/** The platform, or a timer that was WAKE_LATE_MS late, tells that the machine slept. Spec L14. */
export interface WokeEvent extends At {
  readonly kind: "woke";
}

/** The platform tells of a new network. Spec L14. */
export interface NetworkChangedEvent extends At {
  readonly kind: "network-changed";
}

/** The client belongs to another home now, or to none. Spec L18. */
export interface RehomedEvent extends At {
  readonly kind: "rehomed";
  /** Absent: unlinked. */
  readonly home?: string | undefined;
}

/** What happened. */
export type LinkEvent =
  | StartedEvent
  | TimerFiredEvent
  | DialFailedEvent
  | RedirectedEvent
  | RestartingEvent
  | VerifiedEvent
  | LostEvent
  | WokeEvent
  | NetworkChangedEvent
  | RehomedEvent;

/** Something an operator may want to know. Never holds what a peer wrote. */
export type LinkWarning =
  | "record-of-other-home"
  | "record-host-refused"
  | "redirect-refused"
  | "redirect-repeated"
  | "redirect-unfollowed"
  | "host-forgotten"
  | "replaced";

/** What is to be done, in order. */
export type LinkEffect =
  /** Dial this host now. It is the base or passed shardHostOk. */
  | { readonly kind: "dial"; readonly host: string }
  /** Report `timer-fired` in so many milliseconds (0–60_000). Replaces the wait there was. */
  | { readonly kind: "wait"; readonly ms: number; readonly cause: "backoff" | "spread" }
  /** The record should hold this from now on (no host: none). Need not be written if it holds it already; a failed write is
   *  warned of once and left, the next hello_ok orders it again. Spec L12. */
  | { readonly kind: "persist"; readonly home: string; readonly host: string | undefined }
  /** Give up the link, the dial or the wait there is; report nothing more of it. Spec L18. */
  | { readonly kind: "hang-up" }
  | { readonly kind: "warn"; readonly code: LinkWarning };
