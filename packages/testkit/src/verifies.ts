// A test that stands for requirements of docs/protocol: its ids are read from the source by the coverage test.

import { test } from "vitest";

/** `R12`, `T4`, `L7`: a requirement's id as docs/protocol numbers it. */
export type SpecId = `${"R" | "T" | "L"}${number}`;

/**
 * Declares a test that verifies one or more requirements.
 *
 * @param ids written as literals in the call, so that the coverage test finds them: `verifies("R12", …)` or
 *   `verifies(["R12", "R13"], …)`
 * @param claim what holds, as a sentence
 * @param deadlineMs milliseconds before the test is failed as hung; default is the ring's own
 */
export function verifies(
  ids: SpecId | readonly SpecId[],
  claim: string,
  run: () => void | Promise<void>,
  deadlineMs?: number,
): void {
  const label = typeof ids === "string" ? ids : ids.join(" ");
  test(`${label} · ${claim}`, run, deadlineMs);
}
