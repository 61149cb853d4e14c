// The lines of a file that a command reads.

import { createReadStream, existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { ConfigError } from "@moor/runtime";

/** The lines of a file, read as they are asked for. Throws ConfigError when there is none. */
export function readLines(path: string): AsyncIterable<string> {
  if (!existsSync(path)) throw new ConfigError("FILE", `${path} (ENOENT)`, "an export");
  return linesOf(path);
}

/** The interface is made with the first line: one that waits for its reader loses lines. */
async function* linesOf(path: string): AsyncGenerator<string> {
  yield* createInterface({ input: createReadStream(path, "utf8"), crlfDelay: Infinity });
}
