// Every requirement of docs/protocol is verified by a named test, or listed as not yet due.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { readNotYetDueIds, readSpecIds } from "../../scripts/spec-ids.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Test sources: the files under `test/` and `packages/*\/test/`. */
function testSources(): string[] {
  const packages = readdirSync(`${root}packages`).map((name) => `packages/${name}/test`);
  return ["test", ...packages].flatMap((dir) => {
    const files = readdirOrNone(`${root}${dir}`);
    return files.filter((file) => file.endsWith(".ts")).map((file) => `${root}${dir}/${file}`);
  });
}

function readdirOrNone(dir: string): string[] {
  try {
    return readdirSync(dir, { recursive: true, encoding: "utf8" });
  } catch {
    return [];
  }
}

interface Claims {
  readonly ids: ReadonlySet<string>;
  /** Calls whose ids are not literals, as `file: start of the call`. */
  readonly unreadable: readonly string[];
}

function readClaims(): Claims {
  const ids = new Set<string>();
  const unreadable: string[] = [];
  for (const file of testSources()) {
    const source = readFileSync(file, "utf8").replaceAll(/^\s*\/\/.*$/gm, "");
    for (const call of source.matchAll(/\bverifies\(\s*(\[[^\]]*\]|"[^"]*"|.{0,20})/g)) {
      const named = [...(call[1] ?? "").matchAll(/"([^"]*)"/g)].map((match) => match[1] ?? "");
      if (named.length === 0) unreadable.push(`${file.slice(root.length)}: ${call[0]}`);
      for (const id of named) ids.add(id);
    }
  }
  return { ids, unreadable };
}

const specIds = readSpecIds();
const notYetDue = readNotYetDueIds();
const claims = readClaims();

test("the ids of docs/protocol are unique and complete", () => {
  expect(new Set(specIds).size).toBe(specIds.length);
  const count = (letter: string) => specIds.filter((id) => id.startsWith(letter)).length;
  expect({ R: count("R"), T: count("T"), L: count("L") }).toEqual({ R: 25, T: 25, L: 34 });
});

test("every claim to verify names its ids as literals, and only ids that docs/protocol defines", () => {
  expect(claims.unreadable).toEqual([]);
  expect([...claims.ids].filter((id) => !specIds.includes(id))).toEqual([]);
});

test("every requirement that is due is verified by a test", () => {
  const due = specIds.filter((id) => !notYetDue.includes(id));
  console.log(`not yet due: ${notYetDue.join(" ")}`);
  expect(due.filter((id) => !claims.ids.has(id))).toEqual([]);
});

test("nothing on the list of what is not yet due is unknown or verified already", () => {
  expect(notYetDue.filter((id) => !specIds.includes(id) || claims.ids.has(id))).toEqual([]);
});
