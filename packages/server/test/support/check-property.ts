// Property tests that can be run again: a failure prints its seed and the command that repeats it.

import * as fc from "fast-check";

/**
 * Checks a property on random inputs.
 *
 * @param runs how many inputs; `MOOR_SEED` in the environment fixes them
 * @param file the test to run again, as vitest takes it
 */
export async function checkProperty<Inputs>(
  property: fc.IRawProperty<Inputs>,
  runs: number,
  file: string,
): Promise<void> {
  const seed = Number(process.env["MOOR_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const outcome = await fc.check(property, { seed, numRuns: runs });
  if (!outcome.failed) return;
  const rerun = `MOOR_SEED=${seed} npx vitest run --project unit ${file}`;
  throw new Error(`${fc.defaultReportMessage(outcome) ?? "failed"}\nagain with: ${rerun}`);
}
