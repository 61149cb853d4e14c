// The routing machine under random histories of overlapping polls.

import * as fc from "fast-check";
import { describe, expect } from "vitest";
import {
  createPollRouting,
  startPoll,
  stepPollRouting,
  type PollOutcome,
  type PollRouting,
  type PollTicket,
} from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";

const success: PollOutcome = { kind: "success", commands: [] };
const failure: PollOutcome = { kind: "destination-failure" };
const correctionTo = (token: string, revision: number): PollOutcome => ({
  kind: "correction",
  token,
  revision,
});

/** Few tokens and revisions, so that newer, equal, conflicting and older ones all happen. */
const anyOutcome: fc.Arbitrary<PollOutcome> = fc.oneof(
  fc.constant(success),
  { arbitrary: fc.constant(failure), weight: 3 },
  {
    arbitrary: fc
      .tuple(fc.constantFrom("tok-a", "tok-b", "tok-c"), fc.nat({ max: 4 }))
      .map(([token, revision]) => correctionTo(token, revision)),
    weight: 4,
  },
  fc.constant<PollOutcome>({ kind: "ordinary-error" }),
  fc.constant<PollOutcome>({ kind: "malformed-correction", reason: "token-count" }),
  fc.constant<PollOutcome>({ kind: "cancelled" }),
);

/** One poll's ending: which of the open polls ends, and how many are started before. */
const anyHistory = fc.array(
  fc.record({ starts: fc.integer({ min: 0, max: 3 }), pick: fc.nat(), outcome: anyOutcome }),
  { maxLength: 60 },
);

interface Transition {
  readonly before: PollRouting;
  readonly after: PollRouting;
  readonly ticket: PollTicket;
  readonly outcome: PollOutcome;
  readonly isCurrent: boolean;
}

/** Checks `holds` on every transition of random histories. */
function always(holds: (transition: Transition) => void): void {
  checkProperty(
    fc.property(anyHistory, (history) => {
      for (const transition of run(history)) holds(transition);
    }),
    2000,
  );
}

function run(
  history: readonly { starts: number; pick: number; outcome: PollOutcome }[],
): readonly Transition[] {
  let state = createPollRouting();
  const open: PollTicket[] = [];
  return history.map(({ starts, pick, outcome }) => {
    for (let count = 0; count <= starts; count += 1) open.push(startPoll(state));
    const [ticket] = open.splice(pick % open.length, 1);
    if (ticket === undefined) throw new Error("a poll was started");
    const before = state;
    const step = stepPollRouting(before, ticket, outcome);
    state = step.state;
    return { before, after: state, ticket, outcome, isCurrent: step.isCurrent };
  });
}

const isStateBearing = (outcome: PollOutcome) =>
  outcome.kind === "success" || outcome.kind === "correction" || outcome.kind === "destination-failure";

describe("PollRouting", () => {
  verifies("R9", "a new instance is tokenless and knows nothing", () => {
    const state = createPollRouting();
    expect(state).toEqual({
      activeToken: undefined,
      watermark: undefined,
      corrections: 0,
      destinationFailures: 0,
      generation: 0,
    });
    expect(startPoll(state)).toEqual({ generation: 0, token: undefined });
  });

  verifies("R9", "a step changes no state it is given", () => {
    always(({ before, ticket, outcome }) => {
      const frozen = Object.freeze({ ...before });
      stepPollRouting(frozen, Object.freeze(ticket), Object.freeze(outcome));
      expect(frozen).toEqual(before);
    });
  });

  verifies("R12", "I1: the watermark's revision never falls and is never forgotten", () => {
    always(({ before, after }) => {
      expect(after.watermark?.revision ?? -1).toBeGreaterThanOrEqual(before.watermark?.revision ?? -1);
    });
  });

  verifies("R12", "I1: at one revision the accepted token never changes", () => {
    always(({ before, after }) => {
      if (before.watermark?.revision === after.watermark?.revision)
        expect(after.watermark).toEqual(before.watermark);
    });
  });

  verifies("R16", "I2: a result of an older generation changes nothing", () => {
    always(({ before, after, ticket, isCurrent }) => {
      expect(isCurrent).toBe(ticket.generation === before.generation);
      if (!isCurrent) expect(after).toBe(before);
    });
  });

  verifies("R12", "I3: the active token is the watermark's or none", () => {
    always(({ after }) => expect([undefined, after.watermark?.token]).toContain(after.activeToken));
  });

  verifies("R12", "newer replaces, older changes neither, equal keeps, restores or clears", () => {
    always(({ before, after, outcome, isCurrent }) => {
      if (outcome.kind !== "correction" || !isCurrent) return;
      const { token, revision } = outcome;
      const known = before.watermark;
      const isNewer = known === undefined || revision > known.revision;
      expect(after.watermark).toEqual(isNewer ? { token, revision } : known);
      // The third correction clears the token whatever it was (R13).
      if (before.corrections === 2) return;
      const isOlder = !isNewer && revision < known.revision;
      const isConfirmed = isNewer || token === known.token;
      expect(after.activeToken).toBe(isOlder ? before.activeToken : isConfirmed ? token : undefined);
    });
  });

  verifies("R10", "a poll carries the active token of the state it starts from", () => {
    always(({ after }) => {
      expect(startPoll(after)).toEqual({ generation: after.generation, token: after.activeToken });
    });
  });

  verifies(["R13", "R14"], "I4: counts stay below three, and no failure counts while tokenless", () => {
    always(({ after }) => {
      expect(after.corrections).toBeLessThan(3);
      expect(after.destinationFailures).toBeLessThan(3);
      if (after.activeToken === undefined) expect(after.destinationFailures).toBe(0);
    });
  });

  verifies("R16", "I5: exactly the current state-bearing results advance the generation, by one", () => {
    always(({ before, after, outcome, isCurrent }) => {
      expect(after.generation - before.generation).toBe(isCurrent && isStateBearing(outcome) ? 1 : 0);
    });
  });

  verifies(["R14", "R16"], "what bears no state changes nothing at all", () => {
    always(({ before, after, outcome }) => {
      if (!isStateBearing(outcome)) expect(after).toBe(before);
    });
  });

  verifies("R11", "a current success keeps token and watermark and resets both counts", () => {
    always(({ before, after, outcome, isCurrent }) => {
      if (outcome.kind !== "success" || !isCurrent) return;
      expect(after).toEqual({
        ...before,
        corrections: 0,
        destinationFailures: 0,
        generation: before.generation + 1,
      });
    });
  });

  verifies("R13", "every current correction counts, and each third one leaves the client tokenless", () => {
    always(({ before, after, outcome, isCurrent }) => {
      if (outcome.kind !== "correction" || !isCurrent) return;
      expect(after.corrections).toBe((before.corrections + 1) % 3);
      if (before.corrections === 2) expect(after.activeToken).toBeUndefined();
    });
  });

  verifies("R15", "a current correction or success leaves no failure counted", () => {
    always(({ after, outcome, isCurrent }) => {
      if (isCurrent && (outcome.kind === "success" || outcome.kind === "correction")) {
        expect(after.destinationFailures).toBe(0);
      }
    });
  });

  verifies("R14", "only the third failure of a token-carrying poll clears the token by failure", () => {
    always(({ before, after, ticket, outcome, isCurrent }) => {
      if (outcome.kind !== "destination-failure" || !isCurrent) return;
      const isEvicted = ticket.token !== undefined && before.destinationFailures === 2;
      expect(after.activeToken).toBe(isEvicted ? undefined : before.activeToken);
      const counted = ticket.token === undefined ? 0 : (before.destinationFailures + 1) % 3;
      expect(after.destinationFailures).toBe(counted);
    });
  });

  verifies(
    ["R12", "R13"],
    "from any state a service that knows the newest placement is reached within four polls",
    () => {
      checkProperty(
        fc.property(anyHistory, (history) => {
          let state = run(history).at(-1)?.after ?? createPollRouting();
          const newest = { token: "tok-newest", revision: 1_000 };
          for (let poll = 1; poll <= 4; poll += 1) {
            const ticket = startPoll(state);
            if (ticket.token === newest.token) return true;
            state = stepPollRouting(state, ticket, { kind: "correction", ...newest }).state;
          }
          return false;
        }),
        2000,
      );
    },
  );
});
