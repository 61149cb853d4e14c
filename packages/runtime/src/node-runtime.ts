// The real Runtime: Node's clocks, timers and random sources. The only place in Moor that touches them.

import { randomBytes } from "node:crypto";
import type { Runtime, TimerHandle } from "./runtime.ts";

/** Longest delay a Node timer takes; a larger one would fire at once. Milliseconds. */
const TIMER_DELAY_MAX_MS = 2 ** 31 - 1;

/** A Runtime on this process's real clocks and timers. */
export function createNodeRuntime(): Runtime {
  return {
    monotonicMs: () => performance.now(),
    wallMs: () => Date.now(),
    schedule: (delayMs, run) => {
      const clampedMs = Math.min(Math.max(delayMs, 0), TIMER_DELAY_MAX_MS);
      return { timer: setTimeout(run, clampedMs) };
    },
    cancel: (handle: TimerHandle | undefined) => {
      if (handle !== undefined) clearTimeout(handle.timer as NodeJS.Timeout);
    },
    random: () => Math.random(),
    randomBytes: (byteCount) => randomBytes(byteCount),
  };
}
