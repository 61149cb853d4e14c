// The lines a process has written to one of its streams, kept and waited for.
//
// I1  A line is seen by `waitFor` whether it came before or after the call: no race between starting and waiting.

import type { Readable } from "node:stream";
import { createInterface } from "node:readline";
import { WAIT_MS_DEFAULT, within } from "./within.ts";

/** Which line to wait for: one that contains a text, matches an expression, or satisfies a predicate. */
export type LineMatch = string | RegExp | ((line: string) => boolean);

export interface LineLog {
  /** Every line so far, without its line break. */
  readonly lines: readonly string[];
  /** The first line that matches, from those kept or yet to come; rejects after `deadlineMs` or at the stream's end. */
  waitFor(match: LineMatch, deadlineMs?: number): Promise<string>;
  /** The whole text so far. */
  text(): string;
}

/** Starts collecting the lines of `stream`. */
export function collectLines(stream: Readable, name: string): LineLog {
  const lines: string[] = [];
  const waiting = new Set<{
    sees: (line: string) => boolean;
    found: (line: string) => void;
    ended: () => void;
  }>();
  let hasEnded = false;
  const reader = createInterface({ input: stream, crlfDelay: Infinity });
  reader.on("line", (line) => {
    lines.push(line);
    for (const waiter of waiting) if (waiter.sees(line)) waiter.found(line);
  });
  reader.on("close", () => {
    hasEnded = true;
    for (const waiter of waiting) waiter.ended();
  });

  const text = () => lines.join("\n");
  return {
    lines,
    text,
    waitFor(match, deadlineMs = WAIT_MS_DEFAULT) {
      const sees = matcher(match);
      const past = lines.find((line) => sees(line));
      if (past !== undefined) return Promise.resolve(past);
      const what = `a line on ${name} matching ${typeof match === "function" ? "a predicate" : String(match)}`;
      const describe = () => `lines so far:\n${lines.slice(-40).join("\n")}`;
      if (hasEnded) return Promise.reject(new Error(`${name} ended without ${what}; ${describe()}`));
      const line = new Promise<string>((found, reject) => {
        const waiter = {
          sees,
          found,
          ended: () => reject(new Error(`${name} ended without ${what}; ${describe()}`)),
        };
        waiting.add(waiter);
      });
      return within(line, what, deadlineMs, describe);
    },
  };
}

function matcher(match: LineMatch): (line: string) => boolean {
  if (typeof match === "function") return match;
  if (typeof match === "string") return (line) => line.includes(match);
  return (line) => match.test(line);
}
