// Keys: their text, their recognition, and that kinds never stand in for each other.

import { createHash } from "node:crypto";
import { createNodeRuntime } from "@moor/runtime";
import { verifies } from "@moor/testkit";
import { expect, test } from "vitest";
import { isSameHash, KEY_KINDS, mintKey, parseKey } from "../src/directory/keys.ts";

const runtime = createNodeRuntime();

verifies(
  ["T1", "T2"],
  "a minted key of each kind uses only 0-9A-Za-z_-, and is recognised as its kind",
  () => {
    for (const kind of KEY_KINDS) {
      const { key, hash, prefix } = mintKey(kind, runtime);
      const text = key.reveal();
      expect(text).toMatch(/^[0-9A-Za-z_-]+$/);
      expect(text.startsWith(prefix)).toBe(true);
      expect(prefix.length).toBeLessThan(text.length - 40);
      const parsed = parseKey(text);
      expect(parsed?.kind).toBe(kind);
      expect(Buffer.from(parsed?.hash ?? [])).toEqual(createHash("sha256").update(text).digest());
      expect(isSameHash(parsed?.hash ?? new Uint8Array(), hash)).toBe(true);
    }
  },
);

verifies("T2", "a key renamed to another kind is refused, with its checksum mended too", () => {
  const text = mintKey("agent", runtime).key.reveal();
  const renamed = text.replace("moor_agent_", "moor_connector_");
  expect(parseKey(renamed)).toBeUndefined();
  // The same random bits, honestly minted as another kind, hash to something else.
  const fixed = { randomBytes: (count: number) => new Uint8Array(count).fill(9) };
  const agent = mintKey("agent", fixed);
  const connector = mintKey("connector", fixed);
  expect(isSameHash(agent.hash, connector.hash)).toBe(false);
});

test("any one changed, missing or added character is refused before a look-up", () => {
  const text = mintKey("agent", runtime).key.reveal();
  for (let at = 0; at < text.length; at += 1) {
    const other = text[at] === "a" ? "b" : "a";
    expect(parseKey(text.slice(0, at) + other + text.slice(at + 1))).toBeUndefined();
    expect(parseKey(text.slice(0, at) + text.slice(at + 1))).toBeUndefined();
  }
  expect(parseKey(`${text} `)).toBeUndefined();
  expect(parseKey(`${text}\n`)).toBeUndefined();
  expect(parseKey(`${text}a`)).toBeUndefined();
});

test.each(["", "moor_", "moor_agent_", "sk-1234", `moor_toString_${"a".repeat(43)}_aaaaaa`, "é".repeat(60)])(
  "%j is no key",
  (text) => {
    expect(parseKey(text)).toBeUndefined();
  },
);

test("hashes of different length are different, not an error", () => {
  expect(isSameHash(new Uint8Array(32), new Uint8Array(31))).toBe(false);
});
