// Runs a node in this process until it is told to leave: how `moor dev` and `moor serve` start, announce and end.
//
// Spec: L24.
// I1  The first SIGTERM or SIGINT, or an operator's order, ends it politely with 0; before it serves, a signal does so at
//     once. SIGUSR2 is the same from a process that has taken over its port.
// I2  A second signal hurries it: it gives up what it still waits for and ends with 1. A third ends it where it stands.
//     SIGUSR2 does neither: two processes that want to take over would cost the calls that one of them lets end.
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

/** Sent by a process that has taken over the port. */
const TAKEN_OVER = "SIGUSR2";

/** Longest time a node that was told twice takes to end. Milliseconds. */
const HURRY_MS = 5_000;

type LeaveCause = NodeJS.Signals | "replaced" | "ordered";

/** Resolves when the node has ended. */
export async function runNode({ start, announce, graceMs, isQuiet }: NodeRun): Promise<void> {
  const signals = nextSignal(["SIGTERM", "SIGINT", TAKEN_OVER], [TAKEN_OVER]);
  const hurry = new AbortController();
  signals.onFurther((count) => {
    const stop = () => process.exit(EXIT_CODE.refused);
    if (count > 2) stop();
    setTimeout(stop, HURRY_MS).unref();
    hurry.abort();
  });
  const started = await Promise.race([start(), signals.first]);
  // Nothing has been promised to anybody yet, and a start may wait long for its database.
  if (typeof started === "string") process.exit(EXIT_CODE.done);
  announce(started);
  const cause = await Promise.race<LeaveCause>([
    signals.first,
    started.replaced.then(() => "replaced"),
    started.ordered.then(() => "ordered"),
  ]);
  sayWhy(cause, isQuiet);
  await started.close({ graceMs, isTakenOver: cause === TAKEN_OVER, hurry: hurry.signal });
  signals.release();
  if (cause === "replaced" || hurry.signal.aborted) process.exitCode = EXIT_CODE.refused;
}

function sayWhy(cause: LeaveCause, isQuiet: boolean): void {
  if (cause === "replaced") {
    return printMessage("Another process runs under this node's id: this one stops.");
  }
  if (isQuiet) return;
  if (cause === "ordered") return printMessage("Stopping, as an operator has ordered.");
  if (cause === TAKEN_OVER) return printMessage("Stopping: another process has taken over the port.");
  printMessage("Stopping; once more to hurry, a third time to stop where it stands.");
}
