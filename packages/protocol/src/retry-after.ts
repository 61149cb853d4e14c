// How long an answer asks its receiver to wait.
// Spec: R17, T19.   Pure: the wall clock is an argument.
//
// I1  Never more than 60 s, however large the value. I2  Malformed and past values are as absent.

import { parseHttpDate } from "./http-date.ts";
import { RETRY_AFTER_MS_MAX } from "./limits.ts";

/** What a date in `Retry-After` is measured against. */
export interface RetryAfterContext {
  /** The answer's own `Date` header; preferred, since the two clocks may differ. */
  readonly answerDate?: string | undefined;
  /** Milliseconds since the epoch by our clock, used where `answerDate` is absent or malformed. */
  readonly wallMs: number;
}

/**
 * Reads a `Retry-After` value: decimal seconds or one of the three HTTP-date forms.
 *
 * @param value the field's value without surrounding blanks
 * @returns milliseconds to wait, 0–60_000, or `undefined` when absent, malformed or past
 */
export function parseRetryAfter(value: string | undefined, context: RetryAfterContext): number | undefined {
  if (value === undefined) return undefined;
  if (/^[0-9]+$/.test(value)) return Math.min(Number(value) * 1000, RETRY_AFTER_MS_MAX);
  const { answerDate, wallMs } = context;
  const nowMs = (answerDate === undefined ? undefined : parseHttpDate(answerDate, wallMs)) ?? wallMs;
  const untilMs = parseHttpDate(value, nowMs);
  if (untilMs === undefined || untilMs < nowMs) return undefined;
  return Math.min(untilMs - nowMs, RETRY_AFTER_MS_MAX);
}
