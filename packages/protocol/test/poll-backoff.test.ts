import * as fc from "fast-check";
import { describe, expect } from "vitest";
import { backoffAfterFailure, backoffAfterSuccess, createPollBackoff } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";

const anyRandom = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe("PollBackoff", () => {
  verifies("R17", "delay n is 200 ms + U·(min(10 s, 200 ms·2^n) − 200 ms)", () => {
    checkProperty(
      fc.property(fc.nat({ max: 2000 }), anyRandom, (failures, random) => {
        const { delayMs, state } = backoffAfterFailure({ failures }, { random });
        const ceilingMs = failures > 5 ? 10_000 : 200 * 2 ** failures;
        expect(delayMs).toBeCloseTo(200 + random * (ceilingMs - 200), 9);
        expect(delayMs).toBeGreaterThanOrEqual(200);
        expect(delayMs).toBeLessThanOrEqual(10_000);
        expect(state).toEqual({ failures: failures + 1 });
      }),
    );
  });

  verifies("R17", "a Retry-After is the least delay and never shortens one", () => {
    checkProperty(
      fc.property(
        fc.nat({ max: 20 }),
        anyRandom,
        fc.nat({ max: 60_000 }),
        (failures, random, retryAfterMs) => {
          const own = backoffAfterFailure({ failures }, { random });
          const asked = backoffAfterFailure({ failures }, { random, retryAfterMs });
          expect(asked).toEqual({ state: own.state, delayMs: Math.max(own.delayMs, retryAfterMs) });
        },
      ),
    );
  });

  verifies("R17", "a success starts again at 0, whatever came before", () => {
    expect(backoffAfterSuccess({ failures: 12 })).toEqual(createPollBackoff());
  });
});
