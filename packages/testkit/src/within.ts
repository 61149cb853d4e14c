// Waiting with a deadline: what a test uses where it would otherwise sleep.

import { createNodeRuntime, sleep } from "@moor/runtime";

const runtime = createNodeRuntime();

/** Deadline a wait gets when the test names none. Milliseconds: generous, since a shared machine may stall for seconds. */
export const WAIT_MS_DEFAULT = 30_000;

/**
 * The value of `promise`, or an error that names `what` when it takes longer than `deadlineMs`.
 *
 * @param describe called at the deadline only; its text is appended, for what was seen instead
 */
export function within<T>(
  promise: Promise<T>,
  what: string,
  deadlineMs: number = WAIT_MS_DEFAULT,
  describe?: () => string,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const handle = runtime.schedule(deadlineMs, () => {
      const detail = describe === undefined ? "" : `\n${describe()}`;
      reject(new Error(`waited ${deadlineMs} ms for ${what}${detail}`));
    });
    promise.then(resolve, reject).finally(() => runtime.cancel(handle));
  });
}

/** How often `until` looks. Milliseconds. */
const LOOK_INTERVAL_MS = 20;

/**
 * Resolves with the first value of `look` that is not undefined, null or false: for facts that announce themselves by
 * no event, such as an entry of /proc. Rejects, naming `what`, after `deadlineMs`.
 */
export async function until<T>(
  look: () => T | Promise<T>,
  what: string,
  deadlineMs: number = WAIT_MS_DEFAULT,
): Promise<NonNullable<Exclude<T, false>>> {
  const endMs = runtime.monotonicMs() + deadlineMs;
  while (runtime.monotonicMs() < endMs) {
    const value = await look();
    if (value !== undefined && value !== null && value !== false) {
      return value as NonNullable<Exclude<T, false>>;
    }
    await sleep(runtime, LOOK_INTERVAL_MS);
  }
  throw new Error(`waited ${deadlineMs} ms for ${what}`);
}
