// The package runs anywhere: it imports nothing but itself and asks nothing of the machine.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const folder = fileURLToPath(new URL("../src", import.meta.url));
const sources = readdirSync(folder).map((file) => ({
  file,
  // Comments may name what code may not use.
  code: readFileSync(`${folder}/${file}`, "utf8").replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, ""),
}));

test("no source imports anything but its neighbours", () => {
  expect(sources.length).toBeGreaterThan(10);
  for (const { file, code } of sources) {
    for (const [, target] of code.matchAll(/from "([^"]+)"/g))
      expect(target, file).toMatch(/^\.\/[a-z0-9-]+\.ts$/);
    expect(code, file).not.toMatch(/\bimport\s*\(|\brequire\s*\(/);
  }
});

test("no source reads a clock, draws a random number, sets a timer or uses what only Node has", () => {
  for (const { file, code } of sources) {
    expect(code, file).not.toMatch(
      /Date\.now|new Date\(\)|Math\.random|setTimeout|setInterval|performance\b/,
    );
    expect(code, file).not.toMatch(/\bBuffer\b|\bprocess\b|\bglobalThis\b|\bfetch\b/);
  }
});
