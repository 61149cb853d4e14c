// What a link follower remembers, and what of it a user is shown.
// Spec: L11–L18, L23.   Pure.

import { LINK_TROUBLE, type LinkTrouble } from "./link-trouble.ts";

/** What a client is built or configured with. */
export interface LinkFollowerOptions {
  /** D: the endpoint's host without port, as parseBaseHost accepts it. */
  readonly base: string;
  readonly home: string;
  /** Whether the client lists `shard` in hello (L6). */
  readonly isFollowing: boolean;
}

/** Failed dials at the present kept host, one after another. Spec L14. */
export interface FailureRun {
  readonly count: number;
  /** When the first of them was noted, monotonic. */
  readonly sinceMs: number;
}

/** What the client is doing. */
export type LinkPhase =
  /** Not started yet. */
  | { readonly kind: "idle" }
  /** Belongs to no home (L18). */
  | { readonly kind: "unlinked" }
  /** From the start of the dial to a verified hello_ok. */
  | { readonly kind: "dialing"; readonly host: string }
  | {
      readonly kind: "waiting";
      readonly untilMs: number;
      /** Before this moment no wake ends the wait; `-Infinity` where no spread is part of it. */
      readonly spreadUntilMs: number;
      readonly cause: "backoff" | "spread";
      readonly trouble: LinkTrouble;
    }
  | {
      readonly kind: "online";
      readonly host: string;
      readonly sinceMs: number;
      /** hello_ok's, clamped; undefined: none (L28). */
      readonly spreadMs: number | undefined;
    };

/** State of one client's link; never changed, a step returns the next one. */
export interface LinkFollower<Phase extends LinkPhase = LinkPhase> extends Omit<LinkFollowerOptions, "home"> {
  /** Undefined: unlinked. */
  readonly home: string | undefined;
  /** K: the shard host dialled instead of the base; undefined: none. */
  readonly kept: string | undefined;
  /** Redirects followed since the chain began, 0 or 1. */
  readonly hops: number;
  /** Backoff step of the next backoff, 0–16. */
  readonly attempt: number;
  /** Failed dials at K; undefined: none. */
  readonly failures: FailureRun | undefined;
  /** Whether a redirect may be followed at once (L17). */
  readonly hasCredit: boolean;
  /** The last link was replaced, and none has lived 10 min since (L23). */
  readonly isReplaced: boolean;
  /** When each kind of report last ended a wait. */
  readonly wokenAtMs: Readonly<Record<"woke" | "network-changed", number>>;
  readonly phase: Phase;
}

/** A follower in one phase. */
export type FollowerIn<Kind extends LinkPhase["kind"]> = LinkFollower<
  Extract<LinkPhase, { readonly kind: Kind }>
>;

/** What to show. `untilMs` is monotonic; `host` is where the link is, or is sought next. */
export type LinkState =
  | { readonly kind: "idle" }
  | { readonly kind: "unlinked" }
  | { readonly kind: "connecting"; readonly host: string }
  | { readonly kind: "online"; readonly host: string; readonly sinceMs: number }
  | {
      readonly kind: "reconnecting" | "refused";
      readonly host: string;
      readonly untilMs: number;
      readonly why: LinkTrouble;
    };

/** The host the next dial goes to: K, else the base (D). */
export function nextHost(state: LinkFollower): string {
  return state.kept ?? state.base;
}

/** What onState shows of a follower: `refused` where someone has to act, though it goes on trying. */
export function linkState(state: LinkFollower): LinkState {
  const { phase } = state;
  switch (phase.kind) {
    case "idle":
    case "unlinked":
      return { kind: phase.kind };
    case "dialing":
      return { kind: "connecting", host: phase.host };
    case "online":
      return { kind: "online", host: phase.host, sinceMs: phase.sinceMs };
    case "waiting": {
      const { untilMs, trouble } = phase;
      const kind = LINK_TROUBLE[trouble].isRefusal ? "refused" : "reconnecting";
      return { kind, host: nextHost(state), untilMs, why: trouble };
    }
  }
}
