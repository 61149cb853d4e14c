import * as fc from "fast-check";
import { describe, expect } from "vitest";
import { encodeResponseTimeout, parseResponseTimeout, RESPONSE_TIMEOUT_MS_MAX } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";

describe("response_timeout", () => {
  verifies(
    ["T5", "T18"],
    "what a service writes an agent reads as no longer than meant, and by less than 1 ms shorter",
    () => {
      checkProperty(
        fc.property(fc.double({ min: 0, max: 900_000, noNaN: true }), (durationMs) => {
          const text = encodeResponseTimeout(durationMs);
          expect(text).toMatch(/^[0-9]+(ns|us|ms|s|m|h)$/);
          const read = parseResponseTimeout(text) ?? Number.NaN;
          expect(read).toBeLessThanOrEqual(durationMs);
          expect(read).toBeGreaterThan(durationMs - 1);
        }),
      );
    },
  );

  verifies("T18", "any value is read as a time or as absent, and never throws", () => {
    checkProperty(
      fc.property(fc.anything(), (value) => {
        const read = parseResponseTimeout(value);
        return read === undefined || (read >= 0 && read <= RESPONSE_TIMEOUT_MS_MAX);
      }),
    );
  });

  verifies("T5", "the writer refuses what the grammar cannot say", () => {
    expect(encodeResponseTimeout(RESPONSE_TIMEOUT_MS_MAX)).toBe(`${RESPONSE_TIMEOUT_MS_MAX}ms`);
    for (const durationMs of [-1, Number.NaN, Number.POSITIVE_INFINITY, RESPONSE_TIMEOUT_MS_MAX + 1]) {
      expect(() => encodeResponseTimeout(durationMs)).toThrow(RangeError);
    }
  });
});
