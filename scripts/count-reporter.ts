// A Vitest reporter that writes down how a run ended, for scripts/run-tests.ts: Vitest's own JSON says neither why a test
// was skipped nor that an error escaped every test.

import { writeFileSync } from "node:fs";
import type { Reporter, TestModule } from "vitest/node";

/** Name of the environment variable that holds the file to write. */
export const COUNT_FILE_VARIABLE = "MOOR_TEST_COUNT_FILE";

export interface TestCount {
  readonly passed: number;
  /** Failed tests, files that could not be run, and errors outside of any test: by name, and why. */
  readonly failures: readonly string[];
  readonly skipped: readonly { readonly title: string; readonly reason: string }[];
}

/** The counts of a finished run. */
function countTests(modules: readonly TestModule[], strayErrors: readonly unknown[]): TestCount {
  let passed = 0;
  const failures = strayErrors.map((error) => `outside of any test: ${firstLineOf(error)}`);
  const skipped: { title: string; reason: string }[] = [];
  for (const testModule of modules) {
    const failuresBefore = failures.length;
    for (const testCase of testModule.children.allTests()) {
      const result = testCase.result();
      const title = `${testModule.relativeModuleId} > ${testCase.fullName}`;
      if (result.state === "passed") passed += 1;
      else if (result.state === "skipped") skipped.push({ title, reason: result.note ?? "no reason given" });
      else failures.push(`${title}: ${firstLineOf(result.errors?.[0])}`);
    }
    if (failures.length === failuresBefore && testModule.state() === "failed") {
      failures.push(`${testModule.relativeModuleId}: ${firstLineOf(testModule.errors()[0])}`);
    }
  }
  return { passed, failures, skipped };
}

function firstLineOf(error: unknown): string {
  const message = (error as { message?: unknown } | undefined)?.message;
  return typeof message === "string" ? (message.split("\n", 1)[0] as string) : "no error given";
}

/** Vitest loads reporters by their default export. */
export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], strayErrors: readonly unknown[]): void {
    const file = process.env[COUNT_FILE_VARIABLE];
    if (file !== undefined) writeFileSync(file, JSON.stringify(countTests(modules, strayErrors)));
  }
}
