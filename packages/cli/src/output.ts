// What commands print: answers to stdout, everything else to stderr.

import Table from "cli-table3";
import { redactKeys } from "./redact.ts";

/** One JSON value on one line of stdout. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** Text as the answer, on stdout. */
export function printAnswer(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** A message for people, on stderr. */
export function printMessage(text: string): void {
  process.stderr.write(`${redactKeys(text)}\n`);
}

/** Rows under headings, without lines: it pastes well. */
export function printTable(headings: readonly string[], rows: readonly (readonly string[])[]): void {
  const table = new Table({ ...PLAIN, head: headings.map((heading) => heading.toUpperCase()) });
  for (const row of rows) table.push([...row]);
  printAnswer(trimLines(table.toString()));
}

/** Names and values, one pair a line. */
export function printPairs(pairs: readonly (readonly [name: string, value: string])[]): void {
  const table = new Table(PLAIN);
  for (const [name, value] of pairs) table.push([name, value]);
  printAnswer(trimLines(table.toString()));
}

const BORDERS = ["top", "bottom", "left", "right", "mid"] as const;
const PLAIN = {
  chars: Object.fromEntries([
    ...BORDERS.flatMap((side) => [[side, ""] as const, [`${side}-mid`, ""] as const]),
    ["top-left", ""],
    ["top-right", ""],
    ["bottom-left", ""],
    ["bottom-right", ""],
    ["mid-mid", ""],
    ["middle", "  "],
  ]),
  style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
};

function trimLines(text: string): string {
  return text
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}
