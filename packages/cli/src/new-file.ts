// A file that does not exist yet, the owner's only, and gone again when its making failed.
//
// I1  An existing file is never overwritten.

import { closeSync, fsyncSync, ftruncateSync, openSync, rmSync, writeFileSync } from "node:fs";
import { ConfigError, errorCodeOf } from "@moor/runtime";

/** A file that is being written. */
export interface NewFile {
  write(text: string): void;
  /** Makes what was written durable. */
  finish(): void;
  /** Takes the file away. */
  abandon(): void;
}

/**
 * Makes `path` with mode 0600. Throws ConfigError for `option` when there is one already, or it cannot be made.
 *
 * @param reservedBytes room that is taken on the disk now, for what is written later; default none
 */
export function openNewFile(option: string, path: string, reservedBytes = 0): NewFile {
  let file: number;
  try {
    file = openSync(path, "wx", 0o600);
  } catch (error) {
    const got = `${path} (${errorCodeOf(error, "unusable")})`;
    throw new ConfigError(option, got, "the path of a file that does not exist yet");
  }
  const abandon = () => {
    closeSync(file);
    rmSync(path, { force: true });
  };
  try {
    // By a descriptor of its own: the writing begins at the start.
    if (reservedBytes > 0) writeFileSync(path, "\n".repeat(reservedBytes), { flag: "r+", flush: true });
  } catch (error) {
    abandon();
    const got = `${path} (${errorCodeOf(error, "unusable")})`;
    throw new ConfigError(option, got, "the path of a file that can be written");
  }
  let bytes = 0;
  return {
    // Unlike writeSync it goes on where a nearly full disk took a part.
    write: (text) => {
      writeFileSync(file, text);
      bytes += Buffer.byteLength(text);
    },
    finish: () => {
      ftruncateSync(file, bytes);
      fsyncSync(file);
      closeSync(file);
    },
    abandon,
  };
}
