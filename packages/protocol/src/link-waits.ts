// The waits of a link follower: backoff, the spread of a restart, and what ends them early.
// Spec: L14–L17, L23, L28.   Pure.
//
// I1  A wait is 0–60_000 ms. I2  No wake ends a spread's part of a wait. I3  Only a wait that ran to its end restores the
//     credit for an instant redial.

import type { LinkEffect, TimerFiredEvent, WokeEvent, NetworkChangedEvent } from "./link-event.ts";
import {
  LINK_ATTEMPT_MAX,
  LINK_BACKOFF_BASE_MS,
  LINK_BACKOFF_CEILING_MS,
  REPLACED_ATTEMPT_MIN,
  WAKE_LATE_MS,
} from "./link-limits.ts";
import { nextHost, type FollowerIn, type LinkFollower } from "./link-state.ts";
import type { LinkTrouble } from "./link-trouble.ts";

/** The next state and what is to be done. */
export interface LinkStep {
  readonly state: LinkFollower;
  readonly effects: readonly LinkEffect[];
}

/** When and why a wait begins. */
export interface WaitStart {
  readonly atMs: number;
  readonly random: number;
  readonly trouble: LinkTrouble;
}

/** Dials K, else D, after `effects`. */
export function dialNext(state: LinkFollower, effects: readonly LinkEffect[] = []): LinkStep {
  const host = nextHost(state);
  return {
    state: { ...state, phase: { kind: "dialing", host } },
    effects: [...effects, { kind: "dial", host }],
  };
}

/** Waits U·min(60 s, 500 ms·2^attempt), or U·spreadMs if that is more, and raises the attempt. Spec L15, L23, L28. */
export function backOff(
  state: LinkFollower,
  start: WaitStart,
  effects: readonly LinkEffect[],
  spreadMs = 0,
): LinkStep {
  const attempt = state.isReplaced ? Math.max(state.attempt, REPLACED_ATTEMPT_MIN) : state.attempt;
  const backoffMs = Math.min(LINK_BACKOFF_CEILING_MS, LINK_BACKOFF_BASE_MS * 2 ** attempt);
  const raised = { ...state, attempt: Math.min(LINK_ATTEMPT_MAX, attempt + 1) };
  return waitFor(raised, start, effects, { backoffMs, spreadMs });
}

/** Waits U·spreadMs, attempt unchanged. Spec L16. */
export function spreadOut(state: LinkFollower, start: WaitStart, spreadMs: number): LinkStep {
  return waitFor(state, start, [], { backoffMs: 0, spreadMs });
}

/** The wait's own timer fired. Spec L14, L17. */
export function finishWait(state: FollowerIn<"waiting">, { atMs }: TimerFiredEvent): LinkStep {
  const { untilMs, cause } = state.phase;
  // A timer that fires too early, or a stale one: the rest is still to be waited.
  if (atMs < untilMs) return { state, effects: [{ kind: "wait", ms: untilMs - atMs, cause }] };
  const rested = { ...state, hasCredit: true };
  return dialNext(atMs - untilMs >= WAKE_LATE_MS ? noteWake(rested, "woke", atMs) : rested);
}

/** The machine woke or has another network: what is left of a backoff is not waited. Spec L14, L16. */
export function wakeWait(
  state: FollowerIn<"waiting">,
  { kind, atMs }: WokeEvent | NetworkChangedEvent,
): LinkStep {
  const { untilMs, spreadUntilMs } = state.phase;
  if (atMs >= untilMs) return dialNext(noteWake({ ...state, hasCredit: true }, kind, atMs));
  const isSameWake = atMs - state.wokenAtMs[kind] < WAKE_LATE_MS;
  if (isSameWake || spreadUntilMs >= untilMs)
    return { state: { ...state, failures: undefined }, effects: [] };
  const woken = noteWake(state, kind, atMs);
  if (spreadUntilMs <= atMs) return dialNext(woken);
  const phase = { ...state.phase, untilMs: spreadUntilMs, cause: "spread" } as const;
  return {
    state: { ...woken, phase },
    effects: [{ kind: "wait", ms: spreadUntilMs - atMs, cause: "spread" }],
  };
}

function noteWake(state: LinkFollower, kind: "woke" | "network-changed", atMs: number): LinkFollower {
  return { ...state, failures: undefined, wokenAtMs: { ...state.wokenAtMs, [kind]: atMs } };
}

function waitFor(
  state: LinkFollower,
  { atMs, random, trouble }: WaitStart,
  effects: readonly LinkEffect[],
  { backoffMs, spreadMs }: { readonly backoffMs: number; readonly spreadMs: number },
): LinkStep {
  const ms = random * Math.max(backoffMs, spreadMs);
  const cause = spreadMs > backoffMs ? "spread" : "backoff";
  const spreadUntilMs = spreadMs > 0 ? atMs + random * spreadMs : -Infinity;
  const phase = { kind: "waiting", untilMs: atMs + ms, spreadUntilMs, cause, trouble } as const;
  return { state: { ...state, phase }, effects: [...effects, { kind: "wait", ms, cause }] };
}
