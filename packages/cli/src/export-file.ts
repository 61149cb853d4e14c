// The file of an export: new, the owner's only, and gone again when the export failed.

import { closeSync, createReadStream, existsSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { errorCodeOf, ConfigError } from "@moor/runtime";

/** A file that is being written. */
export interface ExportFile {
  write(text: string): void;
  /** Makes what was written durable. */
  finish(): void;
  /** Takes the file away. */
  abandon(): void;
}

/** Makes the file. Throws ConfigError when there is one already, or it cannot be made. */
export function openExportFile(path: string): ExportFile {
  let file: number;
  try {
    file = openSync(path, "wx", 0o600);
  } catch (error) {
    const reason = errorCodeOf(error, "unusable");
    throw new ConfigError("FILE", `${path} (${reason})`, "the path of a file that does not exist yet");
  }
  return {
    write: (text) => void writeSync(file, text),
    finish: () => {
      fsyncSync(file);
      closeSync(file);
    },
    abandon: () => {
      closeSync(file);
      rmSync(path, { force: true });
    },
  };
}

/** The lines of a file, read as they are asked for. Throws ConfigError when there is none. */
export function readLines(path: string): AsyncIterable<string> {
  if (!existsSync(path)) throw new ConfigError("FILE", `${path} (ENOENT)`, "an export");
  return linesOf(path);
}

/** The interface is made with the first line: one that waits for its reader loses lines. */
async function* linesOf(path: string): AsyncGenerator<string> {
  yield* createInterface({ input: createReadStream(path, "utf8"), crlfDelay: Infinity });
}
