// `npm test`: all rings, then one line alone, "N passed, N failed" (and ", N skipped"), under the names of what was skipped
// or failed, and why.
// Arguments go to Vitest: `npm test -- packages/protocol`, `npm test -- --project unit`.
//
// I1  The exit code is 0 only if something passed, nothing failed, and Vitest itself ended well.
// I2  A process that a test leaves behind is a failure: it is found by a mark in its environment, and killed.
// I3  What tests and their processes write to the temporary folder is in one folder of this run, deleted at its end.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { COUNT_FILE_VARIABLE, type TestCount } from "./count-reporter.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const runId = randomUUID();
/** Inherited by every process a test starts. */
const RUN_MARK = `MOOR_TEST_RUN=${runId}`;

/** The run's own temporary folder. The user that PostgreSQL runs as when the tests run as root may pass through it. */
const runDir = mkdtempSync(path.join(tmpdir(), "moor-run-"));
chmodSync(runDir, 0o711);
const countFile = path.join(runDir, "count.json");

/** Runs Vitest as a child; gives its exit code, 128 when a signal ended it. */
function runVitest(): Promise<number> {
  const args = ["node_modules/vitest/vitest.mjs", "run"];
  const reporters = ["--reporter=default", "--reporter=./scripts/count-reporter.ts"];
  const vitest = spawn(process.execPath, [...args, ...reporters, ...process.argv.slice(2)], {
    cwd: root,
    stdio: "inherit",
    env: {
      ...process.env,
      [COUNT_FILE_VARIABLE]: countFile,
      MOOR_TEST_RUN: runId,
      TMPDIR: runDir,
      // The tests start some hundred processes of the same sources: each but the first finds them compiled.
      NODE_COMPILE_CACHE: path.join(runDir, "compiled"),
    },
  });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => vitest.kill(signal));
  return new Promise((resolve, reject) => {
    vitest.once("error", reject);
    vitest.once("close", (code) => resolve(code ?? 128));
  });
}

function readCount(): TestCount {
  try {
    return JSON.parse(readFileSync(countFile, "utf8")) as TestCount;
  } catch {
    console.error("Vitest ended without a count.");
    return { passed: 0, failures: ["Vitest itself"], skipped: [] };
  }
}

/** Kills the processes that carry this run's mark and gives a line for each. Only where there is a /proc. */
function killLeftovers(): string[] {
  if (process.platform !== "linux") return [];
  const lines: string[] = [];
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) continue;
    try {
      if (!readFileSync(`/proc/${entry}/environ`, "utf8").split("\0").includes(RUN_MARK)) continue;
      const [program = "", ...rest] = readFileSync(`/proc/${entry}/cmdline`, "utf8").split("\0");
      process.kill(Number(entry), "SIGKILL");
      lines.push(`left behind by a test: process ${entry}, ${program} ${rest[0] ?? ""}`);
    } catch {
      // Gone in the meantime, or another user's.
    }
  }
  return lines;
}

const exitCode = await runVitest();
const count = readCount();
const leftovers = killLeftovers();
rmSync(runDir, { recursive: true, force: true, maxRetries: 3 });

for (const { title, reason } of count.skipped) console.log(`skipped: ${title} (${reason})`);
for (const line of leftovers) console.log(line);
for (const failure of count.failures) console.log(`failed: ${failure}`);
const failed = count.failures.length + leftovers.length;
const isGood = exitCode === 0 && failed === 0 && count.passed > 0;
if (count.passed === 0 && failed === 0) console.log("No test ran: that is a failure too.");
const skipped = count.skipped.length === 0 ? "" : `, ${count.skipped.length} skipped`;
console.log(`${count.passed} passed, ${failed} failed${skipped}`);
process.exitCode = isGood ? 0 : 1;
