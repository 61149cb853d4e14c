// Files that appear together or not at all, also where the file system has no hard links.

import fs, { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { createTempDir, type TempDir } from "@moor/testkit";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { placeFiles } from "../src/file-placement.ts";

let temp: TempDir;

beforeEach(async () => {
  temp = await createTempDir("placement");
});
afterEach(async () => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  await temp.remove();
});

const at = (name: string) => join(temp.path, name);
const place = (isForced: boolean) =>
  placeFiles(
    ["a", "b"].map((name) => ({ path: at(name), text: `new ${name}`, mode: 0o600 })),
    { isForced, forceOption: "--force" },
  );

/** Makes links fail as a file system does; from the `first`th on. */
function failLinks(code: string, first = 1): void {
  const { linkSync } = fs;
  let asked = 0;
  vi.spyOn(fs, "linkSync").mockImplementation((from, to) => {
    asked += 1;
    if (asked >= first) throw Object.assign(new Error(code), { code });
    linkSync(from, to);
  });
  syncBuiltinESMExports();
}

test.each(["EPERM", "ENOTSUP", "ENOSYS"])("where links say %s, files are placed all the same", (code) => {
  failLinks(code);
  place(false);
  writeFileSync(at("a"), "changed since");
  place(true);
  expect(["a", "a.old", "b"].map((name) => readFileSync(at(name), "utf8"))).toEqual([
    "new a",
    "changed since",
    "new b",
  ]);
  expect(statSync(at("a")).mode & 0o777).toBe(0o600);
});

test("when one file cannot be placed, those that were there are back and none of the others stays", () => {
  writeFileSync(at("a"), "old a");
  failLinks("EIO", 2);
  expect(() => place(true)).toThrow(/EIO/);
  expect(readdirSync(temp.path)).toEqual(["a"]);
  expect(readFileSync(at("a"), "utf8")).toBe("old a");
});

test("a file that comes in between is not replaced", () => {
  vi.spyOn(fs, "linkSync").mockImplementation((_, to) => {
    writeFileSync(to, "somebody else's");
    throw Object.assign(new Error("no links"), { code: "EPERM" });
  });
  syncBuiltinESMExports();
  expect(() => place(false)).toThrow(/EEXIST/);
  expect(readFileSync(at("a"), "utf8")).toBe("somebody else's");
  expect(existsSync(at("b"))).toBe(false);
});
