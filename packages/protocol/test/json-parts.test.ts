// Members and elements of nested values, against JSON.parse.

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { scanElements, scanJson, scanMembers, type JsonKind, type Slice } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";

const utf8 = new TextEncoder();
const decoder = new TextDecoder();

/** A value rebuilt from its parts alone; scalars by JSON.parse of their own slice. */
function rebuild(bytes: Uint8Array, kind: JsonKind, slice: Slice): unknown {
  if (kind === "array")
    return scanElements(bytes, slice).map((element) => rebuild(bytes, element.kind, element.value));
  if (kind === "object") {
    const members = scanMembers(bytes, slice);
    return new Map(members.map((member) => [member.key, rebuild(bytes, member.kind, member.value)]));
  }
  return JSON.parse(decoder.decode(bytes.subarray(slice.start, slice.end)));
}

/** The same shape from JSON.parse: objects as maps, so that `__proto__` is a key like any other. */
function asMaps(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(asMaps);
  if (typeof value !== "object" || value === null) return value;
  return new Map(Object.entries(value).map(([key, inner]) => [key, asMaps(inner)]));
}

describe("scanMembers and scanElements", () => {
  verifies("T5", "take any accepted value apart down to its scalars", () => {
    checkProperty(
      fc.property(fc.jsonValue(), fc.constantFrom("", " ", "\t"), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        const bytes = utf8.encode(` ${text} `);
        const scan = scanJson(bytes, { depthMax: 1000 });
        if (!scan.ok) return false;
        expect(rebuild(bytes, scan.kind, scan.value)).toEqual(asMaps(JSON.parse(text)));
        return true;
      }),
      3000,
    );
  });

  test("keep duplicates, order and every literal as it was written", () => {
    const text = '{ "a" : [ 1.0 , -0e+1 , 12345678901234567890 , "\\u0061]" ] , "a" : { } }';
    const bytes = utf8.encode(text);
    const members = scanMembers(bytes, { start: 0, end: bytes.length });
    expect(members.map((member) => [member.key, member.kind])).toEqual([
      ["a", "array"],
      ["a", "object"],
    ]);
    const [first] = members;
    const parts = scanElements(bytes, first?.value ?? { start: 0, end: 0 });
    expect(parts.map(({ value }) => text.slice(value.start, value.end))).toEqual([
      "1.0",
      "-0e+1",
      "12345678901234567890",
      '"\\u0061]"',
    ]);
  });

  test("find nothing in values of another kind", () => {
    const bytes = utf8.encode('"[1]"');
    const whole = { start: 0, end: bytes.length };
    expect(scanElements(bytes, whole)).toEqual([]);
    expect(scanMembers(bytes, whole)).toEqual([]);
  });
});
