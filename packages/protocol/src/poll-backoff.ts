// How long a client waits after a failed poll.
// Spec: R17.   Pure: the random number is an argument.
//
// I1  delay n = 200 ms + U·(min(10 s, 200 ms·2^n) − 200 ms), n counted from 0 since the last success: 200–10_000 ms.
// I2  A valid Retry-After only lengthens a delay. I3  Corrections count as failures; nothing but success resets n.

import { BACKOFF_BASE_MS, BACKOFF_CEILING_MS } from "./limits.ts";

/** Failed polls since the last success. */
export interface PollBackoff {
  readonly failures: number;
}

/** What a failure's delay depends on beside the failures before it. */
export interface FailedPoll {
  /** Uniform in [0, 1). */
  readonly random: number;
  /** What the answer asked for, milliseconds, as parseRetryAfter gives it. */
  readonly retryAfterMs?: number | undefined;
}

/** The state before any poll. */
export function createPollBackoff(): PollBackoff {
  return { failures: 0 };
}

/** Counts a poll that ended in anything but success or cancellation; `delayMs` is the wait before the next one. */
export function backoffAfterFailure(
  state: PollBackoff,
  { random, retryAfterMs = 0 }: FailedPoll,
): { readonly state: PollBackoff; readonly delayMs: number } {
  const ceilingMs = Math.min(BACKOFF_CEILING_MS, BACKOFF_BASE_MS * 2 ** state.failures);
  const delayMs = BACKOFF_BASE_MS + random * (ceilingMs - BACKOFF_BASE_MS);
  return { state: { failures: state.failures + 1 }, delayMs: Math.max(delayMs, retryAfterMs) };
}

/** A successful poll: the next failure is the first again. */
export function backoffAfterSuccess(_state: PollBackoff): PollBackoff {
  return createPollBackoff();
}
