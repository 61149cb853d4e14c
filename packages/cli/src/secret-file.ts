// A new file for a key, readable by its owner only.
//
// I1  The file is claimed before the key exists: a key is never made that cannot be kept.
// I2  An existing file is never overwritten.

import { closeSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import { errorCodeOf, ConfigError } from "@moor/runtime";

/** A claimed, empty file that takes one secret. */
export interface SecretFile {
  /** Writes the secret and a line end, durably. */
  fill(text: string): void;
  /** Removes the file again. */
  abandon(): void;
}

/** Claims `path` with mode 0600. Throws ConfigError for `option` when the file exists or cannot be made. */
export function claimSecretFile(option: string, path: string): SecretFile {
  const file = open(option, path);
  return {
    fill: (text) => {
      writeSync(file, `${text}\n`);
      fsyncSync(file);
      closeSync(file);
    },
    abandon: () => {
      closeSync(file);
      rmSync(path, { force: true });
    },
  };
}

function open(option: string, path: string): number {
  try {
    return openSync(path, "wx", 0o600);
  } catch (error) {
    const reason = errorCodeOf(error, "unusable");
    throw new ConfigError(option, `${path} (${reason})`, "the path of a file that does not exist yet");
  }
}
