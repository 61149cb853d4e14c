// The time a service gives a command, as the command says it: `55s`, `1500ms`.
// Spec: T5, T18.   Pure.

import { RESPONSE_TIMEOUT_MS_MAX } from "./limits.ts";

type Unit = "ns" | "us" | "ms" | "s" | "m" | "h";

/** Units per millisecond, for those below it: dividing keeps `1500us` exact. */
const PER_MS: Readonly<Partial<Record<Unit, number>>> = { ns: 1_000_000, us: 1_000 };
const UNIT_MS: Readonly<Partial<Record<Unit, number>>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/**
 * Reads a `response_timeout`.
 *
 * @param value the field's value as JSON gave it
 * @returns milliseconds, possibly fractional, 0 for a command that is already expired; `undefined` for anything
 *   malformed or above RESPONSE_TIMEOUT_MS_MAX, which counts as absent (T18). May be more than one timer can hold
 */
export function parseResponseTimeout(value: unknown): number | undefined {
  if (typeof value !== "string") return undefined;
  const match = /^([0-9]+)(ns|us|ms|s|m|h)$/.exec(value);
  if (match === null) return undefined;
  const unit = match[2] as Unit;
  const durationMs = (Number(match[1]) / (PER_MS[unit] ?? 1)) * (UNIT_MS[unit] ?? 1);
  return durationMs <= RESPONSE_TIMEOUT_MS_MAX ? durationMs : undefined;
}

/**
 * A duration as `response_timeout` says it: whole seconds as `55s`, others in whole milliseconds, rounded down so that
 * an agent never believes to have longer than its service gives.
 *
 * @throws RangeError below 0, above RESPONSE_TIMEOUT_MS_MAX or not a number
 */
export function encodeResponseTimeout(durationMs: number): string {
  if (!(durationMs >= 0 && durationMs <= RESPONSE_TIMEOUT_MS_MAX)) {
    throw new RangeError(`a response_timeout of ${durationMs} ms`);
  }
  const wholeMs = Math.floor(durationMs);
  return wholeMs % 1000 === 0 ? `${wholeMs / 1000}s` : `${wholeMs}ms`;
}
