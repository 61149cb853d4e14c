// A Vitest reporter that writes down how a run ended, for scripts/run-tests.ts: Vitest's own JSON says neither why a test
// was skipped nor that an error escaped every test.

import { writeFileSync } from "node:fs";
import type { Reporter, TestModule } from "vitest/node";

/** Name of the environment variable that holds the file to write. */
export const COUNT_FILE_VARIABLE = "MOOR_TEST_COUNT_FILE";

export interface TestCount {
  readonly passed: number;
  /** Failed tests, files that could not be run, and errors outside of any test. */
  readonly failed: number;
  readonly skipped: readonly { readonly title: string; readonly reason: string }[];
}

/** The counts of a finished run. */
function countTests(modules: readonly TestModule[], strayErrorCount: number): TestCount {
  let passed = 0;
  let failed = strayErrorCount;
  const skipped: { title: string; reason: string }[] = [];
  for (const testModule of modules) {
    let failedHere = 0;
    for (const testCase of testModule.children.allTests()) {
      const result = testCase.result();
      if (result.state === "passed") passed += 1;
      else if (result.state === "skipped") {
        skipped.push({ title: testCase.fullName, reason: result.note ?? "no reason given" });
      } else failedHere += 1;
    }
    failed += failedHere === 0 && testModule.state() === "failed" ? 1 : failedHere;
  }
  return { passed, failed, skipped };
}

/** Vitest loads reporters by their default export. */
export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], strayErrors: readonly unknown[]): void {
    const file = process.env[COUNT_FILE_VARIABLE];
    if (file !== undefined) writeFileSync(file, JSON.stringify(countTests(modules, strayErrors.length)));
  }
}
