// Leases on virtual time: renewed every third, aged by watching, given up by a node that was replaced.

import { ProtocolError } from "@moor/protocol";
import { createLogger } from "@moor/runtime";
import { VirtualRuntime } from "@moor/testkit";
import { expect, test } from "vitest";
import type { ShardId, ShardRecord } from "../src/directory/records.ts";
import { LeaseRenewer } from "../src/liveness/lease-renewer.ts";
import { LeaseWatch } from "../src/liveness/lease-watch.ts";

const S1 = "s1" as ShardId;

interface Renewal {
  readonly atMs: number;
  readonly shards: readonly string[];
}

/** A renewer against a directory that `answer` stands for. */
function renewing(answer: (renewal: Renewal) => Promise<void>) {
  const runtime = new VirtualRuntime();
  const renewals: Renewal[] = [];
  const events: string[] = [];
  let replacedCount = 0;
  const renewer = new LeaseRenewer({
    directory: {
      renewLeases: ({ shards }) => {
        const renewal = { atMs: runtime.monotonicMs(), shards };
        renewals.push(renewal);
        return answer(renewal);
      },
    },
    replica: { seq: 3 },
    node: "a",
    incarnation: "a1",
    shards: [S1],
    runtime,
    logger: createLogger({
      level: "debug",
      destination: { write: (line) => void events.push((JSON.parse(line) as { event: string }).event) },
    }),
    onReplaced: () => {
      replacedCount += 1;
    },
  });
  return { runtime, renewals, events, renewer, replacedCount: () => replacedCount };
}

test("a lease is renewed at once and every 5 s, until the node stops", async () => {
  const { runtime, renewals, renewer } = renewing(async () => {});
  renewer.start();
  await runtime.advanceAsync(12_000);
  expect(renewals).toEqual([0, 5_000, 10_000].map((atMs) => ({ atMs, shards: ["s1"] })));
  expect(renewer.ageMs).toBe(2_000);
  renewer.stop();
  await runtime.advanceAsync(60_000);
  expect(renewals.length).toBe(3);
  expect(runtime.pendingCount).toBe(0);
});

test("the holder's age counts from when a renewal was sent, and a slow directory is asked once at a time", async () => {
  let under = 0;
  const { runtime, renewals, renewer } = renewing(async () => {
    under += 1;
    expect(under).toBe(1);
    const { promise, resolve } = Promise.withResolvers<void>();
    runtime.schedule(7_000, resolve);
    await promise;
    under -= 1;
  });
  renewer.start();
  await runtime.advanceAsync(6_999);
  expect(renewer.ageMs).toBeUndefined();
  await runtime.advanceAsync(1);
  expect(renewer.ageMs).toBe(7_000);
  expect(renewals.map(({ atMs }) => atMs)).toEqual([0, 7_000]);
  renewer.stop();
});

test("a directory that is away is told once, retried, and its return is told too", async () => {
  let isAway = true;
  const { runtime, renewals, events, renewer } = renewing(() =>
    isAway ? Promise.reject(new ProtocolError("directory_unavailable")) : Promise.resolve(),
  );
  renewer.start();
  await runtime.advanceAsync(20_000);
  isAway = false;
  await runtime.advanceAsync(5_000);
  expect(renewals.length).toBe(6);
  expect(events).toEqual(["lease-renewal-failed", "lease-renewed-again"]);
  renewer.stop();
});

test("a node that another start of itself has replaced says so once and renews no more", async () => {
  const { runtime, renewals, events, renewer, replacedCount } = renewing(() =>
    Promise.reject(new ProtocolError("conflict")),
  );
  renewer.start();
  await runtime.advanceAsync(60_000);
  expect([renewals.length, replacedCount(), events]).toEqual([1, 1, ["node-replaced"]]);
});

test("a lease is as old as its counter stood still here, whatever the wall clock does, and late beyond 15 s", () => {
  const runtime = new VirtualRuntime();
  let leaseCounter = 0;
  const shard = (): ShardRecord => ({ id: S1, node: "a", publicHost: "h", state: "live", leaseCounter });
  const watch = new LeaseWatch({ replica: { shards: () => [shard()] }, runtime });
  expect(watch.ageMs(S1)).toBeUndefined();
  watch.start();
  runtime.advance(9_000);
  runtime.jumpWallClock(3_600_000);
  expect([watch.ageMs(S1), watch.isLate(S1)]).toEqual([9_000, false]);
  leaseCounter += 1;
  runtime.advance(1_000);
  expect(watch.ageMs(S1)).toBe(0);
  runtime.advance(15_000);
  expect(watch.isLate(S1)).toBe(false);
  runtime.advance(1);
  expect(watch.isLate(S1)).toBe(true);
  leaseCounter += 1;
  watch.look();
  expect(watch.isLate(S1)).toBe(false);
  watch.stop();
  expect(runtime.pendingCount).toBe(0);
});
