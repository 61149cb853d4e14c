// The link follower on random walks: whatever happens in whatever order, its invariants hold after each event.

import * as fc from "fast-check";
import { describe, expect } from "vitest";
import {
  createLinkFollower,
  linkState,
  nextHost,
  parseHomeId,
  shardHostOk,
  stepLinkFollower,
  type HomeId,
  type LinkEffect,
  type LinkEvent,
  type LinkFollower,
} from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";

const base = "cloud.ftw.energy";
const A = `a.${base}`;
const B = `b.${base}`;
const home = parseHomeId("villa") as HomeId;

/** One event of a walk, and what came of it. */
interface Transition {
  readonly before: LinkFollower;
  readonly event: LinkEvent;
  readonly after: LinkFollower;
  readonly effects: readonly LinkEffect[];
}

const anyHost = fc.oneof(
  { arbitrary: fc.constantFrom(A, B, base), weight: 6 },
  fc.constantFrom("evil.example", `A.${base}`, `x.a.${base}`, `a.${base}.`, `a.${base}:443`, ""),
);
const anyRandom = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const anyDelay = fc.constantFrom(0, 1, 400, 4_999, 5_000, 9_999, 10_000, 14_000, 30_000, 60_000, 600_000);

type Draw = Readonly<{ atMs: number; random: number }>;
type Fact = (at: Draw, state: LinkFollower) => LinkEvent;

const verified: fc.Arbitrary<Fact> = fc
  .constantFrom(undefined, 0, 5_000, 20_000, 1e9)
  .map((spreadMs) => ({ atMs }) => ({ kind: "verified", atMs, spreadMs }));
const failed: fc.Arbitrary<Fact> = fc.constant((at) => ({ kind: "dial-failed", ...at, cause: "refused" }));
const redirected: fc.Arbitrary<Fact> = anyHost.map((reason) => (at) => ({
  kind: "redirected",
  ...at,
  reason,
}));
const restarting: fc.Arbitrary<Fact> = fc
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
    { arbitrary: failed, weight: 4 },
    { arbitrary: verified, weight: 4 },
    { arbitrary: redirected, weight: 6 },
    restarting,
    woken,
  ),
  waiting: fc.oneof({ arbitrary: timer, weight: 8 }, { arbitrary: woken, weight: 2 }),
  online: fc.oneof(
    { arbitrary: lost, weight: 3 },
    { arbitrary: redirected, weight: 4 },
    { arbitrary: restarting, weight: 2 },
    woken,
  ),
  any: fc.option(
    fc.oneof(failed, redirected, restarting, verified, lost, timer, woken, { arbitrary: rehomed, weight: 2 }),
    { freq: 12 },
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
function always(holds: (transitions: readonly Transition[]) => void, isFollowing = true, runs = 500): void {
  const anyWalk = fc.tuple(anyStart, fc.array(anyMove, { maxLength: 60 }));
  checkProperty(
    fc.property(anyWalk, ([start, moves]) => holds(walk(isFollowing, start, moves))),
    runs,
  );
}

function each(holds: (transition: Transition) => void): (transitions: readonly Transition[]) => void {
  return (transitions) => transitions.forEach(holds);
}

const dialsOf = ({ effects }: Transition) => effects.filter((effect) => effect.kind === "dial");
const persistsOf = ({ effects }: Transition) => effects.filter((effect) => effect.kind === "persist");

describe("on every walk", () => {
  verifies("L8", "a step depends on its state and its event alone, and changes neither", () => {
    always(
      each(({ before, event, after, effects }) => {
        expect(stepLinkFollower(before, event)).toEqual({ state: after, effects });
      }),
      true,
      100,
    );
  });

  verifies(["L4", "L13"], "no host is dialled or kept that fails L4, and the base is never kept", () => {
    always(
      each((transition) => {
        const { kept } = transition.after;
        if (kept !== undefined) expect(shardHostOk(kept, base) && kept !== base).toBe(true);
        for (const { host } of dialsOf(transition)) expect(shardHostOk(host, base), host).toBe(true);
      }),
    );
  });

  verifies("L17", "an instant redial is paid for by a wait that ran to its end or a link of 10 s", () => {
    always((transitions) => {
      let credit = 1;
      for (const transition of transitions) {
        const { before, event, after } = transition;
        const isFinished =
          event.kind === "timer-fired" && before.phase.kind === "waiting" && dialsOf(transition).length > 0;
        const livedMs = before.phase.kind === "online" ? event.atMs - before.phase.sinceMs : 0;
        const isDue = before.phase.kind === "waiting" && event.atMs >= before.phase.untilMs;
        if (isFinished || livedMs >= 10_000 || isDue || event.kind === "rehomed") credit = 1;
        if (event.kind === "redirected" && dialsOf(transition).length > 0) credit -= 1;
        expect(credit).toBeGreaterThanOrEqual(0);
        // Never more careful than L17 either.
        if (
          event.kind === "redirected" &&
          after.phase.kind === "waiting" &&
          after.phase.trouble === "redirected"
        ) {
          expect(credit).toBe(0);
        }
      }
    });
  });

  verifies("L12", "only a verified hello_ok writes a host, the one dialled, and it always writes", () => {
    always(
      each((transition) => {
        const { before, event, after } = transition;
        const isVerified = event.kind === "verified" && before.phase.kind === "dialing";
        for (const { host } of persistsOf(transition)) if (!isVerified) expect(host).toBeUndefined();
        if (!isVerified || before.phase.kind !== "dialing") return;
        const { host } = before.phase;
        expect(persistsOf(transition)).toEqual([{ kind: "persist", home: before.home, host: after.kept }]);
        expect(after).toMatchObject({ kept: host === base ? undefined : host, hops: 0, failures: undefined });
      }),
    );
  });

  verifies("L12", "while a link is live the record holds its host", () => {
    always((transitions) => {
      let recorded: string | undefined;
      for (const transition of transitions) {
        for (const { host } of persistsOf(transition)) recorded = host;
        if (transition.after.phase.kind === "online") expect(recorded).toBe(transition.after.kept);
      }
    });
  });

  verifies(["L15", "L16"], "waits are 0 to 60 s, attempts 0 to 16, hops 0 or 1", () => {
    always(
      each(({ after, effects }) => {
        expect(after.attempt >= 0 && after.attempt <= 16 && Number.isInteger(after.attempt)).toBe(true);
        expect([0, 1]).toContain(after.hops);
        for (const effect of effects) {
          if (effect.kind === "wait") expect(effect.ms >= 0 && effect.ms <= 60_000).toBe(true);
        }
      }),
    );
  });

  verifies(
    "L15",
    "a client is never stuck: it dials, waits with a timer, is online, or belongs to no home",
    () => {
      always(
        each((transition) => {
          const { before, event, after, effects } = transition;
          const hasChanged = after.phase !== before.phase;
          const waits = effects.filter((effect) => effect.kind === "wait");
          if (after.phase.kind === "dialing" && hasChanged) {
            expect(dialsOf(transition)).toEqual([{ kind: "dial", host: after.phase.host }]);
            expect(after.phase.host).toBe(nextHost(after));
          } else expect(dialsOf(transition)).toEqual([]);
          if (after.phase.kind === "waiting" && hasChanged) {
            expect(waits).toHaveLength(1);
            expect(event.atMs + (waits[0]?.ms ?? 0)).toBeCloseTo(after.phase.untilMs, 3);
          }
          expect(after.phase.kind).not.toBe("idle");
          expect(linkState(after).kind === "unlinked").toBe(after.home === undefined);
        }),
      );
    },
  );

  verifies("L14", "a host is forgotten only at a third failure, 30 s after the first one that counts", () => {
    always((transitions) => {
      let failedAtMs: number[] = [];
      for (const transition of transitions) {
        const { before, event, after, effects } = transition;
        const isAtKept = before.phase.kind === "dialing" && before.phase.host === before.kept;
        const isOver = after.kept !== before.kept || after.phase.kind === "online";
        const isForgotten = effects.some(
          (effect) => effect.kind === "warn" && effect.code === "host-forgotten",
        );
        const isFailure =
          isAtKept &&
          after.phase.kind === "waiting" &&
          event.kind !== "rehomed" &&
          !(event.kind === "redirected" && before.kept !== after.kept && !isForgotten);
        const isSleep =
          event.kind === "woke" ||
          event.kind === "network-changed" ||
          (event.kind === "timer-fired" &&
            before.phase.kind === "waiting" &&
            event.atMs >= before.phase.untilMs + 5_000);
        if (isSleep) failedAtMs = [];
        if (isFailure) failedAtMs.push(event.atMs);
        const isDue = failedAtMs.length >= 3 && event.atMs - (failedAtMs[0] ?? 0) >= 30_000;
        if (isFailure) expect(isForgotten).toBe(isDue);
        else expect(isForgotten).toBe(false);
        if (isOver) failedAtMs = [];
      }
    });
  });

  verifies("L14", "an outage of less than 30 s never loses the kept host, however it is tried", () => {
    const anyTry = fc.record({
      delayMs: fc.nat({ max: 3_000 }),
      random: anyRandom,
      fact: fc.oneof(
        failed,
        restarting,
        fc
          .constantFrom(A, "evil.example")
          .map<Fact>((reason) => (at) => ({ kind: "redirected", ...at, reason })),
      ),
    });
    checkProperty(
      fc.property(
        fc.nat({ max: 29_999 }),
        fc.nat({ max: 16 }),
        fc.array(anyTry, { minLength: 20, maxLength: 40 }),
        (outageMs, attempt, tries) => {
          const client = createLinkFollower({ base, home, isFollowing: true });
          let state: LinkFollower = { ...client, kept: A, phase: { kind: "dialing", host: A } };
          const tell = (event: LinkEvent) => (state = stepLinkFollower(state, event).state);
          tell({ kind: "verified", atMs: 0 });
          state = { ...state, attempt };
          tell({ kind: "lost", atMs: 1_000, random: 0, by: "peer" });
          let atMs = 1_000;
          for (const { delayMs, random, fact } of tries) {
            atMs = state.phase.kind === "waiting" ? state.phase.untilMs : atMs;
            tell({ kind: "timer-fired", atMs });
            expect(state.phase).toEqual({ kind: "dialing", host: A });
            atMs += delayMs;
            if (atMs > 1_000 + outageMs) break;
            tell(fact({ atMs, random }, state));
            expect(state.kept).toBe(A);
          }
        },
      ),
    );
  });

  verifies("L16", "no wake shortens a spread", () => {
    always((transitions) => {
      let spreadUntilMs = -Infinity;
      for (const transition of transitions) {
        const { before, event, after } = transition;
        if (event.kind === "rehomed") spreadUntilMs = -Infinity;
        if (before.phase.kind === "online" && after.phase.kind === "waiting")
          spreadUntilMs = after.phase.spreadUntilMs;
        if (event.kind === "restarting" && before.phase.kind === "online" && after.phase.kind === "waiting") {
          expect(after.phase).toMatchObject({ cause: "spread", untilMs: spreadUntilMs });
          expect(after).toMatchObject({ attempt: 0, kept: before.kept, hops: before.hops });
        }
        if (dialsOf(transition).length > 0) expect(event.atMs).toBeGreaterThanOrEqual(spreadUntilMs);
      }
    });
  });

  verifies("L11", "a chain has one redirect: the second in a row leads to the base", () => {
    always(
      each(({ before, event, after }) => {
        if (event.kind !== "redirected" || before.phase.kind !== "dialing" || before.hops === 0) return;
        expect(after).toMatchObject({
          kept: undefined,
          hops: 0,
          failures: undefined,
          phase: { kind: "waiting" },
        });
        expect(nextHost(after)).toBe(base);
      }),
    );
  });

  verifies("L15", "news of a dial or wait that was given up changes nothing", () => {
    const fits: Readonly<Record<string, readonly LinkEvent["kind"][]>> = {
      unlinked: ["rehomed"],
      dialing: ["dial-failed", "redirected", "restarting", "verified", "woke", "network-changed", "rehomed"],
      waiting: ["timer-fired", "woke", "network-changed", "rehomed"],
      online: ["redirected", "restarting", "lost", "woke", "network-changed", "rehomed"],
      idle: ["started", "rehomed"],
    };
    always(
      each(({ before, event, after, effects }) => {
        if (fits[before.phase.kind]?.includes(event.kind)) return;
        expect(after).toBe(before);
        expect(effects).toEqual([]);
      }),
    );
  });

  verifies("L6", "a client that does not follow dials nothing but its base", () => {
    always(
      each((transition) => {
        expect(transition.after.kept).toBeUndefined();
        for (const { host } of dialsOf(transition)) expect(host).toBe(base);
      }),
      false,
    );
  });
});

verifies("L23", "after a 4409 no backoff is of a step below 5, until a link has lived 10 min", () => {
  always((transitions) => {
    let isReplaced = false;
    for (const { before, event, after } of transitions) {
      if (event.kind === "rehomed" && after !== before) isReplaced = false;
      if (before.phase.kind === "online" && after.phase.kind !== "online") {
        if (event.atMs - before.phase.sinceMs >= 600_000) isReplaced = false;
        if (event.kind === "lost" && event.by === "peer" && event.closeCode === 4409) isReplaced = true;
      }
      const isBackoff =
        after.phase !== before.phase && after.phase.kind === "waiting" && before.phase.kind !== "waiting";
      if (isReplaced && isBackoff && event.kind !== "restarting")
        expect(after.attempt).toBeGreaterThanOrEqual(6);
    }
  });
});
