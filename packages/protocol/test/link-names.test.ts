import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  decodeBase64url,
  encodeBase64url,
  LINK_TROUBLE,
  parseAppInstance,
  parseCommandId,
  parseGeneration,
  parseHomeId,
  parseNonce,
  parseServiceKeyId,
  parseSignature,
  troubleOfClose,
  troubleOfUpgrade,
} from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";

function expectOnly(
  parse: (text: string) => string | undefined,
  good: readonly string[],
  bad: readonly string[],
): void {
  for (const text of good) expect(parse(text), JSON.stringify(text)).toBe(text);
  for (const text of bad) expect(parse(text), JSON.stringify(text)).toBeUndefined();
}

verifies("L28", "a home is 1 to 64 characters of a-z, 0-9, _ and -, the first a letter or digit", () => {
  const bad = ["", "-a", "_a", "A", "a.b", "a b", "a\n", "h".repeat(65)];
  expectOnly(parseHomeId, ["a", "7", "villa_1-x", "h".repeat(64)], bad);
});

verifies(["L30", "L31"], "ids of commands and apps are 1 to 64 characters of 0-9, A-Z, a-z, _ and -", () => {
  for (const parse of [parseCommandId, parseAppInstance]) {
    expectOnly(
      parse,
      ["a", "-", "A_9-z", "i".repeat(64)],
      ["", "a.b", "a b", "a\n", "i".repeat(65), "\u00e9"],
    );
  }
});

verifies("L28", "a generation is decimal, without leading zeros, below 2^53", () => {
  const bad = ["", "00", "01", "-1", "+1", "1.0", "1e3", " 1", "1\n", "9007199254740992", "9".repeat(17)];
  expectOnly(parseGeneration, ["0", "7", "1760000000000000", "9007199254740991"], bad);
});

verifies("L28", "nonces, keys and signatures are canonical base64url of their length", () => {
  const nonce = encodeBase64url(new Uint8Array(32).fill(0xff));
  const signature = encodeBase64url(new Uint8Array(64).fill(0xfb));
  // The last character of 32 bytes holds two spare bits, that of 64 bytes four.
  expectOnly(
    parseNonce,
    [nonce, "A".repeat(43)],
    [`${nonce}=`, `${"A".repeat(42)}B`, "A".repeat(42), "A".repeat(44)],
  );
  expectOnly(
    parseSignature,
    [signature],
    [`${"A".repeat(85)}B`, `${"A".repeat(85)}C`, signature.slice(1), `${signature}A`],
  );
  expectOnly(
    parseServiceKeyId,
    ["abcdefghij_-1234"],
    ["abcdefghij_-123", "abcdefghij_-12345", "abcdefghij_+1234"],
  );
});

test("base64url is what Node makes of it, both ways, and canonical only", () => {
  checkProperty(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      const text = Buffer.from(bytes).toString("base64url");
      expect(encodeBase64url(bytes)).toBe(text);
      expect(decodeBase64url(text)).toEqual(bytes);
    }),
  );
  checkProperty(
    fc.property(
      fc.string({ unit: fc.constantFrom(..."AQgwBb0-_=+/\u00e9".split("")), maxLength: 12 }),
      (text) => {
        const bytes = decodeBase64url(text);
        if (bytes === undefined) expect(Buffer.from(text, "base64url").toString("base64url")).not.toBe(text);
        else expect(encodeBase64url(bytes)).toBe(text);
      },
    ),
  );
});

verifies("L15", "closes and answers that keep a link away are told apart by code alone", () => {
  expect(
    [4400, 1007, 1009, 4401, 4408, 4409, 4429, 4503].map((code) => troubleOfClose(code, "lost")),
  ).toEqual(["protocol", "protocol", "protocol", "auth", "hello-late", "replaced", "busy", "restarting"]);
  expect([undefined, 1000, 1006, 4999].map((code) => troubleOfClose(code, "closed"))).toEqual(
    Array(4).fill("closed"),
  );
  expect([200, 302, 404, 421, 429, 500, 503].map(troubleOfUpgrade)).toEqual([
    "not-a-link",
    "not-a-link",
    "not-a-link",
    "not-a-link",
    "unavailable",
    "unavailable",
    "unavailable",
  ]);
  expect(Object.values(LINK_TROUBLE).every((row) => /^[A-Z].*[.?]$/.test(row.summary))).toBe(true);
});
