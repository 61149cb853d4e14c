// What every part of Moor may ask of the machine it runs on: time, timers and randomness.
//
// Cores take a Runtime and never touch Date, Math.random or setTimeout themselves, so that the same code runs
// on real time (createNodeRuntime) and on virtual time (VirtualRuntime in the testkit).
//
// I1  monotonicMs never goes back; wallMs may jump either way. Deadlines are monotonic.
// I2  A cancelled timer never fires; cancelling twice or after firing is allowed and does nothing.
// I3  A timer never fires early by monotonicMs: whoever waits for a deadline finds it passed.

/** A scheduled call that has not fired yet. Opaque; only good for `Runtime.cancel`. */
export interface TimerHandle {
  readonly timer: object;
}

export interface Runtime {
  /** Milliseconds since an arbitrary start, never going back, with sub-millisecond fractions. */
  monotonicMs(): number;
  /** Milliseconds since 1970-01-01T00:00:00Z as the host believes. May jump. */
  wallMs(): number;
  /** Calls `run` once, `delayMs` milliseconds from now or a little later (below 0 counts as 0, above 2^31 − 1 as 2^31 − 1). */
  schedule(delayMs: number, run: () => void): TimerHandle;
  /** Makes sure a scheduled call does not happen any more. */
  cancel(handle: TimerHandle | undefined): void;
  /** Uniform in [0, 1). For jitter, never for secrets. */
  random(): number;
  /** Cryptographically strong random bytes. */
  randomBytes(byteCount: number): Uint8Array;
}

/** Longest delay that the timers of Node and browsers take; a larger one would fire at once. Milliseconds. */
const TIMER_DELAY_MAX_MS = 2 ** 31 - 1;

/**
 * What to ask a platform's timer for, so that it does not fire before `delayMs` have passed: they count whole milliseconds
 * of a clock that is read in whole milliseconds, and fire up to one too early.
 */
export function platformDelayMs(delayMs: number): number {
  return delayMs <= 0 ? 0 : Math.min(Math.ceil(delayMs) + 1, TIMER_DELAY_MAX_MS);
}

/** Resolves after `delayMs` milliseconds, or at once with `"cancelled"` when `signal` fires first. */
export function sleep(
  runtime: Runtime,
  delayMs: number,
  signal?: AbortSignal,
): Promise<"elapsed" | "cancelled"> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve("cancelled");
    const onAbort = () => {
      runtime.cancel(handle);
      resolve("cancelled");
    };
    const handle = runtime.schedule(delayMs, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve("elapsed");
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
