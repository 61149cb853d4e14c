// Runs a node in this process until a signal: how `moor dev` and `moor serve` start, announce and end.
//
// I1  The first SIGTERM or SIGINT ends it politely with 0, within the grace; before it serves, at once.
// I2  A second one ends it at once, with 1.
// I3  A node whose identity another process took ends by itself, with 1.

import type { MoorNode } from "@moor/server";
import { EXIT_CODE } from "./exit-code.ts";
import { printMessage } from "./output.ts";
import { nextSignal } from "./signals.ts";

/** What to run. */
export interface NodeRun {
  /** Starts the node; rejects with ConfigError. */
  readonly start: () => Promise<MoorNode>;
  /** Tells the reader that it serves. */
  readonly announce: (node: MoorNode) => void;
  /** Time that calls under way get after the first signal. Milliseconds. */
  readonly graceMs: number;
  /** Nothing but the announcement is printed. */
  readonly isQuiet: boolean;
}

/** Resolves when the node has ended. */
export async function runNode({ start, announce, graceMs, isQuiet }: NodeRun): Promise<void> {
  const signals = nextSignal(["SIGTERM", "SIGINT"]);
  signals.onSecond(() => process.exit(EXIT_CODE.refused));
  const started = await Promise.race([start(), signals.first]);
  // Nothing has been promised to anybody yet, and a start may wait long for its database.
  if (typeof started === "string") process.exit(EXIT_CODE.done);
  announce(started);
  const cause = await Promise.race([signals.first, started.replaced.then(() => "replaced" as const)]);
  if (cause === "replaced") printMessage("Another process runs under this node's id: this one stops.");
  else if (!isQuiet) printMessage("Stopping; once more to stop at once.");
  await started.close({ graceMs });
  signals.release();
  if (cause === "replaced") process.exitCode = EXIT_CODE.refused;
}
