import * as fc from "fast-check";
import { describe, expect } from "vitest";
import { parseHttpDate, parseRetryAfter } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";

const LONG_DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/** The same instant in the three forms; the parts come from the platform's own formatter. */
function formsOf(date: Date): readonly [imf: string, rfc850: string, asctime: string] {
  const imf = date.toUTCString();
  const [weekday = "", day = "", month = "", year = "", clock = ""] = imf.replace(",", "").split(" ");
  const rfc850 = `${LONG_DAYS[date.getUTCDay()]}, ${day}-${month}-${year.slice(-2)} ${clock} GMT`;
  return [imf, rfc850, `${weekday} ${month} ${day.replace(/^0/, " ")} ${clock} ${year}`];
}

const wholeSeconds = (range: { min: number; max: number }) =>
  fc.integer({ min: range.min / 1000, max: range.max / 1000 }).map((seconds) => seconds * 1000);

describe("parseHttpDate", () => {
  verifies("R17", "reads every instant of the years 1 to 9999 in the preferred and the asctime form", () => {
    const instant = wholeSeconds({
      min: Date.parse("0001-01-01T00:00:00Z"),
      max: Date.parse("9999-12-31T23:59:59Z"),
    });
    checkProperty(
      fc.property(instant, (atMs) => {
        const [imf, , asctime] = formsOf(new Date(atMs));
        expect([parseHttpDate(imf, 0), parseHttpDate(asctime, 0)]).toEqual([atMs, atMs]);
      }),
      2000,
    );
  });

  verifies("R17", "reads two-digit years by the century that is nearest to the reference", () => {
    const reference = wholeSeconds({ min: Date.parse("1990-01-01"), max: Date.parse("2190-01-01") });
    const distance = wholeSeconds({ min: -48 * 365.25 * 86_400_000, max: 48 * 365.25 * 86_400_000 });
    checkProperty(
      fc.property(reference, distance, (referenceMs, distanceMs) => {
        const atMs = referenceMs + distanceMs;
        expect(parseHttpDate(formsOf(new Date(atMs))[1], referenceMs)).toBe(atMs);
      }),
      2000,
    );
  });

  verifies("R17", "takes nothing that differs from its form by one character", () => {
    const base = "Sun, 06 Nov 1994 08:49:37 GMT";
    checkProperty(
      fc.property(
        fc.nat({ max: base.length - 1 }),
        fc.constantFrom("", "x", "  ", "\u0660", "-"),
        (place, piece) => {
          const text = base.slice(0, place) + piece + base.slice(place + 1);
          // Blanks doubled in place of one blank give the very form of nothing; the base itself is left out.
          return text === base || parseHttpDate(text, 0) === undefined;
        },
      ),
    );
  });
});

describe("parseRetryAfter", () => {
  verifies("R17", "is never below 0 nor above 60 s, whatever it is given", () => {
    const value = fc.oneof(
      fc.string(),
      fc.nat().map(String),
      fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
    );
    checkProperty(
      fc.property(value, fc.option(value, { nil: undefined }), fc.nat(), (text, answerDate, wallMs) => {
        const ms = parseRetryAfter(text, { answerDate, wallMs });
        return ms === undefined || (ms >= 0 && ms <= 60_000);
      }),
      3000,
    );
  });

  verifies("R17", "depends on no clock but the answer's own where it has a Date", () => {
    checkProperty(
      fc.property(
        fc.nat({ max: 2 ** 31 }),
        fc.integer({ min: 0, max: 60 }),
        fc.nat(),
        (second, waitS, wallMs) => {
          const [answerDate] = formsOf(new Date(second * 1000));
          const [until] = formsOf(new Date((second + waitS) * 1000));
          expect(parseRetryAfter(until, { answerDate, wallMs })).toBe(waitS * 1000);
        },
      ),
    );
  });
});
