// What a node learns from its handshakes about how many it can accept, whatever else its event loop does.

import * as fc from "fast-check";
import { VirtualRuntime } from "@moor/testkit";
import { expect, test } from "vitest";
import { HANDSHAKE_MS_AT_FIRST, HandshakeMeter } from "../src/drains/handshake-meter.ts";
import { checkProperty } from "./support/check-property.ts";

/** What one dial after the other makes a loop do. */
interface Dials {
  readonly count: number;
  readonly everyMs: number;
  /** Work of each, and of everything else in that time. Milliseconds. */
  readonly workMs: number;
  readonly otherMs?: number;
  /** Bad hellos for each good one, and the work of each. */
  readonly bad?: number;
  readonly badWorkMs?: number;
}

/** A meter and its loop, which is never busy for longer than time has passed. */
function createLoop() {
  const runtime = new VirtualRuntime(1);
  let busyMs = 0;
  const meter = new HandshakeMeter({ runtime, busyMs: () => busyMs });
  const dial = ({ count, everyMs, workMs, otherMs = 0, bad = 0, badWorkMs = 0 }: Dials) => {
    for (let at = 0; at < count; at += 1) {
      runtime.advance(everyMs);
      busyMs += Math.min(everyMs, workMs + otherMs + bad * badWorkMs);
      for (let wrong = 0; wrong < bad; wrong += 1) meter.noteFailed();
      meter.noteVerified();
    }
  };
  return { meter, dial };
}

const AT_FIRST = 1000 / HANDSHAKE_MS_AT_FIRST;

test("before a handshake was measured the accept rate is the documented one", () => {
  const { meter } = createLoop();
  expect([meter.acceptRate, meter.isMeasured]).toEqual([AT_FIRST, false]);
});

test("a storm teaches what a handshake costs: the rate is what fills the loop", () => {
  const { meter, dial } = createLoop();
  dial({ count: 200, everyMs: 5, workMs: 2 });
  expect(meter.isMeasured).toBe(true);
  expect(meter.acceptRate).toBeCloseTo(500, 0);
});

test("a loop that is never idle teaches what it got done", () => {
  const { meter, dial } = createLoop();
  dial({ count: 400, everyMs: 4, workMs: 40 });
  expect(meter.acceptRate).toBeCloseTo(250, 0);
});

test("now and then a handshake among other work teaches nothing", () => {
  const { meter, dial } = createLoop();
  dial({ count: 400, everyMs: 50, workMs: 1, otherMs: 45 });
  expect([meter.acceptRate, meter.isMeasured]).toEqual([AT_FIRST, false]);
});

test("a flood of bad hellos, with good ones in between, changes nothing", () => {
  const { meter, dial } = createLoop();
  dial({ count: 500, everyMs: 5, workMs: 2 });
  const before = meter.acceptRate;
  dial({ count: 600, everyMs: 50, workMs: 2, bad: 25, badWorkMs: 1.5 });
  dial({ count: 600, everyMs: 5, workMs: 2, bad: 3, badWorkMs: 1 });
  expect(meter.acceptRate).toBe(before);
});

test("a flood before anything was measured leaves the start value", () => {
  const { meter, dial } = createLoop();
  dial({ count: 600, everyMs: 50, workMs: 2, bad: 25, badWorkMs: 1.5 });
  dial({ count: 600, everyMs: 5, workMs: 2, bad: 3, badWorkMs: 1 });
  expect([meter.acceptRate, meter.isMeasured]).toEqual([AT_FIRST, false]);
});

test("what the loop did before a storm is not charged to its handshakes", () => {
  const { meter, dial } = createLoop();
  dial({ count: 100, everyMs: 100, workMs: 1, otherMs: 40 });
  dial({ count: 400, everyMs: 4, workMs: 1.5, otherMs: 1.6 });
  expect(meter.acceptRate).toBeGreaterThan(600);
  expect(meter.acceptRate).toBeLessThan(700);
});

test("a burst and the quiet after it teach nothing of either", () => {
  const { meter, dial } = createLoop();
  dial({ count: 200, everyMs: 1, workMs: 1 });
  dial({ count: 1, everyMs: 60_000, workMs: 1 });
  expect([meter.acceptRate, meter.isMeasured]).toEqual([AT_FIRST, false]);
});

test("newer storms weigh more, one alone does not turn the estimate over", () => {
  const { meter, dial } = createLoop();
  dial({ count: 51, everyMs: 10, workMs: 1 });
  dial({ count: 51, everyMs: 10, workMs: 4 });
  expect(meter.acceptRate).toBeLessThan(900);
  expect(meter.acceptRate).toBeGreaterThan(300);
  for (let storm = 0; storm < 20; storm += 1) dial({ count: 51, everyMs: 10, workMs: 4 });
  expect(meter.acceptRate).toBeCloseTo(250, 0);
});

test("what the process before has measured is recalled, and gives way to what this one measures", () => {
  const { meter, dial } = createLoop();
  meter.recall(Number.NaN);
  meter.recall(-1);
  expect(meter.isMeasured).toBe(false);
  meter.recall(80);
  expect(meter.acceptRate).toBeCloseTo(80, 6);
  expect(meter.isMeasured).toBe(true);
  for (let storm = 0; storm < 40; storm += 1) dial({ count: 51, everyMs: 10, workMs: 2 });
  expect(meter.acceptRate).toBeCloseTo(500, 0);
  meter.recall(80);
  expect(meter.acceptRate).toBeCloseTo(500, 0);
});

test("whatever comes, the rate stays from 50 to 20,000; without floods and other work it is never above the truth", () =>
  checkProperty(
    fc.asyncProperty(
      fc.double({ min: 0.05, max: 15, noNaN: true }),
      fc.array(
        fc.record({
          count: fc.integer({ min: 1, max: 200 }),
          everyMs: fc.double({ min: 0.1, max: 200, noNaN: true }),
          otherMs: fc.double({ min: 0, max: 50, noNaN: true }),
          bad: fc.nat(3),
          badWorkMs: fc.double({ min: 0, max: 5, noNaN: true }),
        }),
        { maxLength: 12 },
      ),
      async (workMs, rounds) => {
        const wild = createLoop();
        const calm = createLoop();
        for (const round of rounds) {
          wild.dial({ ...round, workMs });
          expect(wild.meter.acceptRate).toBeGreaterThanOrEqual(50);
          expect(wild.meter.acceptRate).toBeLessThanOrEqual(20_000);
          // As fast as the loop can.
          const everyMs = Math.max(round.everyMs, workMs);
          calm.dial({ count: round.count, everyMs, workMs });
          const { isMeasured, acceptRate } = calm.meter;
          if (isMeasured) expect(acceptRate).toBeCloseTo(Math.max(50, 1000 / workMs), 3);
        }
      },
    ),
    200,
    "packages/server/test/handshake-meter.test.ts",
  ));
