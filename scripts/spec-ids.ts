// The requirement ids of docs/protocol: all of them, and those that are not due yet.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Every id that docs/protocol defines (`- R12 …` at the start of a line), in the order of the documents. */
export function readSpecIds(): readonly string[] {
  const dir = `${root}docs/protocol`;
  const ids: string[] = [];
  for (const file of readdirSync(dir).sort()) {
    if (!file.endsWith(".md")) continue;
    for (const line of readFileSync(`${dir}/${file}`, "utf8").matchAll(/^- ([RTL]\d+) /gm)) {
      if (line[1] !== undefined) ids.push(line[1]);
    }
  }
  return ids;
}

/** Ids that what exists so far does not promise: test/conformance/not-yet-due.json. The list may only shrink. */
export function readNotYetDueIds(): readonly string[] {
  const file = readFileSync(`${root}test/conformance/not-yet-due.json`, "utf8");
  return (JSON.parse(file) as { ids: string[] }).ids;
}

/** Ids named in `text`, ranges such as `R6–R8` and `R6-R8` spelled out. */
export function expandIds(text: string): readonly string[] {
  const ids: string[] = [];
  for (const [, letter = "", from = "", , to] of text.matchAll(/\b([RTL])(\d+)(\s*[–-]\s*\1(\d+))?/g)) {
    for (let number = Number(from); number <= Number(to ?? from); number += 1) ids.push(`${letter}${number}`);
  }
  return ids;
}
