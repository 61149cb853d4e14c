import * as fc from "fast-check";
import { describe, expect } from "vitest";
import {
  CAPABILITIES_BYTES_MAX,
  CAPABILITIES_COUNT_MAX,
  CAPABILITY_NAME_BYTES_MAX,
  CAPABILITY_WRONG_CLUSTER,
  encodeCapabilities,
  parseCapabilities,
} from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";

const tchar = fc.constantFrom(..."!#$%&'*+-.^_`|~0123456789azAZ".split(""));
const name = fc.string({ unit: tchar, minLength: 1, maxLength: 40 });
const blanks = fc.string({ unit: fc.constantFrom(" ", "\t"), maxLength: 3 });

describe("capabilities", () => {
  verifies("R1", "a supporting client's line is exactly the capability's name", () => {
    expect(encodeCapabilities([CAPABILITY_WRONG_CLUSTER])).toBe("wrong-cluster-v1");
    expect(parseCapabilities(["wrong-cluster-v1"]).has(CAPABILITY_WRONG_CLUSTER)).toBe(true);
  });

  verifies("R2", "any sound names survive any split over lines, any blanks and empty members", () => {
    const member = fc.tuple(blanks, fc.option(name, { nil: "" }), blanks);
    checkProperty(
      fc.property(fc.array(fc.array(member, { maxLength: 6 }), { maxLength: 6 }), (lines) => {
        const fieldLines = lines.map((members) => members.map((parts) => parts.join("")).join(","));
        const names = lines
          .flatMap((members) => members.map(([, text]) => text))
          .filter((text) => text !== "");
        expect(parseCapabilities(fieldLines)).toEqual(new Set(names));
      }),
    );
  });

  verifies("R2", "one character that is no token character empties the whole set", () => {
    const stranger = fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code));
    checkProperty(
      fc.property(
        fc.array(name, { maxLength: 5 }),
        stranger,
        fc.nat({ max: 5 }),
        (names, character, place) => {
          fc.pre(!/[!#$%&'*+\-.^_`|~0-9A-Za-z, \t]/.test(character));
          const members = names.toSpliced(place, 0, `a${character}b`);
          expect(parseCapabilities([members.join(",")]).size).toBe(0);
        },
      ),
    );
  });

  verifies("R2", "never throws, and never keeps a name that is not in the lines", () => {
    checkProperty(
      fc.property(fc.array(fc.string({ unit: "binary" }), { maxLength: 5 }), (lines) => {
        for (const kept of parseCapabilities(lines)) expect(lines.join(",")).toContain(kept);
      }),
      3000,
    );
  });

  verifies("R2", "each bound holds exactly at its edge", () => {
    const names = (count: number) => Array.from({ length: count }, (_, index) => `c${index}`).join(",");
    expect(parseCapabilities([names(CAPABILITIES_COUNT_MAX)]).size).toBe(CAPABILITIES_COUNT_MAX);
    expect(parseCapabilities([names(CAPABILITIES_COUNT_MAX + 1)]).size).toBe(0);
    expect(parseCapabilities(["n".repeat(CAPABILITY_NAME_BYTES_MAX)]).size).toBe(1);
    expect(parseCapabilities(["n".repeat(CAPABILITY_NAME_BYTES_MAX + 1)]).size).toBe(0);
    expect(parseCapabilities(["a".padEnd(CAPABILITIES_BYTES_MAX)]).size).toBe(1);
    expect(parseCapabilities(["a".padEnd(CAPABILITIES_BYTES_MAX + 1)]).size).toBe(0);
  });

  verifies("R2", "the formatter refuses what the parser would drop", () => {
    expect(() => encodeCapabilities(["a b"])).toThrow(RangeError);
    expect(() => encodeCapabilities([""])).toThrow(RangeError);
    expect(() => encodeCapabilities(Array.from({ length: 65 }, () => "a"))).toThrow(RangeError);
    expect(() => encodeCapabilities(Array.from({ length: 32 }, () => "n".repeat(128)))).toThrow(RangeError);
  });

  verifies("R3", "a set is made anew from the lines of its own request", () => {
    expect(parseCapabilities([CAPABILITY_WRONG_CLUSTER]).size).toBe(1);
    expect(parseCapabilities([]).size).toBe(0);
    expect(parseCapabilities(["bad name"]).size).toBe(0);
    expect(parseCapabilities([CAPABILITY_WRONG_CLUSTER])).not.toBe(
      parseCapabilities([CAPABILITY_WRONG_CLUSTER]),
    );
  });
});
