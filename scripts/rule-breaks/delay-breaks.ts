// Breaks of delays and time-outs: R17, T5, T18.

import { inFile, type RuleBreak } from "./rule-break.ts";

const backoff = inFile("poll-backoff.ts");
const retryAfter = inFile("retry-after.ts");
const httpDate = inFile("http-date.ts");
const timeout = inFile("response-timeout.ts");

/** Breaks of backoff, Retry-After, HTTP dates and response timeouts. */
export const DELAY_BREAKS: readonly RuleBreak[] = [
  backoff("R17", "n is 1-based", "2 ** state.failures", "2 ** (state.failures + 1)"),
  backoff("R17", "linear growth", "2 ** state.failures", "(1 + state.failures)"),
  backoff(
    "R17",
    "no ceiling",
    "Math.min(BACKOFF_CEILING_MS, BACKOFF_BASE_MS * 2 ** state.failures)",
    "BACKOFF_BASE_MS * 2 ** state.failures",
  ),
  backoff("R17", "no random part", "random * (ceilingMs", "1 * (ceilingMs"),
  backoff(
    "R17",
    "full jitter from 0",
    "BACKOFF_BASE_MS + random * (ceilingMs - BACKOFF_BASE_MS)",
    "random * ceilingMs",
  ),
  backoff(
    "R17",
    "Retry-After replaces the delay",
    "Math.max(delayMs, retryAfterMs)",
    "retryAfterMs || delayMs",
  ),
  backoff("R17", "Retry-After is added", "Math.max(delayMs, retryAfterMs)", "delayMs + retryAfterMs"),
  backoff("R17", "Retry-After is ignored", "Math.max(delayMs, retryAfterMs)", "delayMs"),
  backoff("R17", "a failure is not counted", "failures: state.failures + 1", "failures: state.failures"),
  backoff("R17", "a success does not reset", "return createPollBackoff();", "return _state;"),
  retryAfter(
    "R17",
    "no cap on seconds",
    "Math.min(Number(value) * 1000, RETRY_AFTER_MS_MAX)",
    "Number(value) * 1000",
  ),
  retryAfter("R17", "too many seconds are malformed", "/^[0-9]+$/", "/^[0-9]{1,9}$/"),
  retryAfter("R17", "fractions of seconds", "/^[0-9]+$/", "/^[0-9.]+$/"),
  retryAfter("R17", "signs", "/^[0-9]+$/", "/^[+-]?[0-9]+$/"),
  retryAfter("R17", "no cap on dates", "Math.min(untilMs - nowMs, RETRY_AFTER_MS_MAX)", "untilMs - nowMs"),
  retryAfter("R17", "past dates are 0", "untilMs < nowMs) return undefined", "untilMs < nowMs) return 0"),
  retryAfter(
    "R17",
    "the wall clock always",
    "(answerDate === undefined ? undefined : parseHttpDate(answerDate, wallMs)) ?? wallMs",
    "wallMs",
  ),
  retryAfter(
    "R17",
    "a malformed Date makes all malformed",
    "(answerDate === undefined ? undefined : parseHttpDate(answerDate, wallMs)) ?? wallMs",
    "answerDate === undefined ? wallMs : (parseHttpDate(answerDate, wallMs) ?? NaN)",
  ),
  httpDate(
    "R17",
    "Date.parse",
    "for (const form of FORMS) {",
    "if (!Number.isNaN(Date.parse(text))) return Date.parse(text);\n  for (const form of FORMS) {",
  ),
  httpDate("R17", "31 days in every month", "day > daysInMonth(year, month)", "day > 31"),
  httpDate("R17", "hour 24", "hour > 23", "hour > 24"),
  httpDate("R17", "minute 60", "minute > 59", "minute > 60"),
  httpDate("R17", "second 61", "second > 60", "second > 61"),
  httpDate("R17", "no leap second", "second > 60", "second > 59"),
  httpDate(
    "R17",
    "two digits always mean 19xx",
    "yearText.length === 2 ? fullYear(Number(yearText), referenceMs) : Number(yearText)",
    "yearText.length === 2 ? 1900 + Number(yearText) : Number(yearText)",
  ),
  httpDate(
    "R17",
    "two digits always mean 20xx",
    "if (sameCentury > referenceYear + 50) return sameCentury - 100;",
    "",
  ),
  httpDate("R17", "asctime without padding", "[0-9]{2}| [0-9]", "[0-9]{2}| ?[0-9]"),
  timeout("T5", "fractions", "/^([0-9]+)(ns", "/^([0-9.]+)(ns"),
  timeout("T5", "units in any case", "|h)$/", "|h)$/i"),
  timeout("T5", "minutes are milliseconds", "m: 60_000", "m: 1"),
  timeout("T5", "microseconds are whole milliseconds", "us: 1_000 }", "us: 1 }"),
  timeout(
    "T18",
    "0 is as absent",
    "return durationMs <= RESPONSE_TIMEOUT_MS_MAX ?",
    "return durationMs > 0 && durationMs <= RESPONSE_TIMEOUT_MS_MAX ?",
  ),
  timeout(
    "T18",
    "overflow is no timeout at all",
    "durationMs <= RESPONSE_TIMEOUT_MS_MAX ? durationMs : undefined",
    "durationMs",
  ),
  timeout(
    "T18",
    "numbers are seconds",
    'if (typeof value !== "string") return undefined;',
    'if (typeof value === "number") return value * 1000;\n  if (typeof value !== "string") return undefined;',
  ),
];
