// The real Runtime: Node's clocks, timers and random sources. The only place in Moor that touches them.
//
// I1  A random byte is given out once, and the pool keeps no copy of it.

import { randomBytes, randomFillSync } from "node:crypto";
import { platformDelayMs, type Runtime, type TimerHandle } from "./runtime.ts";

/** Random bytes fetched at once: asking the system for 12 at a time was 8 % of a busy node's CPU. */
const RANDOM_POOL_BYTES = 4096;

/** A Runtime on this process's real clocks and timers. */
export function createNodeRuntime(): Runtime {
  return {
    monotonicMs: () => performance.now(),
    wallMs: () => Date.now(),
    schedule: (delayMs, run) => ({ timer: setTimeout(run, platformDelayMs(delayMs)) }),
    cancel: (handle: TimerHandle | undefined) => {
      if (handle !== undefined) clearTimeout(handle.timer as NodeJS.Timeout);
    },
    random: () => Math.random(),
    randomBytes: createRandomPool(),
  };
}

/** Gives random bytes from a pool that is refilled from the system's source; large requests go there directly. */
function createRandomPool(): (byteCount: number) => Uint8Array {
  const pool = new Uint8Array(RANDOM_POOL_BYTES);
  let usedBytes = RANDOM_POOL_BYTES;
  return (byteCount) => {
    if (byteCount > RANDOM_POOL_BYTES) return randomBytes(byteCount);
    if (usedBytes + byteCount > RANDOM_POOL_BYTES) {
      randomFillSync(pool);
      usedBytes = 0;
    }
    const given = pool.slice(usedBytes, usedBytes + byteCount);
    pool.fill(0, usedBytes, usedBytes + byteCount);
    usedBytes += byteCount;
    return given;
  };
}
