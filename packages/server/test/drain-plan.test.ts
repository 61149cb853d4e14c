// How links are spread over time.

import * as fc from "fast-check";
import { SPREAD_MS_MAX, SPREAD_MS_MIN } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { expect, test } from "vitest";
import { PLANNED_PART, planEndMs, planSpread } from "../src/drains/spread-plan.ts";
import { checkProperty } from "./support/check-property.ts";

/** @param plannedRate what the plan asks for: a part of the accept rate */
const plan = (
  links: number,
  plannedRate: number,
  more: { isServedMeanwhile?: boolean; gapMs?: number; spreadMs?: number } = {},
) =>
  planSpread({ links, acceptRate: plannedRate / PLANNED_PART, gapMs: 0, isServedMeanwhile: true, ...more });

verifies(
  "L24",
  "the spread is links ÷ what is planned of the accept rate, from 1 s to 60 s, in one wave while that is enough",
  () => {
    expect(plan(0, 500)).toEqual({ links: 0, spreadMs: 1_000, waves: [{ atMs: 0, links: 0 }] });
    expect(plan(400, 500).spreadMs).toBe(1_000);
    expect(plan(2_501, 500).spreadMs).toBe(5_002);
    expect(plan(30_000, 500)).toEqual({
      links: 30_000,
      spreadMs: 60_000,
      waves: [{ atMs: 0, links: 30_000 }],
    });
  },
);

verifies("L24", "beyond 60 s links are closed in waves, the n-th at n·60 s", () => {
  expect(plan(75_000, 500)).toEqual({
    links: 75_000,
    spreadMs: 60_000,
    waves: [
      { atMs: 0, links: 25_000 },
      { atMs: 60_000, links: 25_000 },
      { atMs: 120_000, links: 25_000 },
    ],
  });
  expect(planEndMs(plan(75_000, 500))).toBe(180_000);
});

test("waves are not used where nobody could come back before the last of them", () => {
  const { spreadMs, waves } = plan(75_000, 500, { isServedMeanwhile: false });
  expect([spreadMs, waves]).toEqual([60_000, [{ atMs: 0, links: 75_000 }]]);
});

test("an operator's spread is one wave, whatever the accept rate", () => {
  expect(plan(75_000, 500, { spreadMs: 7_000 })).toEqual({
    links: 75_000,
    spreadMs: 7_000,
    waves: [{ atMs: 0, links: 75_000 }],
  });
});

verifies("L24", "time in which nobody serves is added to the spread of a node alone, up to 60 s", () => {
  const alone = (gapMs: number) => plan(5_000, 500, { isServedMeanwhile: false, gapMs }).spreadMs;
  expect([alone(0), alone(3_000), alone(45_000), alone(55_000)]).toEqual([10_000, 13_000, 55_000, 60_000]);
  expect(plan(5_000, 500, { gapMs: 3_000 }).spreadMs).toBe(10_000);
  expect(plan(5_000, 500, { isServedMeanwhile: false, gapMs: 3_000, spreadMs: 7_000 }).spreadMs).toBe(7_000);
});

verifies(
  "L24",
  "every plan closes all links, none faster than was planned, with a spread that L5 reads as it is",
  () =>
    checkProperty(
      fc.asyncProperty(
        fc.nat(5_000_000),
        fc.double({ min: 20, max: 20_000, noNaN: true }),
        async (links, rate) => {
          const { spreadMs, waves } = plan(links, rate);
          expect(Number.isInteger(spreadMs)).toBe(true);
          expect(spreadMs).toBeGreaterThanOrEqual(SPREAD_MS_MIN);
          expect(spreadMs).toBeLessThanOrEqual(SPREAD_MS_MAX);
          expect(waves.reduce((sum, wave) => sum + wave.links, 0)).toBe(links);
          expect(waves.findIndex(({ atMs }, wave) => atMs !== wave * spreadMs)).toBe(-1);
          // Rounding spreads what does not divide: at most one link more than the rate in each wave.
          expect(Math.max(...waves.map((wave) => wave.links))).toBeLessThanOrEqual(
            (rate * spreadMs) / 1000 + 1,
          );
        },
      ),
      500,
      "packages/server/test/drain-plan.test.ts",
    ),
);
