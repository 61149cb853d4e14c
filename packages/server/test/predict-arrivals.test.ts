// The forecast of a restart: real followers on virtual time, against what arithmetic says of them.

import * as fc from "fast-check";
import { verifies } from "@moor/testkit";
import { expect, test } from "vitest";
import { predictArrivals, type Arrivals, type PredictionInput } from "../src/drains/predict-arrivals.ts";
import { planSpread } from "../src/drains/spread-plan.ts";
import { checkProperty } from "./support/check-property.ts";

const FILE = "packages/server/test/predict-arrivals.test.ts";

function predict(links: number, more: Partial<PredictionInput> & { readonly acceptRate?: number } = {}) {
  const { acceptRate = 500, isServedMeanwhile = false, ...rest } = more;
  const plan = planSpread({ links, acceptRate, isServedMeanwhile });
  return predictArrivals({ plan, gapMs: 0, isHandedOver: true, isServedMeanwhile, ...rest });
}

const totalOf = ({ perSecond }: Arrivals) => perSecond.reduce((sum, rate) => sum + rate, 0);

verifies(
  "L16",
  "clients told a spread come back evenly over it: hardly above the mean, and none after its end",
  () => {
    const { spread } = predict(10_000);
    expect(totalOf(spread)).toBeCloseTo(10_000, 6);
    expect(spread.perSecond.length).toBe(20);
    expect(spread.peakToMean).toBeLessThan(1.25);
    expect(spread.p50Ms).toBeGreaterThan(9_000);
    expect(spread.p50Ms).toBeLessThan(11_000);
    expect(spread.maxMs).toBeLessThanOrEqual(20_000);
    expect([spread.failedDials, spread.missing]).toEqual([0, 0]);
  },
);

test("clients that know no spread all come within half a second", () => {
  const { naive } = predict(10_000);
  expect(naive.perSecond).toEqual([10_000]);
  expect(naive.maxMs).toBeLessThanOrEqual(500);
});

verifies("L24", "waves come back one after the other, each over its own spread", () => {
  const { spread } = predict(75_000, { isServedMeanwhile: true });
  expect(spread.perSecond.length).toBe(180);
  expect(spread.peakToMean).toBeLessThan(1.5);
  for (const wave of [0, 1, 2]) {
    const part = spread.perSecond.slice(wave * 60, wave * 60 + 60).reduce((sum, rate) => sum + rate, 0);
    expect(part).toBeCloseTo(25_000, -2);
  }
});

test("dials that wait in a queue are taken in together when the gap is over, none in vain", () => {
  const { spread } = predict(10_000, { gapMs: 4_000 });
  expect(spread.perSecond.slice(0, 4)).toEqual([0, 0, 0, 0]);
  // 4 s of 20 s dialled into the gap, and a fifth second's worth comes by itself.
  expect(spread.perSecond[4]).toBeGreaterThan(2_200);
  expect(spread.perSecond[4]).toBeLessThan(2_800);
  expect(spread.failedDials).toBe(0);
});

test("dials that are refused cost their clients a backoff, and come back as more than the accept rate", () => {
  const { spread, naive } = predict(10_000, { gapMs: 4_000, isHandedOver: false });
  expect(totalOf(spread)).toBeCloseTo(10_000, 6);
  expect(spread.failedDials).toBeGreaterThan(2_000);
  expect(spread.peakPerS).toBeGreaterThan(600);
  expect(spread.peakPerS).toBeLessThan(naive.peakPerS);
  expect(naive.failedDials).toBeGreaterThan(spread.failedDials);
});

test("a queue is not waited in for longer than a dial lasts", () => {
  const { spread } = predict(1_000, { gapMs: 30_000, acceptRate: 50 });
  expect(spread.failedDials).toBeGreaterThan(0);
  expect(spread.missing).toBe(0);
});

test("rates are of all clients, however many are simulated", () => {
  const { spread } = predict(2_000_000, { acceptRate: 20_000, isServedMeanwhile: true });
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
        acceptRate: fc.integer({ min: 20, max: 1_000 }),
        seed: fc.nat(),
      }),
      async ({ links, gapMs, ...more }) => {
        const { spread, naive } = predict(links, { gapMs, ...more });
        for (const arrivals of [spread, naive]) {
          expect(totalOf(arrivals)).toBeCloseTo(links, 6);
          expect(arrivals.missing).toBe(0);
          expect(arrivals.perSecond.findIndex((rate) => rate > 0)).toBeGreaterThanOrEqual(
            Math.floor(gapMs / 1000),
          );
        }
        if (more.isHandedOver && gapMs <= 15_000) expect(spread.failedDials + naive.failedDials).toBe(0);
      },
    ),
    200,
    FILE,
  ),
);
