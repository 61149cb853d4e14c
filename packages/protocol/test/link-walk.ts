// Random walks of the link follower: whole lives of one client, mostly of events that fit, now and then of late news.

import * as fc from "fast-check";
import {
  createLinkFollower,
  parseHomeId,
  stepLinkFollower,
  type HomeId,
  type LinkEffect,
  type LinkEvent,
  type LinkFollower,
} from "@moor/protocol";
import { checkProperty } from "./check-property.ts";

/** The base of all walks. */
export const base = "cloud.ftw.energy";
/** A shard below the base. */
export const A = `a.${base}`;
/** Another one. */
export const B = `b.${base}`;
/** The home all walks start with. */
export const home = parseHomeId("villa") as HomeId;

/** One event of a walk, and what came of it. */
export interface Transition {
  readonly before: LinkFollower;
  readonly event: LinkEvent;
  readonly after: LinkFollower;
  readonly effects: readonly LinkEffect[];
}

const anyHost = fc.oneof(
  { arbitrary: fc.constantFrom(A, B, base), weight: 6 },
  fc.constantFrom("evil.example", `A.${base}`, `x.a.${base}`, `a.${base}.`, `a.${base}:443`, ""),
);
/** A random number as a follower is given. */
export const anyRandom = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const anyDelay = fc.constantFrom(0, 1, 400, 4_999, 5_000, 9_999, 10_000, 14_000, 30_000, 60_000, 600_000);

/** What an event is drawn with. */
type Draw = Readonly<{ atMs: number; random: number }>;

/** An event for a moment and a state. */
export type Fact = (at: Draw, state: LinkFollower) => LinkEvent;

const verified: fc.Arbitrary<Fact> = fc
  .constantFrom(undefined, 0, 5_000, 20_000, 1e9)
  .map((spreadMs) => ({ atMs }) => ({ kind: "verified", atMs, spreadMs }));
/** A refused dial. */
export const failed: fc.Arbitrary<Fact> = fc.constant((at) => ({
  kind: "dial-failed",
  ...at,
  cause: "refused",
}));
const redirected: fc.Arbitrary<Fact> = anyHost.map((reason) => (at) => ({
  kind: "redirected",
  ...at,
  reason,
}));
/** A 4503. */
export const restarting: fc.Arbitrary<Fact> = fc
  .constantFrom("", "0", "20000", "60000", "x")
  .map((reason) => (at) => ({ kind: "restarting", ...at, reason }));
const lost: fc.Arbitrary<Fact> = fc
  .tuple(
    fc.constantFrom("peer" as const, "client" as const),
    fc.constantFrom(undefined, 1000, 1001, 1006, 4401, 4409),
  )
  .map(([by, closeCode]) => (at) => ({ kind: "lost", ...at, by, closeCode }));
/** The wait's timer, in time or late; a stale one where nothing is waited for. */
const timer: fc.Arbitrary<Fact> = fc
  .constantFrom(0, 4_999, 5_000, 3_600_000)
  .map((lateMs) => ({ atMs }, { phase }) => ({
    kind: "timer-fired",
    atMs: Math.max(atMs, phase.kind === "waiting" ? phase.untilMs + lateMs : atMs),
  }));
const woken: fc.Arbitrary<Fact> = fc
  .constantFrom("woke" as const, "network-changed" as const)
  .map((kind) => ({ atMs }) => ({ kind, atMs }));
const rehomed: fc.Arbitrary<Fact> = fc.constantFrom(undefined, home, "cabin").map((to) => ({ atMs }) => ({
  kind: "rehomed",
  atMs,
  home: to,
}));

const anyStart: fc.Arbitrary<Fact> = fc
  .constantFrom(undefined, A, base, "evil.example")
  .map((host) => ({ atMs }) => ({ kind: "started", atMs, record: { home, host } }));

/** Facts that mostly fit the phase they meet, and now and then are late news. */
const anyMove = fc.record({
  delayMs: anyDelay,
  random: anyRandom,
  dialing: fc.oneof(
    { arbitrary: failed, weight: 6 },
    { arbitrary: verified, weight: 4 },
    { arbitrary: redirected, weight: 6 },
    restarting,
    woken,
  ),
  waiting: fc.oneof({ arbitrary: timer, weight: 12 }, { arbitrary: woken, weight: 2 }),
  online: fc.oneof(
    { arbitrary: lost, weight: 3 },
    { arbitrary: redirected, weight: 4 },
    { arbitrary: restarting, weight: 2 },
    woken,
  ),
  any: fc.oneof(
    { arbitrary: fc.constant(undefined), weight: 20 },
    fc.oneof(
      { arbitrary: fc.oneof(failed, redirected, restarting, verified, lost, timer, woken), weight: 6 },
      rehomed,
    ),
  ),
});

function walk(
  isFollowing: boolean,
  start: Fact,
  moves: readonly (typeof anyMove extends fc.Arbitrary<infer Move> ? Move : never)[],
): readonly Transition[] {
  let state: LinkFollower = deepFrozen(createLinkFollower({ base, home, isFollowing }));
  let atMs = 0;
  const apply = (event: LinkEvent): Transition => {
    const before = state;
    const step = stepLinkFollower(before, event);
    state = deepFrozen(step.state);
    atMs = Math.max(atMs, event.atMs);
    return { before, event, after: state, effects: step.effects };
  };
  const transitions = [apply(start({ atMs, random: 0 }, state))];
  for (const move of moves) {
    const { kind } = state.phase;
    const fact = move.any ?? (kind === "idle" || kind === "unlinked" ? rehomeToVilla : move[kind]);
    // A fact may come at most as late as the wait lasts, or its timer would have fired before.
    const untilMs = state.phase.kind === "waiting" ? state.phase.untilMs : Infinity;
    transitions.push(
      apply(fact({ atMs: Math.min(atMs + move.delayMs, untilMs), random: move.random }, state)),
    );
  }
  return transitions;
}

const rehomeToVilla: Fact = ({ atMs }) => ({ kind: "rehomed", atMs, home });

function deepFrozen<Value>(value: Value): Value {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(deepFrozen);
  }
  return value;
}

/** Checks `holds` on all transitions of random walks. */
export function always(
  holds: (transitions: readonly Transition[]) => void,
  isFollowing = true,
  runs = 300,
): void {
  const anyWalk = fc.tuple(anyStart, fc.array(anyMove, { minLength: 20, maxLength: 60, size: "max" }));
  checkProperty(
    fc.property(anyWalk, ([start, moves]) => holds(walk(isFollowing, start, moves))),
    runs,
  );
}

/** A check of every transition by itself. */
export function each(holds: (transition: Transition) => void): (transitions: readonly Transition[]) => void {
  return (transitions) => transitions.forEach(holds);
}
