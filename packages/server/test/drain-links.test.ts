// Closing links after a plan, and the order of a drain, on virtual time.

import { CLOSE_CODE } from "@moor/protocol";
import { VirtualRuntime, verifies } from "@moor/testkit";
import { expect, test } from "vitest";
import { closeLinks, LATE_MS, type CloseCounts } from "../src/drains/close-links.ts";
import type { LinkedClient } from "../src/drains/link-drain-port.ts";
import { runDrain, type DrainSteps } from "../src/drains/run-drain.ts";
import { planSpread, type SpreadPlan } from "../src/drains/spread-plan.ts";
import { FakeLinks } from "./support/fake-links.ts";

const never = new AbortController().signal;

interface Ended<Value> {
  readonly value: Value;
  readonly atMs: number;
}

/** Runs `promise` to its end on virtual time. */
async function finish<Value>(
  runtime: VirtualRuntime,
  promise: Promise<Value>,
  withinMs: number,
): Promise<Ended<Value>> {
  const ends: Ended<Value>[] = [];
  void promise.then((value) => ends.push({ value, atMs: runtime.monotonicMs() }));
  const endMs = runtime.monotonicMs() + withinMs;
  while (ends.length === 0 && runtime.monotonicMs() < endMs) await runtime.advanceAsync(5);
  const [end] = ends;
  if (end === undefined) throw new Error(`not ended within ${withinMs} ms`);
  return end;
}

function close(
  count: number,
  plan: Partial<SpreadPlan>,
  endsAfterMs?: (client: LinkedClient) => number,
  hurry: AbortSignal = never,
) {
  const runtime = new VirtualRuntime(1);
  const links = new FakeLinks(runtime, count, endsAfterMs);
  const whole = { links: count, spreadMs: 2_000, waves: [{ atMs: 0, links: count }], ...plan };
  return { runtime, links, closed: closeLinks(whole, { links, runtime, hurry }) };
}

verifies(
  ["L3", "L24"],
  "every link is closed with 4503 and the one spread in decimal, a few at a time, and it ends when the last has ended",
  async () => {
    const { runtime, links, closed } = close(5_000, { spreadMs: 10_000 });
    const { value, atMs } = await finish(runtime, closed, 10_000);
    expect(value).toEqual<CloseCounts>({ closed: 5_000, destroyed: 0 });
    expect(new Set(links.closes.map(({ code, reason }) => `${code} ${reason}`))).toEqual(
      new Set([`${CLOSE_CODE.restart} 10000`]),
    );
    const perInstant = Map.groupBy(links.closes, (begun) => begun.atMs);
    expect(Math.max(...[...perInstant.values()].map((batch) => batch.length))).toBeLessThanOrEqual(200);
    expect(atMs).toBeLessThan(1_000);
    expect(links.links()).toBe(0);
  },
);

verifies(
  "L24",
  "waves are closed one spread apart, and whoever came meanwhile goes with the last",
  async () => {
    const { runtime, links, closed } = close(100, {
      spreadMs: 60_000,
      waves: [
        { atMs: 0, links: 34 },
        { atMs: 60_000, links: 33 },
        { atMs: 120_000, links: 33 },
      ],
    });
    await runtime.advanceAsync(1_000);
    expect(links.closes.length).toBe(34);
    links.add({ home: "late", role: "app", app: "a1" });
    await runtime.advanceAsync(58_000);
    expect(links.closes.length).toBe(34);
    await runtime.advanceAsync(2_000);
    expect(links.closes.length).toBe(67);
    const { value } = await finish(runtime, closed, 120_000);
    expect(value).toEqual({ closed: 101, destroyed: 0 });
  },
);

verifies(
  "L24",
  "a link that does not let go is destroyed 5 s after its close, while waves go on",
  async () => {
    const isStuck = ({ home }: LinkedClient) => home === "h3" || home === "h40";
    const { runtime, links, closed } = close(
      60,
      {
        spreadMs: 60_000,
        waves: [
          { atMs: 0, links: 30 },
          { atMs: 60_000, links: 30 },
        ],
      },
      (client) => (isStuck(client) ? Infinity : 20),
    );
    const { value, atMs } = await finish(runtime, closed, 120_000);
    expect(value).toEqual({ closed: 60, destroyed: 2 });
    const begunAt = new Map(links.closes.map(({ client, atMs: begun }) => [client.home, begun]));
    for (const { client, atMs: destroyedAt } of links.destroyed) {
      const age = destroyedAt - (begunAt.get(client.home) ?? 0);
      expect(age).toBeGreaterThanOrEqual(LATE_MS);
      expect(age).toBeLessThanOrEqual(LATE_MS + 500);
    }
    expect(atMs).toBeGreaterThan(60_000 + LATE_MS - 1);
  },
);

test("in a hurry the waves that are left are closed at once, and nobody is waited for", async () => {
  const hurry = new AbortController();
  const { runtime, links, closed } = close(
    300,
    {
      spreadMs: 60_000,
      waves: [
        { atMs: 0, links: 100 },
        { atMs: 60_000, links: 100 },
        { atMs: 120_000, links: 100 },
      ],
    },
    () => Infinity,
    hurry.signal,
  );
  await runtime.advanceAsync(100);
  expect(links.closes.length).toBe(100);
  hurry.abort();
  const { value } = await finish(runtime, closed, 1_000);
  expect(value.closed).toBe(300);
  expect(links.links()).toBe(0);
});

interface DrainScene extends Partial<DrainSteps> {
  readonly links?: FakeLinks;
  /** When the calls and one-shots that are held end by themselves. */
  readonly callsEndAtMs?: number;
  readonly oneShotsEndAtMs?: number;
}

/** A drain of 10 links; gives the order of what happened. */
function drain({ callsEndAtMs = 0, oneShotsEndAtMs = 0, ...options }: DrainScene) {
  const runtime = options.links === undefined ? new VirtualRuntime(1) : (options.runtime as VirtualRuntime);
  const links = options.links ?? new FakeLinks(runtime, 10);
  const events: string[] = [];
  /** Things that end by themselves at some moment, or are given up when their grace is over. */
  const ending = (what: string, endAtMs: number) => (graceMs: number) =>
    new Promise<void>((resolve) => {
      const isInTime = endAtMs - runtime.monotonicMs() <= graceMs;
      const end = () => {
        const event = `${what} ${isInTime ? "ended" : "given up"}`;
        if (!events.some((earlier) => earlier.startsWith(what))) events.push(event);
        resolve();
      };
      runtime.schedule(Math.min(graceMs, endAtMs - runtime.monotonicMs()), end);
    });
  const drained = runDrain({
    port: "closed",
    isServedMeanwhile: false,
    stopAccepting: async () => void events.push("door closed"),
    finishCalls: ending("calls", callsEndAtMs),
    finishOneShots: ending("one-shots", oneShotsEndAtMs),
    plan: () => {
      events.push("links closed");
      return planSpread({ links: links.links(), acceptRate: 1_000, gapMs: 0, isServedMeanwhile: false });
    },
    graceMs: 70_000,
    hurry: never,
    ...options,
    links,
    runtime,
  });
  return { runtime, links, events, drained };
}

verifies(
  "L24",
  "alone, a node refuses dials at once, lets calls finish, then closes the door and its links last",
  async () => {
    const { runtime, links, events, drained } = drain({ callsEndAtMs: 3_000 });
    await runtime.advanceAsync(0);
    expect([links.refusedAtMs, links.closes.length]).toEqual([0, 0]);
    const { value } = await finish(runtime, drained, 20_000);
    expect(events).toEqual(["calls ended", "door closed", "one-shots ended", "links closed"]);
    expect(value).toEqual({ closed: 10, destroyed: 0 });
  },
);

verifies("L24", "where others take clients in, links are closed while calls finish", async () => {
  const { runtime, events, drained } = drain({ callsEndAtMs: 3_000, isServedMeanwhile: true });
  const { atMs } = await finish(runtime, drained, 20_000);
  expect(events).toEqual(["one-shots ended", "links closed", "calls ended"]);
  expect(atMs).toBeGreaterThanOrEqual(3_000);
});

verifies(
  "L24",
  "where another process has taken the port over, the door is closed first of all",
  async () => {
    const { runtime, events, drained } = drain({ callsEndAtMs: 3_000, port: "taken-over" });
    await finish(runtime, drained, 20_000);
    expect(events).toEqual(["door closed", "calls ended", "one-shots ended", "links closed"]);
  },
);

verifies(
  "L24",
  "where dials wait in a queue, they are served until the door closes, before the first link",
  async () => {
    const { runtime, links, events, drained } = drain({ callsEndAtMs: 3_000, port: "queued" });
    await runtime.advanceAsync(2_900);
    expect(links.refusedAtMs).toBeUndefined();
    await finish(runtime, drained, 20_000);
    expect(events).toEqual(["calls ended", "door closed", "one-shots ended", "links closed"]);
    expect(links.refusedAtMs).toBeGreaterThanOrEqual(3_000);
  },
);

test("a second signal ends the waiting for calls", async () => {
  const hurry = new AbortController();
  const { runtime, events, drained } = drain({
    callsEndAtMs: 60_000,
    oneShotsEndAtMs: 60_000,
    hurry: hurry.signal,
  });
  await runtime.advanceAsync(100);
  hurry.abort();
  const { atMs } = await finish(runtime, drained, 2_000);
  expect(events).toEqual(["calls given up", "door closed", "one-shots given up", "links closed"]);
  expect(atMs).toBeLessThan(2_000);
});

test("without links nothing is planned or noted", async () => {
  const runtime = new VirtualRuntime(1);
  const { events, drained } = drain({ runtime, links: new FakeLinks(runtime, 0) });
  const { value } = await finish(runtime, drained, 1_000);
  expect(events).toEqual(["calls ended", "door closed", "one-shots ended"]);
  expect(value).toEqual({ closed: 0, destroyed: 0 });
});

verifies(
  "L24",
  "one-shots have their time before a link is closed: a few seconds where others serve, else the grace",
  async () => {
    const alone = drain({ oneShotsEndAtMs: 20_000 });
    await finish(alone.runtime, alone.drained, 30_000);
    expect(alone.events).toEqual(["calls ended", "door closed", "one-shots ended", "links closed"]);
    const served = drain({ oneShotsEndAtMs: 20_000, isServedMeanwhile: true });
    await finish(served.runtime, served.drained, 10_000);
    expect(served.events).toEqual(["calls ended", "one-shots given up", "links closed"]);
  },
);
