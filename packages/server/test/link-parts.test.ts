// The small parts of the link plane: wheel, allowances, signature queue, client addresses.

import type { Runtime } from "@moor/runtime";
import { verifies, VirtualRuntime } from "@moor/testkit";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { clientAddress, parseProxies } from "../src/entry/client-address.ts";
import { DueWheel, type DueItem } from "../src/entry/link/due-wheel.ts";
import { HomeIndex } from "../src/entry/link/home-index.ts";
import { RateBuckets } from "../src/entry/link/rate-buckets.ts";
import { SignatureQueue } from "../src/entry/link/signature-queue.ts";
import { checkProperty } from "./support/check-property.ts";

class Item implements DueItem {
  wheelTick = 0;
  readonly wokenAtMs: number[] = [];
  next: number | undefined;

  wake(nowMs: number): number | undefined {
    this.wokenAtMs.push(nowMs);
    const { next } = this;
    this.next = undefined;
    return next;
  }
}

test("a wheel wakes each item within a tick of its time, whatever was asked before", async () => {
  const delays = fc.array(fc.integer({ min: 0, max: 30_000 }), { minLength: 1, maxLength: 20 });
  await checkProperty(
    fc.property(fc.array(delays, { minLength: 1, maxLength: 20 }), (items) => {
      const runtime = new VirtualRuntime();
      const wheel = new DueWheel<Item>(runtime, { tickMs: 500, slots: 128 });
      const made = items.map((dues) => {
        const item = new Item();
        for (const due of dues) wheel.add(item, due);
        return { item, dueMs: Math.min(...dues) };
      });
      runtime.advance(31_000);
      for (const { item, dueMs } of made) {
        expect(item.wokenAtMs).toHaveLength(1);
        expect(item.wokenAtMs[0]).toBeGreaterThanOrEqual(dueMs);
        expect(item.wokenAtMs[0]).toBeLessThanOrEqual(dueMs + 1_000);
      }
      expect(runtime.pendingCount).toBe(items.flat().every((due) => due < 30_000) ? 0 : runtime.pendingCount);
    }),
    100,
    "packages/server/test/link-parts.test.ts",
  );
});

test("a wheel that was stalled for an hour loses nobody, and what is far away is looked at early", () => {
  const runtime = new VirtualRuntime();
  const wheel = new DueWheel<Item>(runtime, { tickMs: 500, slots: 8 });
  const far = new Item();
  far.next = 60_000;
  wheel.add(far, 60_000);
  runtime.advance(4_000);
  expect(far.wokenAtMs).toEqual([3_500]); // seven ticks ahead is as far as it sees
  const items = Array.from({ length: 20 }, (_, at) => {
    const item = new Item();
    wheel.add(item, 4_000 + at * 100);
    return item;
  });
  runtime.advance(3_600_000);
  expect(items.every(({ wokenAtMs }) => wokenAtMs.length === 1)).toBe(true);
  expect(runtime.pendingCount).toBe(0);
});

test("after a stall what is due is looked at one tick later, when what waited in the sockets was read", () => {
  let nowMs = 0;
  const timers: { readonly dueMs: number; readonly run: () => void }[] = [];
  const runtime: Pick<Runtime, "monotonicMs" | "schedule" | "cancel"> = {
    monotonicMs: () => nowMs,
    cancel: () => {},
    schedule: (delayMs: number, run: () => void) => {
      timers.push({ dueMs: nowMs + delayMs, run });
      return { timer: {} };
    },
  };
  /** The process gets to run at `atMs`, and not before. */
  const runAt = (atMs: number) => {
    nowMs = atMs;
    for (const timer of timers.splice(0)) {
      if (timer.dueMs <= nowMs) timer.run();
      else timers.push(timer);
    }
  };
  const wheel = new DueWheel<Item>(runtime, { tickMs: 500, slots: 128 });
  const item = new Item();
  wheel.add(item, 1_000);
  for (const atMs of [500, 1_000]) runAt(atMs);
  expect(item.wokenAtMs).toEqual([1_000]);
  const silent = new Item();
  wheel.add(silent, 2_000);
  runAt(90_000); // SIGSTOP, or a machine that was paused
  expect(silent.wokenAtMs).toEqual([]);
  runAt(90_500);
  expect(silent.wokenAtMs).toEqual([90_500]);
});

test("an allowance is used up, comes back with time, and is forgotten when it is whole", () => {
  const buckets = new RateBuckets<string>({ capacity: 2, perS: 1 }, 2);
  expect([0, 0, 0].map(() => buckets.take("a", 0))).toEqual([0, 0, 1_000]);
  expect(buckets.take("b", 0)).toBe(0);
  expect(buckets.take("a", 500)).toBe(500);
  expect(buckets.take("a", 1_000)).toBe(0);
  expect(buckets.take("c", 10_000)).toBe(0);
  expect(buckets.size).toBe(1);
  buckets.take("d", 10_000);
  buckets.take("e", 10_000);
  expect(buckets.size).toBe(2);
});

verifies("L25", "addresses without end cost little each: room is made for many of them at a time", () => {
  const buckets = new RateBuckets<number>({ capacity: 10, perS: 0.1 }, 800);
  let rooms = 0;
  let size = 0;
  for (let address = 0; address < 8_000; address += 1) {
    buckets.take(address, address);
    if (buckets.size <= size) rooms += 1;
    size = buckets.size;
    expect(size).toBeLessThanOrEqual(800);
  }
  expect(rooms).toBeLessThanOrEqual(8_000 / 100);
  // Who came last is remembered.
  expect(buckets.size).toBeGreaterThanOrEqual(700);
  for (let taken = 1; taken < 10; taken += 1) expect(buckets.take(7_999, 8_000)).toBe(0);
  expect(buckets.take(7_999, 8_000)).toBeGreaterThan(0);
});

verifies(
  "L25",
  "of the addresses that wait for a signature each gets its turn, however much one of them floods",
  () => {
    const queue = new SignatureQueue({ runningMax: 1, waitingMax: 100, perAddressMax: 50 });
    const order: string[] = [];
    const answers: ((isValid: boolean) => void)[] = [];
    const submit = (address: string) =>
      queue.submit({
        address,
        start: (answer) => void answers.push(answer),
        done: () => void order.push(address),
      });
    for (let at = 0; at < 40; at += 1) submit("flood");
    submit("good");
    submit("other");
    submit("good");
    while (answers.length > 0) answers.shift()?.(true);
    expect(order.indexOf("good")).toBeLessThanOrEqual(2);
    expect(order.indexOf("other")).toBeLessThanOrEqual(3);
    expect(order.lastIndexOf("good")).toBeLessThanOrEqual(5);
    expect(order).toHaveLength(43);
    expect(queue.size).toBe(0);
  },
);

test("a queue of signatures refuses beyond its bounds, in all and for one address", () => {
  const queue = new SignatureQueue({ runningMax: 1, waitingMax: 5, perAddressMax: 3 });
  const submit = (address: string) => queue.submit({ address, start: () => {}, done: () => {} });
  expect(["a", "a", "a", "a", "a"].map(submit)).toEqual([true, true, true, true, false]);
  expect(["b", "b", "b"].map(submit)).toEqual([true, true, false]);
});

verifies("L25", "the client address is the connection's, unless a configured proxy names another", () => {
  const proxies = parseProxies(["10.0.0.0/8", "::1", "192.0.2.7"]);
  if (proxies === undefined) throw new Error("no list");
  const cases: readonly [string | undefined, readonly string[], string][] = [
    ["203.0.113.5", [], "203.0.113.5"],
    ["203.0.113.5", ["198.51.100.1"], "203.0.113.5"], // its own word
    ["10.1.2.3", ["198.51.100.1"], "198.51.100.1"],
    ["10.1.2.3", ["1.1.1.1, 198.51.100.1"], "198.51.100.1"],
    ["10.1.2.3", ["1.1.1.1", "198.51.100.1, 192.0.2.7"], "198.51.100.1"],
    ["10.1.2.3", ["nonsense"], "10.1.2.3"],
    ["10.1.2.3", ["6.6.6.6, nonsense, 192.0.2.7"], "192.0.2.7"],
    ["10.1.2.3", [], "10.1.2.3"],
    ["::ffff:10.1.2.3", ["198.51.100.1:4711"], "198.51.100.1"],
    ["::1", ["[2001:db8:1:2:3:4:5:6]:99"], "2001:0db8:0001:0002::/64"],
    ["2001:db8::9", [], "2001:0db8:0000:0000::/64"],
    ["fe80::1%eth0", [], "fe80:0000:0000:0000::/64"],
    [undefined, ["198.51.100.1"], "unknown"],
  ];
  for (const [remote, forwarded, address] of cases) {
    expect(clientAddress(remote, forwarded, proxies)).toBe(address);
  }
  for (const bad of ["10.0.0.0/33", "host", "10.0.0.0/8/8", "::1/129", "10.0.0.0/x", ""]) {
    expect(parseProxies([bad])).toBeUndefined();
  }
});

test("an index finds one item or several, and forgets them", () => {
  const index = new HomeIndex<object>();
  const home = "h" as never;
  const [a, b] = [{}, {}];
  index.add(home, a);
  expect(index.of(home)).toEqual([a]);
  index.add(home, b);
  expect(index.of(home)).toEqual([a, b]);
  index.remove(home, a);
  index.remove(home, a);
  expect(index.of(home)).toEqual([b]);
  index.remove(home, b);
  expect(index.of(home)).toEqual([]);
});
