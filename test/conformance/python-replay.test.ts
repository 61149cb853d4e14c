// The vectors replayed by replay.py: another language, another author's reading, no shared code.

import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import * as protocol from "@moor/protocol";
import { replayVectors } from "./replay-vectors.ts";

const script = fileURLToPath(new URL("./replay.py", import.meta.url));
const vectors = fileURLToPath(new URL("../../vectors", import.meta.url));

const hasPython =
  spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 9))"]).status === 0;
const reason = hasPython ? "" : " (skipped: no python3 of at least 3.9 here)";

function replay(folder: string): { readonly status: number | null; readonly lastLine: string } {
  const { status, stdout } = spawnSync("python3", [script, folder], { encoding: "utf8" });
  return { status, lastLine: stdout.trimEnd().split("\n").at(-1) ?? "" };
}

test.skipIf(!hasPython)(`Python passes every vector there is${reason}`, () => {
  const count = replayVectors(protocol).length;
  expect(replay(vectors)).toEqual({ status: 0, lastLine: `${count} passed, 0 failed` });
});

test.skipIf(!hasPython)(`Python's replay fails on a wrong vector${reason}`, () => {
  const folder = mkdtempSync(path.join(tmpdir(), "moor-vectors-"));
  try {
    cpSync(vectors, folder, { recursive: true });
    const file = path.join(folder, "timeouts.json");
    writeFileSync(file, readFileSync(file, "utf8").replace('"expectMs": 55000', '"expectMs": 55001'));
    expect(replay(folder)).toMatchObject({
      status: 1,
      lastLine: expect.stringMatching(/ passed, 1 failed$/),
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
