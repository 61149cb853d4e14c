// Sleep as Node can notice it: the uptime counts on while the machine sleeps, the monotonic clock stands still.
//
// Spec: L14, L32.
// I1  The wall clock is not asked: it may be set to anything at any time.

import { uptime } from "node:os";
import type { Runtime, TimerHandle } from "@moor/runtime";
import { WAKE_LATE_MS } from "@moor/protocol";
import type { WakeSource } from "./wake-source.ts";

/** Time between two looks. Milliseconds. */
const LOOK_INTERVAL_MS = 5_000;

/** Tells of a sleep of five seconds or more, within five seconds of its end. */
export function createUptimeWakeSource(runtime: Runtime, uptimeMs = () => uptime() * 1_000): WakeSource {
  return {
    watch: (onWake) => {
      const asleepMs = () => uptimeMs() - runtime.monotonicMs();
      let before = asleepMs();
      let timer: TimerHandle | undefined;
      const look = () => {
        const now = asleepMs();
        if (now - before >= WAKE_LATE_MS) onWake("woke");
        before = now;
        timer = runtime.schedule(LOOK_INTERVAL_MS, look);
      };
      timer = runtime.schedule(LOOK_INTERVAL_MS, look);
      return () => runtime.cancel(timer);
    },
  };
}
