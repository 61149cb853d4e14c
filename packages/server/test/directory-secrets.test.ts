// Token keys at rest, the node secret's file, and the watermark.

import fs, { fstatSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { createTempDir, VirtualRuntime, verifies, type TempDir } from "@moor/testkit";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ensureNodeSecret, parseNodeSecret, readNodeSecret } from "../src/directory/node-secret.ts";
import { isSealed, TokenKeyVault } from "../src/directory/token-key-vault.ts";
import { readWatermark, regressionDetail, writeWatermark } from "../src/directory/watermark.ts";

let temp: TempDir;

beforeEach(async () => {
  temp = await createTempDir("secrets");
});
afterEach(async () => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  await temp.remove();
});

verifies(
  "R23",
  "a sealed token key opens for its own residency and row, untampered, and for nothing else",
  () => {
    const vault = new TokenKeyVault(new Uint8Array(32).fill(1), new VirtualRuntime(1));
    const secret = new Uint8Array(32).fill(9);
    const sealed = vault.seal("eu", "tk_1", secret);
    expect(isSealed(sealed)).toBe(true);
    expect(sealed).not.toContain(Buffer.from(secret).toString("base64url").slice(0, 12));
    expect(vault.open("eu", "tk_1", sealed)).toEqual(secret);
    expect(vault.seal("eu", "tk_1", secret)).not.toBe(sealed);
    const other = new TokenKeyVault(new Uint8Array(32).fill(2), new VirtualRuntime(1));
    expect(other.open("eu", "tk_1", sealed)).toBeUndefined();
    expect(vault.open("global", "tk_1", sealed)).toBeUndefined();
    expect(vault.open("eu", "tk_2", sealed)).toBeUndefined();
    const flipped = Buffer.from(sealed.slice(3), "base64url");
    for (const at of [0, 12, 20, flipped.length - 1]) {
      const tampered = Buffer.from(flipped);
      tampered[at] = (tampered[at] ?? 0) ^ 1;
      expect(vault.open("eu", "tk_1", `v1.${tampered.toString("base64url")}`)).toBeUndefined();
    }
    for (const text of ["", "v1.", sealed.slice(0, -4), sealed.replace("v1.", "v2.")]) {
      expect(vault.open("eu", "tk_1", text)).toBeUndefined();
    }
  },
);

test("a node secret is minted once, the owner's only, and read back the same", () => {
  const path = join(temp.path, "node.secret");
  const minted = ensureNodeSecret(path, new VirtualRuntime(1));
  expect(minted).toHaveLength(32);
  expect(ensureNodeSecret(path, new VirtualRuntime(2))).toEqual(minted);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(parseNodeSecret(readFileSync(path, "utf8"))).toEqual(minted);
});

test("a new node secret is on disk, and so is its name, before anything can be sealed under it", () => {
  const synced: number[] = [];
  vi.spyOn(fs, "fsyncSync").mockImplementation((file) => void synced.push(fstatSync(file).ino));
  syncBuiltinESMExports();
  const path = join(temp.path, "node.secret");
  ensureNodeSecret(path, new VirtualRuntime(1));
  expect(synced).toEqual([statSync(path).ino, statSync(temp.path).ino]);
});

test("a node secret that a nearly full disk takes in pieces is written whole, and one it refuses leaves no file", () => {
  const path = join(temp.path, "node.secret");
  // The disk takes seven bytes at a time.
  const { writeSync } = fs;
  const inPieces = (file: number, data: string) => writeSync(file, data.slice(0, 7));
  vi.spyOn(fs, "writeSync").mockImplementation(inPieces);
  syncBuiltinESMExports();
  expect(ensureNodeSecret(path, new VirtualRuntime(1))).toHaveLength(32);
  vi.spyOn(fs, "fsyncSync").mockImplementation(() => {
    throw Object.assign(new Error("disk full"), { code: "ENOSPC" });
  });
  syncBuiltinESMExports();
  const other = join(temp.path, "other.secret");
  expect(() => ensureNodeSecret(other, new VirtualRuntime(1))).toThrow("disk full");
  expect(fs.existsSync(other)).toBe(false);
});

test.each(["", "short", "=".repeat(43), "A".repeat(42) + "B", "A".repeat(44)])(
  "the text %j is no node secret, and is not repeated",
  (text) => {
    const path = join(temp.path, "wrong");
    writeFileSync(path, text);
    expect(() => readNodeSecret(path)).toThrow(/^nodeSecretFile: got .*wrong, which holds no node secret/);
  },
);

test("a watermark is read back as written, and a damaged one is none", () => {
  const watermark = { residency: "eu", incarnation: "i1", seq: 7, tx: "t", revision: 99 };
  expect(readWatermark(temp.path)).toBeUndefined();
  writeWatermark(temp.path, watermark);
  expect(readWatermark(temp.path)).toEqual(watermark);
  for (const text of ["", "{", "null", "{}", JSON.stringify({ ...watermark, seq: "7" })]) {
    writeFileSync(join(temp.path, "watermark.json"), text);
    expect(readWatermark(temp.path)).toBeUndefined();
  }
});

verifies("R22", "a directory is regressed exactly when it tells less than was seen", () => {
  const seen = { residency: "eu", incarnation: "i1", seq: 7, tx: "t", revision: 99 };
  const told = { incarnation: "i1", seq: 7, lastRevision: 99, txAtWatermark: "t" };
  const judge = (change: Partial<typeof told> | { txAtWatermark: undefined }) =>
    regressionDetail({ ...told, ...change }, seen);
  expect(judge({})).toBeUndefined();
  expect(judge({ seq: 8, lastRevision: 100 })).toBeUndefined();
  expect(judge({ txAtWatermark: undefined, seq: 8 })).toBeUndefined();
  expect(judge({ lastRevision: 98 })).toContain("--above 99");
  expect(judge({ seq: 6 })).toContain("ends at change 6");
  expect(judge({ txAtWatermark: "another" })).toContain("is another one");
  // After a fence the numbers of changes mean nothing, revisions still do.
  expect(judge({ incarnation: "i2", seq: 1, txAtWatermark: "another" })).toBeUndefined();
  expect(judge({ incarnation: "i2", lastRevision: 98 })).toContain("--above 99");
});
