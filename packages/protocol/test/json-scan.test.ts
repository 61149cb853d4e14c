// scanJson against JSON.parse and the platform's UTF-8 decoder, both strict: they must agree on every input.

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { scanJson, type ScanFailure, type Slice } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";

const utf8 = new TextEncoder();
const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Whether the platform takes these bytes for JSON. */
function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(strictUtf8.decode(bytes));
    return true;
  } catch {
    return false;
  }
}

function scan(text: string, options: { depthMax?: number; rejectLoneSurrogates?: boolean } = {}) {
  return scanJson(utf8.encode(text), { depthMax: 1000, ...options });
}

function failureOf(
  text: string,
  options: { depthMax?: number; rejectLoneSurrogates?: boolean } = {},
): ScanFailure | "none" {
  const result = scan(text, options);
  return result.ok ? "none" : result.failure;
}

function textAt(bytes: Uint8Array, { start, end }: Slice): string {
  return strictUtf8.decode(bytes.subarray(start, end));
}

const laidOutJson = fc
  .tuple(fc.jsonValue({ noUnicodeString: false }), fc.constantFrom("", " ", "\t", "  "))
  .map(([value, indent]) => JSON.stringify(value, null, indent));

/** Bytes that matter to a JSON scanner, more likely than others. */
const spicyByte = fc.oneof(
  fc.constantFrom(...utf8.encode('{}[]",:\\/ \t\r\n0123456789+-.eEtrufalsn\u0000\u001f')),
  fc.constantFrom(0x80, 0xbf, 0xc0, 0xc2, 0xe0, 0xed, 0xa0, 0xef, 0xbb, 0xf0, 0xf4, 0x90, 0xff),
  fc.integer({ min: 0, max: 255 }),
);

const insertion = fc.oneof(
  fc.constantFrom(...utf8.encode(',:[]{}"')).map((byte) => [byte]),
  fc.array(spicyByte, { maxLength: 2 }),
);

/** JSON with one or two small faults, every other one beside a bracket, comma, colon or quote. */
const mutatedJson = fc
  .tuple(
    laidOutJson,
    fc.array(fc.tuple(fc.nat(), fc.boolean(), fc.constantFrom(0, 0, 1, 2), insertion), {
      minLength: 1,
      maxLength: 2,
    }),
  )
  .map(([text, mutations]) => {
    const bytes = [...utf8.encode(text)];
    for (const [pick, isBesideStructure, remove, insert] of mutations) {
      const structure = bytes.flatMap((byte, at) =>
        '{}[]",:'.includes(String.fromCharCode(byte)) ? [at, at + 1] : [],
      );
      const places = isBesideStructure && structure.length > 0 ? structure : [...bytes.keys(), bytes.length];
      bytes.splice(places[pick % places.length] ?? 0, remove, ...insert);
    }
    return Uint8Array.from(bytes);
  });

const jsonishText = fc
  .array(
    fc.constantFrom(
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      '"',
      '"a"',
      "1",
      "-0",
      "1e5",
      ".5",
      "01",
      "true",
      "null",
      " ",
      "\\u00e9",
      "\\",
    ),
    { maxLength: 14 },
  )
  .map((parts) => utf8.encode(parts.join("")));

describe("scanJson", () => {
  verifies(["R6", "T6", "T9"], "accepts what JSON.parse accepts and refuses what it refuses", () => {
    const agrees = (bytes: Uint8Array) => scanJson(bytes, { depthMax: 1000 }).ok === isJson(bytes);
    checkProperty(
      fc.property(laidOutJson, (text) => agrees(utf8.encode(text))),
      2000,
    );
    checkProperty(fc.property(mutatedJson, agrees), 20_000);
    checkProperty(fc.property(jsonishText, agrees), 20_000);
    checkProperty(fc.property(fc.uint8Array({ maxLength: 8 }), agrees), 5000);
  });

  verifies("R6", "takes for UTF-8 in strings exactly what the platform does", () => {
    const multibyte = fc.array(spicyByte, { maxLength: 8 });
    checkProperty(
      fc.property(multibyte, (inner) => {
        const bytes = Uint8Array.from([0x22, ...inner.filter((byte) => byte >= 0x80), 0x22]);
        return scanJson(bytes, { depthMax: 0 }).ok === isJson(bytes);
      }),
      20_000,
    );
  });

  verifies(["T5", "T6"], "gives the value and each member as their exact bytes", () => {
    checkProperty(
      fc.property(laidOutJson, fc.constantFrom("", " ", "\r\n\t "), (text, blanks) => {
        const bytes = utf8.encode(blanks + text + blanks);
        const result = scanJson(bytes, { depthMax: 1000 });
        if (!result.ok) return false;
        expect(textAt(bytes, result.value)).toBe(text);
        const rebuilt = result.members.map(({ key, value }) => [
          key,
          JSON.parse(textAt(bytes, value)) as unknown,
        ]);
        const parsed: unknown = JSON.parse(text);
        const isObject = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
        expect(new Map(rebuilt as [string, unknown][])).toEqual(
          new Map(isObject ? Object.entries(parsed) : []),
        );
        return true;
      }),
    );
  });

  verifies("R6", "reports every member of the top-level object, duplicates in order, keys unescaped", () => {
    const text = '{"a":1,"\\u0061":[2],"b":{"a":3},"a":"x","":null,"\\ud83d\\udea2":true,"c":false}';
    const bytes = utf8.encode(text);
    const result = scanJson(bytes, { depthMax: 1000 });
    expect(
      result.ok && result.members.map((member) => [member.key, member.kind, textAt(bytes, member.value)]),
    ).toEqual([
      ["a", "number", "1"],
      ["a", "array", "[2]"],
      ["b", "object", '{"a":3}'],
      ["a", "string", '"x"'],
      ["", "null", "null"],
      ["\u{1f6a2}", "true", "true"],
      ["c", "false", "false"],
    ]);
  });

  test("keeps a byte order mark that is part of a key", () => {
    const result = scan('{"\ufeffa":1}');
    expect(result.ok && result.members.map((member) => member.key)).toEqual(["\ufeffa"]);
  });

  test("names the failure and where it was met", () => {
    const cases: readonly [string, ScanFailure, number][] = [
      ["", "empty", 0],
      [" \n ", "empty", 3],
      ["\ufeff{}", "bom", 0],
      ["{} x", "trailing", 3],
      ['{"a":}', "syntax", 5],
      ['"a', "syntax", 2],
      ["[[]]", "depth", 1],
    ];
    for (const [text, failure, offset] of cases) {
      expect(scan(text, { depthMax: 1 })).toEqual({ ok: false, failure, offset });
    }
    expect(scanJson(Uint8Array.from([0x22, 0xff, 0x22]), { depthMax: 0 })).toMatchObject({
      failure: "not-utf8",
      offset: 1,
    });
  });

  verifies(
    ["T6", "T9"],
    "allows exactly depthMax open arrays and objects, and a million without a stack",
    () => {
      const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
      expect(failureOf(nested(1000))).toBe("none");
      expect(failureOf(nested(1001))).toBe("depth");
      expect(failureOf('{"a":'.repeat(1000) + "1" + "}".repeat(1000))).toBe("none");
      expect(failureOf('{"a":'.repeat(1001) + "1" + "}".repeat(1001))).toBe("depth");
      expect(failureOf(`[${"[],".repeat(5000)}[]]`, { depthMax: 2 })).toBe("none");
      expect(failureOf("1", { depthMax: 0 })).toBe("none");
      expect(failureOf("[]", { depthMax: 0 })).toBe("depth");
      expect(failureOf(nested(1_000_000), { depthMax: 1_000_000 })).toBe("none");
    },
  );

  verifies("T6", "finds exactly the lone surrogate escapes, where asked to", () => {
    const unit = fc.constantFrom(
      "\\ud800",
      "\\udbff",
      "\\uDC00",
      "\\udfff",
      "\\ud7ff",
      "\\ue000",
      "\\n",
      "a",
      "\u{1f6a2}",
    );
    checkProperty(
      fc.property(fc.array(unit, { maxLength: 6 }), (units) => {
        const text = `["${units.join("")}"]`;
        const isWellFormed = (JSON.parse(text) as string[]).every((part) => part.isWellFormed());
        expect(failureOf(text)).toBe("none");
        expect(failureOf(text, { rejectLoneSurrogates: true })).toBe(
          isWellFormed ? "none" : "lone-surrogate",
        );
      }),
      3000,
    );
    expect(failureOf('{"\\ud800":1}', { rejectLoneSurrogates: true })).toBe("lone-surrogate");
    expect(failureOf('["\\ud83d","\\udea2"]', { rejectLoneSurrogates: true })).toBe("lone-surrogate");
  });
});
