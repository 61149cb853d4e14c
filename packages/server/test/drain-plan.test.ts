// How links are spread over time, and from what a node knows how many it can take in.

import * as fc from "fast-check";
import { SPREAD_MS_MAX, SPREAD_MS_MIN } from "@moor/protocol";
import { VirtualRuntime, verifies } from "@moor/testkit";
import { expect, test } from "vitest";
import { ACCEPT_HEADROOM, HANDSHAKE_MS_AT_FIRST, HandshakeMeter } from "../src/drains/handshake-meter.ts";
import { planEndMs, planSpread } from "../src/drains/spread-plan.ts";
import { checkProperty } from "./support/check-property.ts";

const plan = (
  links: number,
  acceptRate: number,
  more: { isServedMeanwhile?: boolean; spreadMs?: number } = {},
) => planSpread({ links, acceptRate, isServedMeanwhile: true, ...more });

verifies(
  "L24",
  "the spread is links ÷ accept rate, from 1 s to 60 s, in one wave while that is enough",
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

verifies(
  "L24",
  "every plan closes all links, none faster than the accept rate, with a spread that L5 reads as it is",
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

/** A meter, and a loop that is busy for `workMs` with each handshake and for `otherMs` besides. */
function createLoop() {
  const runtime = new VirtualRuntime(1);
  let busyMs = 0;
  const meter = new HandshakeMeter({ runtime, busyMs: () => busyMs });
  return {
    meter,
    handshakes: (count: number, everyMs: number, workMs: number) => {
      for (let at = 0; at < count; at += 1) {
        runtime.advance(everyMs);
        busyMs += workMs;
        meter.noteHandshake();
      }
    },
  };
}

const AT_FIRST = (ACCEPT_HEADROOM * 1000) / HANDSHAKE_MS_AT_FIRST;

test("before a handshake was measured the accept rate is the documented one", () => {
  const { meter } = createLoop();
  expect([meter.acceptRate, meter.isMeasured]).toEqual([AT_FIRST, false]);
});

test("a storm teaches what a handshake costs: the rate is the headroom's part of the loop", () => {
  const { meter, handshakes } = createLoop();
  handshakes(200, 5, 2);
  expect(meter.isMeasured).toBe(true);
  expect(meter.acceptRate).toBeCloseTo((ACCEPT_HEADROOM * 1000) / 2, 0);
});

test("a loop that is never idle teaches what it got done", () => {
  const { meter, handshakes } = createLoop();
  handshakes(400, 4, 40);
  expect(meter.acceptRate).toBeCloseTo(ACCEPT_HEADROOM * 250, 0);
});

test("now and then a handshake among other work teaches nothing", () => {
  const { meter, handshakes } = createLoop();
  handshakes(200, 150, 100);
  expect([meter.acceptRate, meter.isMeasured]).toEqual([AT_FIRST, false]);
});

test("newer storms weigh more, one alone does not turn the estimate over", () => {
  const { meter, handshakes } = createLoop();
  handshakes(51, 10, 1);
  handshakes(51, 10, 4);
  const after = meter.acceptRate;
  expect(after).toBeLessThan(AT_FIRST);
  expect(after).toBeGreaterThan((ACCEPT_HEADROOM * 1000) / 4);
  for (let storm = 0; storm < 20; storm += 1) handshakes(51, 10, 4);
  expect(meter.acceptRate).toBeCloseTo((ACCEPT_HEADROOM * 1000) / 4, 0);
});

test("what the process before has measured is recalled, and gives way to what this one measures", () => {
  const { meter, handshakes } = createLoop();
  meter.recall(Number.NaN);
  meter.recall(-1);
  expect(meter.isMeasured).toBe(false);
  meter.recall(80);
  expect([meter.acceptRate, meter.isMeasured]).toEqual([80, true]);
  for (let storm = 0; storm < 20; storm += 1) handshakes(51, 10, 2);
  expect(meter.acceptRate).toBeCloseTo(250, 0);
  meter.recall(80);
  expect(meter.acceptRate).toBeCloseTo(250, 0);
});
