import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  COMMAND_TOKEN_BYTES_MAX,
  CORRECTION_BODY_BYTES_MAX,
  CORRECTION_DEPTH_MAX,
  encodeCorrectionBody,
  isCommandToken,
  isPollingToken,
  parseCorrection,
  REVISION_MAX,
  SHARD_TOKEN_BYTES_MAX,
  type CorrectionRefusal,
} from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";

const utf8 = new TextEncoder();
const sound = '{"error":{"code":"wrong_cluster","policy_revision":7}}';

function read(body: string, tokens: readonly string[] = ["tok-a"], status = 409, isComplete = true) {
  const headerLines = tokens.map((token) => ["X-Tunnel-Shard-Token", token] as const);
  return parseCorrection({ status, headerLines }, utf8.encode(body), isComplete);
}

const anyToken = fc.string({
  unit: fc.constantFrom(...'!"#$+-./09:=@AZ[]_az{|}~'.split("")),
  minLength: 1,
  maxLength: 200,
});

describe("parseCorrection", () => {
  verifies("R6", "reads every body a service writes, for every token and revision", () => {
    checkProperty(
      fc.property(anyToken, fc.maxSafeNat(), (token, revision) => {
        expect(read(encodeCorrectionBody(revision), [token])).toEqual({ ok: true, token, revision });
      }),
    );
  });

  test("the body of a correction holds code and revision and nothing else", () => {
    expect(encodeCorrectionBody(42)).toBe('{"error":{"code":"wrong_cluster","policy_revision":42}}');
    expect(encodeCorrectionBody(REVISION_MAX)).toContain(":9007199254740991}");
    for (const revision of [-1, 0.5, REVISION_MAX + 1, Number.NaN]) {
      expect(() => encodeCorrectionBody(revision)).toThrow(RangeError);
    }
  });

  verifies("R6", "names the clause that fails", () => {
    const refusals: readonly [CorrectionRefusal, ReturnType<typeof read>][] = [
      ["status", read(sound, ["tok-a"], 410)],
      ["body-too-large", read(sound.padEnd(CORRECTION_BODY_BYTES_MAX + 1))],
      ["body-cut", read(sound, ["tok-a"], 409, false)],
      ["body-not-json", read("")],
      ["error-member", read("{}")],
      ["code", read('{"error":{}}')],
      ["token-count", read(sound, [])],
      ["token-count", read(sound, ["tok-a", "tok-a"])],
      ["token-value", read(sound, [""])],
      ["revision", read('{"error":{"code":"wrong_cluster"}}')],
      ["body-token", read('{"error":{"code":"wrong_cluster","policy_revision":7,"shard_token":"tok-b"}}')],
    ];
    for (const [reason, result] of refusals) expect(result).toEqual({ ok: false, reason });
  });

  verifies("R6", "a body of exactly 64 KiB and a nesting of exactly 64 are read", () => {
    expect(read(sound.padEnd(CORRECTION_BODY_BYTES_MAX)).ok).toBe(true);
    const nested = (depth: number) =>
      sound.replace("{", `{"x":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)},`);
    expect(read(nested(CORRECTION_DEPTH_MAX)).ok).toBe(true);
    expect(read(nested(CORRECTION_DEPTH_MAX + 1))).toEqual({ ok: false, reason: "body-not-json" });
  });

  verifies("R6", "a change of one byte never makes another correction out of a sound one", () => {
    const bytes = utf8.encode(sound);
    checkProperty(
      fc.property(fc.nat({ max: bytes.length - 1 }), fc.integer({ min: 0, max: 255 }), (place, byte) => {
        const changed = bytes.with(place, byte);
        const head = { status: 409, headerLines: [["x-tunnel-shard-token", "tok-a"]] as const };
        const result = parseCorrection(head, changed, true);
        // Only the revision's own digit may change and stay sound.
        if (result.ok && result.revision !== 7) expect(bytes[place]).toBe("7".charCodeAt(0));
        if (!result.ok) expect(changed).not.toEqual(bytes);
      }),
      5000,
    );
  });
});

describe("tokens", () => {
  verifies("R6", "a polling token has 1 to 4096 visible ASCII characters and no comma", () => {
    expect(isPollingToken("")).toBe(false);
    expect(isPollingToken("t".repeat(SHARD_TOKEN_BYTES_MAX))).toBe(true);
    expect(isPollingToken("t".repeat(SHARD_TOKEN_BYTES_MAX + 1))).toBe(false);
    for (let code = 0; code <= 0x100; code += 1) {
      const isVisible = code >= 0x21 && code <= 0x7e && code !== 0x2c;
      expect(isPollingToken(`a${String.fromCharCode(code)}`)).toBe(isVisible);
    }
  });

  verifies("R20", "a command token is measured in UTF-8 bytes, up to 8 KiB", () => {
    expect(isCommandToken("t".repeat(COMMAND_TOKEN_BYTES_MAX))).toBe(true);
    expect(isCommandToken("t".repeat(COMMAND_TOKEN_BYTES_MAX + 1))).toBe(false);
    expect(isCommandToken("\u20ac".repeat(2730) + "ab")).toBe(true);
    expect(isCommandToken("\u20ac".repeat(2730) + "abc")).toBe(false);
  });

  test("every polling token may be a command token too", () => {
    checkProperty(fc.property(anyToken, (token) => isPollingToken(token) && isCommandToken(token)));
  });
});
