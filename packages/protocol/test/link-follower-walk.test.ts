// The link follower on random walks: whatever happens in whatever order, its invariants hold after each event.

import assert from "node:assert/strict";
import * as fc from "fast-check";
import { describe } from "vitest";
import {
  createLinkFollower,
  linkState,
  nextHost,
  shardHostOk,
  stepLinkFollower,
  type LinkEvent,
  type LinkFollower,
} from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";
import {
  A,
  always,
  anyRandom,
  base,
  each,
  failed,
  home,
  restarting,
  type Fact,
  type Transition,
} from "./link-walk.ts";

const dialsOf = ({ effects }: Transition) => effects.filter((effect) => effect.kind === "dial");
const persistsOf = ({ effects }: Transition) => effects.filter((effect) => effect.kind === "persist");

describe("on every walk", () => {
  verifies("L8", "a step depends on its state and its event alone, and changes neither", () => {
    always(
      each(({ before, event, after, effects }) => {
        assert.deepEqual(stepLinkFollower(before, event), { state: after, effects });
      }),
      true,
      100,
    );
  });

  verifies(["L4", "L13"], "no host is dialled or kept that fails L4, and the base is never kept", () => {
    always(
      each((transition) => {
        const { kept } = transition.after;
        if (kept !== undefined) assert.ok(shardHostOk(kept, base) && kept !== base, kept);
        for (const { host } of dialsOf(transition)) assert.ok(shardHostOk(host, base), host);
      }),
    );
  });

  verifies("L17", "an instant redial is paid for by a wait that ran to its end or a link of 10 s", () => {
    always((transitions) => {
      let credit = 1;
      for (const transition of transitions) {
        const { before, event, after } = transition;
        const isNewHome = event.kind === "rehomed" && after !== before;
        const isFinished =
          event.kind === "timer-fired" && before.phase.kind === "waiting" && dialsOf(transition).length > 0;
        const livedMs = before.phase.kind === "online" ? event.atMs - before.phase.sinceMs : 0;
        const isDue = before.phase.kind === "waiting" && event.atMs >= before.phase.untilMs;
        if (isFinished || livedMs >= 10_000 || isDue || isNewHome) credit = 1;
        if (event.kind === "redirected" && dialsOf(transition).length > 0) credit -= 1;
        assert.ok(credit >= 0, "credit");
        // Never more careful than L17 either.
        if (
          event.kind === "redirected" &&
          after.phase !== before.phase &&
          after.phase.kind === "waiting" &&
          after.phase.trouble === "redirected"
        ) {
          assert.equal(credit, 0);
        }
      }
    });
  });

  verifies("L12", "only a verified hello_ok writes a host, the one dialled, and it always writes", () => {
    always(
      each((transition) => {
        const { before, event, after } = transition;
        const isVerified = event.kind === "verified" && before.phase.kind === "dialing";
        for (const { host } of persistsOf(transition)) if (!isVerified) assert.equal(host, undefined);
        if (!isVerified || before.phase.kind !== "dialing") return;
        const { host } = before.phase;
        assert.deepEqual(persistsOf(transition), [{ kind: "persist", home: before.home, host: after.kept }]);
        const { kept, hops, failures } = after;
        assert.deepEqual(
          { kept, hops, failures },
          { kept: host === base ? undefined : host, hops: 0, failures: undefined },
        );
      }),
    );
  });

  verifies("L12", "while a link is live the record holds its host", () => {
    always((transitions) => {
      let recorded: string | undefined;
      for (const transition of transitions) {
        for (const { host } of persistsOf(transition)) recorded = host;
        if (transition.after.phase.kind === "online") assert.equal(recorded, transition.after.kept);
      }
    });
  });

  verifies(["L15", "L16"], "waits are 0 to 60 s, attempts 0 to 16, hops 0 or 1", () => {
    always(
      each(({ after, effects }) => {
        assert.ok(after.attempt >= 0 && after.attempt <= 16 && Number.isInteger(after.attempt));
        assert.ok(after.hops === 0 || after.hops === 1);
        for (const effect of effects) {
          if (effect.kind === "wait") assert.ok(effect.ms >= 0 && effect.ms <= 60_000);
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
            assert.deepEqual(dialsOf(transition), [{ kind: "dial", host: after.phase.host }]);
            assert.equal(after.phase.host, nextHost(after));
          } else assert.deepEqual(dialsOf(transition), []);
          if (after.phase.kind === "waiting" && hasChanged) {
            assert.equal(waits.length, 1);
            assert.ok(Math.abs(event.atMs + (waits[0]?.ms ?? 0) - after.phase.untilMs) < 1e-3);
          }
          assert.notEqual(after.phase.kind, "idle");
          assert.equal(linkState(after).kind === "unlinked", after.home === undefined);
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
        assert.equal(isForgotten, isFailure && isDue);
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
            assert.deepEqual(state.phase, { kind: "dialing", host: A });
            atMs += delayMs;
            if (atMs > 1_000 + outageMs) break;
            tell(fact({ atMs, random }, state));
            assert.equal(state.kept, A);
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
          assert.deepEqual([after.phase.cause, after.phase.untilMs], ["spread", spreadUntilMs]);
          assert.deepEqual([after.attempt, after.kept, after.hops], [0, before.kept, before.hops]);
        }
        if (dialsOf(transition).length > 0) assert.ok(event.atMs >= spreadUntilMs);
      }
    });
  });

  verifies("L11", "a chain has one redirect: the second in a row leads to the base", () => {
    always(
      each(({ before, event, after }) => {
        if (event.kind !== "redirected" || before.phase.kind !== "dialing" || before.hops === 0) return;
        assert.deepEqual([after.kept, after.hops, after.failures], [undefined, 0, undefined]);
        assert.equal(after.phase.kind, "waiting");
        assert.equal(nextHost(after), base);
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
        assert.equal(after, before);
        assert.deepEqual(effects, []);
      }),
    );
  });

  verifies("L6", "a client that does not follow dials nothing but its base", () => {
    always(
      each((transition) => {
        assert.equal(transition.after.kept, undefined);
        for (const { host } of dialsOf(transition)) assert.equal(host, base);
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
      if (isReplaced && isBackoff && event.kind !== "restarting") assert.ok(after.attempt >= 6);
    }
  });
});
