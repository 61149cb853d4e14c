// The ledger of boxes in other processes: a file to which each adds a line before it answers.
//
// Spec: L20. I1  A line that a killed process wrote in part is no act: it had not answered.

import { existsSync, readFileSync } from "node:fs";
import type { BoxAct } from "./link-command-verdict.ts";

/** Every act in the file, in order; none while there is no file. */
export function readActs(ledgerFile: string): readonly BoxAct[] {
  if (!existsSync(ledgerFile)) return [];
  return readFileSync(ledgerFile, "utf8").split("\n").flatMap(parseAct);
}

function parseAct(line: string): BoxAct[] {
  try {
    return [JSON.parse(line) as BoxAct];
  } catch {
    return [];
  }
}
