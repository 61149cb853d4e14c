// The vectors notice every rule of the pure machines being broken (`npm run vectors:break`).

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const script = fileURLToPath(new URL("../../scripts/break-rules.ts", import.meta.url));

test("at least one vector fails for each broken rule", { timeout: 120_000 }, () => {
  // Thousands of modules that nobody imports twice: not worth keeping compiled.
  const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: "1" };
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], { encoding: "utf8", env });
  const uncaught = stdout.split("\n").filter((line) => /SURVIVED|NOT APPLICABLE/.test(line));
  expect({ status, uncaught, stderr }).toEqual({ status: 0, uncaught: [], stderr: "" });
});
