import type { PollFailure, PollResult, PollWish } from "@moor/client";
import { VirtualRuntime, verifies } from "@moor/testkit";
import { expect } from "vitest";
import { runPollLoop, type CommandSink } from "../src/poll-loop.ts";

const SUCCESS: PollResult = { kind: "success", body: new Uint8Array(), commands: [], headAtMs: 0 };

function failed(failure: Partial<PollFailure> = {}, retryAfterMs?: number): PollResult {
  return {
    kind: "failed",
    failure: { kind: "ordinary-error", status: undefined, fault: undefined, ...failure },
    retryAfterMs,
  };
}

/** A loop on virtual time whose polls a test ends one by one. */
function startLoop(options: { freeSlots?: number; pollWaitMs?: number } = {}) {
  const runtime = new VirtualRuntime(7);
  const stopping = new AbortController();
  const wishes: PollWish[] = [];
  const delays: number[] = [];
  let end: ((result: PollResult) => void) | undefined;
  let onFreed: (() => void) | undefined;
  const sink = {
    freeSlots: options.freeSlots ?? 10,
    accepted: 0,
    accept: () => void (sink.accepted += 1),
    untilChange: () => new Promise<void>((resolve) => (onFreed = resolve)),
  } satisfies CommandSink & { accepted: number };
  let isEnded = false;
  const ports = {
    runtime,
    sink,
    pollWaitMs: options.pollWaitMs ?? 25_000,
    client: {
      poll: (wish: PollWish, signal: AbortSignal) => {
        wishes.push(wish);
        return new Promise<PollResult>((resolve) => {
          end = resolve;
          signal.addEventListener("abort", () => resolve({ kind: "cancelled" }), { once: true });
        });
      },
    },
    onSuccess: () => {},
    onFailure: (_failure: PollFailure, delayMs: number) => void delays.push(delayMs),
  };
  void runPollLoop(ports, stopping.signal).then(() => (isEnded = true));
  return {
    runtime,
    wishes,
    delays,
    sink,
    stop: () => stopping.abort(),
    isEnded: () => isEnded,
    /** Ends the poll in flight, then lets `afterMs` milliseconds pass. */
    answer: async (result: PollResult, afterMs = 0) => {
      end?.(result);
      await runtime.advanceAsync(afterMs);
    },
    free: async (slots: number) => {
      sink.freeSlots = slots;
      onFreed?.();
      await runtime.advanceAsync(0);
    },
  };
}

verifies(
  "T17",
  "the first poll after start or failure asks for no wait to speak of, with the configured deadline",
  async () => {
    const loop = startLoop();
    await loop.answer(SUCCESS);
    await loop.answer(failed(), 10_000);
    await loop.answer(SUCCESS);
    expect(loop.wishes.map(({ waitMs }) => waitMs)).toEqual([1, 25_000, 1, 25_000]);
    expect(new Set(loop.wishes.map(({ deadlineMs }) => deadlineMs))).toEqual(new Set([30_000]));
  },
);

verifies(
  "T17",
  "a poll asks for as many commands as there are free slots, 25 at most, and none is made for none",
  async () => {
    const loop = startLoop({ freeSlots: 400 });
    loop.sink.freeSlots = 3;
    await loop.answer(SUCCESS);
    loop.sink.freeSlots = 0;
    await loop.answer(SUCCESS, 60_000);
    expect(loop.wishes.map(({ limit }) => limit)).toEqual([25, 3]);
    await loop.free(2);
    expect(loop.wishes.map(({ limit }) => limit)).toEqual([25, 3, 2]);
  },
);

verifies("T17", "one poll is in flight at a time", async () => {
  const loop = startLoop();
  await loop.runtime.advanceAsync(500_000);
  expect(loop.wishes).toHaveLength(1);
});

verifies(
  ["R17", "T17"],
  "every failure waits longer, up to the ceiling, and only a success starts again",
  async () => {
    const loop = startLoop();
    for (let failure = 0; failure < 9; failure += 1)
      await loop.answer(failed({ kind: "correction" }), 10_000);
    for (const [failure, delayMs] of loop.delays.entries()) {
      expect(delayMs).toBeGreaterThanOrEqual(200);
      expect(delayMs).toBeLessThanOrEqual(Math.min(10_000, 200 * 2 ** failure));
    }
    expect(loop.delays[0]).toBe(200);
    await loop.answer(SUCCESS);
    await loop.answer(failed());
    expect(loop.delays.at(-1)).toBe(200);
  },
);

verifies("R17", "a Retry-After only lengthens a delay", async () => {
  const loop = startLoop();
  await loop.answer(failed({ status: 503 }, 7_000), 6_999);
  expect(loop.wishes).toHaveLength(1);
  await loop.runtime.advanceAsync(1);
  expect(loop.wishes).toHaveLength(2);
  await loop.answer(failed({ status: 503 }, 0));
  expect(loop.delays[1]).toBeGreaterThanOrEqual(200);
});

verifies(["R17", "T25"], "cancelling ends a sleep at once, and nothing is polled after it", async () => {
  const loop = startLoop();
  await loop.answer(failed({ status: 503 }, 60_000));
  expect(loop.runtime.pendingCount).toBe(1);
  loop.stop();
  await loop.runtime.advanceAsync(0);
  expect(loop.isEnded()).toBe(true);
  expect(loop.runtime.pendingCount).toBe(0);
  expect(loop.wishes).toHaveLength(1);
});

verifies(["R17", "T25"], "cancelling ends a poll at once, without counting it as a failure", async () => {
  const loop = startLoop();
  loop.stop();
  await loop.runtime.advanceAsync(0);
  expect(loop.isEnded()).toBe(true);
  expect(loop.delays).toEqual([]);
});

verifies("T17", "a poll cut short on the way lowers the asked wait, never under five seconds", async () => {
  const loop = startLoop();
  await loop.answer(SUCCESS);
  await loop.runtime.advanceAsync(20_000);
  await loop.answer(failed({ fault: "reset" }), 10_000);
  await loop.answer(SUCCESS);
  expect(loop.wishes.at(-1)?.waitMs).toBe(16_000);
  await loop.runtime.advanceAsync(5_100);
  await loop.answer(failed({ status: 504 }), 10_000);
  await loop.answer(SUCCESS);
  expect(loop.wishes.at(-1)?.waitMs).toBe(5_000);
});

verifies("T17", "an early error, an own deadline or a refusal says nothing about a proxy", async () => {
  const loop = startLoop();
  for (const failure of [{ fault: "reset" }, { fault: "timeout" }, { status: 401 }] as const) {
    await loop.answer(SUCCESS);
    await loop.runtime.advanceAsync(failure.fault === "reset" ? 4_999 : 20_000);
    await loop.answer(failed(failure), 10_000);
  }
  await loop.answer(SUCCESS);
  expect(loop.wishes.at(-1)?.waitMs).toBe(25_000);
});

verifies("T17", "a lowered wait is tried at full length again after a hundred whole polls", async () => {
  const loop = startLoop();
  await loop.answer(SUCCESS);
  await loop.runtime.advanceAsync(10_000);
  await loop.answer(failed({ fault: "reset" }), 200);
  for (let poll = 0; poll < 101; poll += 1) {
    expect(loop.wishes.at(-1)?.waitMs).toBe(poll === 0 ? 1 : 8_000);
    await loop.runtime.advanceAsync(poll === 0 ? 0 : 8_000);
    await loop.answer(SUCCESS);
  }
  expect(loop.wishes.at(-1)?.waitMs).toBe(25_000);
});
