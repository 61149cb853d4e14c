// The real Runtime where there is no Node: the clocks, timers and random sources that browsers and workers share.

import { platformDelayMs, type Runtime } from "./runtime.ts";

/** The globals it stands on, as every browser, worker and Node has them. */
interface WebGlobals {
  readonly performance: { now(): number };
  readonly crypto: { getRandomValues(bytes: Uint8Array<ArrayBuffer>): Uint8Array };
  setTimeout(run: () => void, delayMs: number): unknown;
  clearTimeout(timer: unknown): void;
}

/** A Runtime on the clocks and timers of the page or worker it runs in. */
export function createWebRuntime(): Runtime {
  const web = globalThis as unknown as WebGlobals;
  return {
    monotonicMs: () => web.performance.now(),
    wallMs: () => Date.now(),
    // Wrapped: a browser's timer is a number, and a handle is an object.
    schedule: (delayMs, run) => ({ timer: { id: web.setTimeout(run, platformDelayMs(delayMs)) } }),
    cancel: (handle) => {
      if (handle !== undefined) web.clearTimeout((handle.timer as { readonly id: unknown }).id);
    },
    random: () => Math.random(),
    randomBytes: (byteCount) => {
      const bytes = new Uint8Array(byteCount);
      web.crypto.getRandomValues(bytes);
      return bytes;
    },
  };
}
