import * as fc from "fast-check";
import { describe, expect } from "vitest";
import { encodeLinkRecord, parseHomeId, parseLinkRecord, type HomeId } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";

const home = parseHomeId("villa") as HomeId;

describe("the link record", () => {
  verifies("L12", "says version, home and host, and reads back", () => {
    expect(encodeLinkRecord({ home })).toBe('{"v":1,"home":"villa"}');
    const text = encodeLinkRecord({ home, host: "eu-1.cloud.ftw.energy" });
    expect(text).toBe('{"v":1,"home":"villa","host":"eu-1.cloud.ftw.energy"}');
    expect(parseLinkRecord(text)).toMatchObject({ home, host: "eu-1.cloud.ftw.energy" });
  });

  verifies("L12", "keeps members it does not know, values byte for byte", () => {
    const text =
      '{"v":1,"home":"villa","host":"a","seen":[1.0, {"b" :2}],"__proto__":null,"n":12345678901234567890}';
    const record = parseLinkRecord(text);
    expect(record && encodeLinkRecord(record)).toBe(text);
    expect(record && encodeLinkRecord({ ...record, host: undefined })).toBe(text.replace(',"host":"a"', ""));
  });

  verifies("L13", "is corrupt unless it is one object of version 1 with a home and at most a host", () => {
    const bad = [
      "",
      "{",
      "[]",
      "null",
      '"x"',
      "{}",
      '{"v":2,"home":"villa"}',
      '{"v":"1","home":"villa"}',
      '{"v":1}',
    ];
    const wrong = [
      '{"v":1,"home":"V"}',
      '{"v":1,"home":7}',
      '{"v":1,"home":"villa","host":null}',
      '{"v":1,"home":"villa","host":7}',
    ];
    const twice = [
      '{"v":1,"v":1,"home":"villa"}',
      '{"v":1,"home":"villa","home":"villa"}',
      '{"v":1,"home":"villa"}x',
    ];
    for (const text of [...bad, ...wrong, ...twice]) expect(parseLinkRecord(text), text).toBeUndefined();
  });

  verifies("L13", "any text and any cut of a record is read or refused, never thrown over", () => {
    const whole = encodeLinkRecord({ home, host: "eu-1.cloud.ftw.energy" });
    checkProperty(
      fc.property(fc.nat({ max: whole.length }), fc.string({ unit: "binary" }), (cut, text) => {
        for (const given of [whole.slice(0, cut) + text, text]) {
          const record = parseLinkRecord(given);
          if (record !== undefined) expect(parseLinkRecord(encodeLinkRecord(record))).toEqual(record);
        }
      }),
    );
  });
});
