// The forecast of a restart: real followers on virtual time, against what arithmetic says of them.

import * as fc from "fast-check";
import { verifies } from "@moor/testkit";
import { expect, test } from "vitest";
import { predictArrivals, type Arrivals, type PredictionInput } from "../src/drains/predict-arrivals.ts";
import { planSpread } from "../src/drains/spread-plan.ts";
import { checkProperty } from "./support/check-property.ts";

const FILE = "packages/server/test/predict-arrivals.test.ts";

function predict(links: number, more: Partial<PredictionInput> & { readonly spreadMs?: number } = {}) {
  const { acceptRate = 1_000, isServedMeanwhile = false, gapMs = 0, spreadMs, ...rest } = more;
  const plan = planSpread({ links, acceptRate, gapMs, isServedMeanwhile, spreadMs });
  return predictArrivals({ plan, acceptRate, gapMs, isHandedOver: true, isServedMeanwhile, ...rest });
}

const totalOf = ({ perSecond }: Arrivals) => perSecond.reduce((sum, rate) => sum + rate, 0);

verifies(
  "L16",
  "clients told a spread come back evenly over it: hardly above the mean, and none after its end",
  () => {
    const { spread } = predict(10_000);
    expect(totalOf(spread)).toBeCloseTo(10_000, 6);
    expect(spread.perSecond.slice(20).every((rate) => rate < 5)).toBe(true);
    expect(spread.peakToMean).toBeLessThan(1.25);
    expect(spread.p50Ms).toBeGreaterThan(9_000);
    expect(spread.p50Ms).toBeLessThan(11_000);
    expect(spread.maxMs).toBeLessThanOrEqual(20_010);
    expect([spread.failedDials, spread.missing]).toEqual([0, 0]);
  },
);

test("clients that know no spread all dial within half a second, and are back as fast as the node accepts", () => {
  const { naive } = predict(10_000);
  expect(naive.perSecond.slice(1, 10)).toEqual(Array(9).fill(1_000));
  expect(naive.peakPerS).toBeLessThanOrEqual(1_001);
  expect(naive.maxMs).toBeGreaterThan(10_000);
  expect(naive.maxMs).toBeLessThan(10_100);
  expect(naive.failedDials).toBe(0);
});

verifies("L24", "waves come back one after the other, each over its own spread", () => {
  const { spread } = predict(75_000, { isServedMeanwhile: true });
  expect(spread.perSecond.length).toBe(180);
  expect(spread.peakToMean).toBeLessThan(1.6);
  for (const wave of [0, 1, 2]) {
    const part = spread.perSecond.slice(wave * 60, wave * 60 + 60).reduce((sum, rate) => sum + rate, 0);
    expect(part).toBeCloseTo(25_000, -2);
  }
});

verifies(
  "L24",
  "dials that fall into the gap are taken in beside the rest, in no more time than the gap lasted",
  () => {
    const { spread } = predict(10_000, { gapMs: 4_000 });
    expect(spread.maxMs).toBeLessThan(24_010);
    // 4 s of 24 s dialled into the gap; from then on the node is as busy as it can be, until they are in.
    expect(spread.perSecond.slice(0, 6)).toEqual([0, 0, 0, 0, 999, 1_000]);
    const after = spread.perSecond.slice(8, -1);
    expect(Math.max(...after)).toBeLessThan(500);
    expect(spread.longestWaitMs).toBeGreaterThan(3_900);
    expect(spread.longestWaitMs).toBeLessThan(4_010);
    expect(spread.failedDials).toBe(0);
  },
);

test("a spread without the gap ends in a node that is asked for more than it can do", () => {
  const { spread } = predict(10_000, { gapMs: 18_000, spreadMs: 20_000 });
  expect(spread.failedDials).toBeGreaterThan(0);
  expect(spread.maxMs).toBeGreaterThan(27_000);
});

test("dials that are refused cost their clients a backoff; naive ones come again and again", () => {
  const { spread, naive } = predict(10_000, { gapMs: 4_000, isHandedOver: false });
  expect(totalOf(spread)).toBeCloseTo(10_000, 6);
  expect(spread.failedDials).toBeGreaterThan(1_600);
  const secondsAtLimit = ({ perSecond }: Arrivals) => perSecond.filter((rate) => rate > 950).length;
  expect(secondsAtLimit(spread)).toBeLessThan(4);
  expect(secondsAtLimit(naive)).toBeGreaterThan(8);
  expect(naive.peakPerS).toBeLessThanOrEqual(1_001);
  expect(naive.failedDials).toBeGreaterThan(10 * spread.failedDials);
  expect(naive.p50Ms).toBeGreaterThan(8_500);
});

verifies("L15", "a dial that waits longer than 15 s fails, in the gap's queue as behind others", () => {
  const gap = predict(1_000, { gapMs: 30_000, acceptRate: 100 }).spread;
  expect(gap.failedDials).toBeGreaterThan(0);
  expect(gap.longestWaitMs).toBeLessThanOrEqual(15_000);
  expect(gap.missing).toBe(0);
  // 100 s of work: after 15 s of it nobody in the queue is there any more who came with the first.
  const { naive } = predict(10_000, { acceptRate: 100 });
  expect(naive.failedDials).toBeGreaterThan(10_000 - 1_600);
  expect(naive.longestWaitMs).toBeLessThanOrEqual(15_000);
  expect(naive.maxMs).toBeGreaterThan(100_000);
  expect(totalOf(naive)).toBeCloseTo(10_000, 6);
});

test("rates are of all clients, however many are simulated", () => {
  const { spread } = predict(2_000_000, { acceptRate: 40_000, isServedMeanwhile: true });
  expect(totalOf(spread)).toBeCloseTo(2_000_000, 0);
  expect(spread.peakPerS).toBeLessThan(20_000 * 1.5);
});

test("nobody linked is nobody foretold", () => {
  const { spread, naive } = predict(0);
  expect(spread).toMatchObject({
    perSecond: [],
    peakPerS: 0,
    meanPerS: 0,
    peakToMean: 0,
    maxMs: 0,
    missing: 0,
  });
  expect(naive.perSecond).toEqual([]);
});

test("the same seed foretells the same, another one something else", () => {
  expect(predict(500, { seed: 7 })).toEqual(predict(500, { seed: 7 }));
  expect(predict(500, { seed: 7 })).not.toEqual(predict(500, { seed: 8 }));
});

verifies("L24", "whatever the gap, everybody is back, once, and nobody before the service is", () =>
  checkProperty(
    fc.asyncProperty(
      fc.record({
        links: fc.integer({ min: 1, max: 300 }),
        gapMs: fc.nat(60_000),
        isHandedOver: fc.boolean(),
        acceptRate: fc.integer({ min: 50, max: 1_000 }),
        seed: fc.nat(),
      }),
      async ({ links, gapMs, acceptRate, ...more }) => {
        const { spread, naive } = predict(links, { gapMs, acceptRate, ...more });
        for (const arrivals of [spread, naive]) {
          expect(totalOf(arrivals)).toBeCloseTo(links, 6);
          expect(arrivals.missing).toBe(0);
          expect(arrivals.perSecond.findIndex((rate) => rate > 0)).toBeGreaterThanOrEqual(
            Math.floor(gapMs / 1000),
          );
          expect(arrivals.maxMs).toBeGreaterThanOrEqual((links / acceptRate) * 1000);
        }
        const allWaitMs = gapMs + (links / acceptRate) * 1000;
        if (more.isHandedOver && allWaitMs < 15_000) expect(spread.failedDials + naive.failedDials).toBe(0);
      },
    ),
    200,
    FILE,
  ),
);
