import * as fc from "fast-check";
import { describe, expect } from "vitest";
import { clampSpreadMs, linkPingMs, linkSilenceMs, restartSpreadMs } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";

describe("restartSpreadMs", () => {
  verifies("L5", "is an integer from 1000 to 60000 for every reason", () => {
    const anyReason = fc.oneof(fc.string({ unit: "binary" }), fc.stringMatching(/^[0-9]{0,400}$/));
    checkProperty(
      fc.property(anyReason, (reason) => {
        const spreadMs = restartSpreadMs(reason);
        expect(Number.isInteger(spreadMs) && spreadMs >= 1000 && spreadMs <= 60_000).toBe(true);
      }),
    );
  });

  verifies("L5", "reads whole decimal numbers and nothing else", () => {
    expect(["20000", "0", "00042000", "9".repeat(400)].map(restartSpreadMs)).toEqual([
      20_000, 1000, 42_000, 60_000,
    ]);
    for (const reason of [
      "",
      "+2000",
      "-2000",
      " 2000",
      "2000\n",
      "2000ms",
      "2e4",
      "0x7d0",
      "2000.0",
      "\u0662\u0660",
    ]) {
      expect(restartSpreadMs(reason), JSON.stringify(reason)).toBe(5000);
    }
  });
});

verifies("L28", "a spread of a hello_ok is clamped to 1000…60000", () => {
  expect([0, 999.4, 1000, 25_000.4, 60_000, 1e12, Infinity, NaN].map(clampSpreadMs)).toEqual([
    1000, 1000, 1000, 25_000, 60_000, 60_000, 60_000, 5000,
  ]);
});

verifies(
  "L32",
  "a link pings every 5 to 120 s, 25 s by default, and lives 2.5 times that without a frame",
  () => {
    expect([undefined, 0, 5000, 30_000, 1e9, NaN].map(linkPingMs)).toEqual([
      25_000, 5000, 5000, 30_000, 120_000, 25_000,
    ]);
    expect(linkSilenceMs(undefined)).toBe(62_500);
  },
);
