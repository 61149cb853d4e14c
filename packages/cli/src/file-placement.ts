// Files that appear whole or not at all, and replace others only when asked to.
//
// I1  Without force an existing file stays as it is, and none of the others is written.
// I2  With force what was there is kept beside it as `.old`.

import { closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { ConfigError, errorCodeOf } from "@moor/runtime";

export interface PlacedFile {
  readonly path: string;
  readonly text: string;
  /** Permissions, e.g. 0o600. */
  readonly mode: number;
}

/** Writes the files. Throws ConfigError when one exists and `isForced` is false, or when one cannot be written. */
export function placeFiles(
  files: readonly PlacedFile[],
  options: { readonly isForced: boolean; readonly forceOption: string },
): void {
  const { isForced, forceOption } = options;
  const present = files.find(({ path }) => existsSync(path));
  if (present !== undefined && !isForced) {
    throw new ConfigError(
      "--dir",
      `${present.path}, which exists`,
      `other files, or ${forceOption} to replace them`,
    );
  }
  const written: string[] = [];
  try {
    for (const file of files) written.push(writeBeside(file));
    for (const { path } of files) if (existsSync(path)) renameSync(path, `${path}.old`);
    for (const { path } of files) linkSync(`${path}.new`, path); // unlike a rename it never replaces
  } catch (error) {
    const code = errorCodeOf(error, "unusable");
    throw new ConfigError("--dir", `${files[0]?.path ?? ""} (${code})`, "a folder that can be written to");
  } finally {
    for (const path of written) rmSync(path, { force: true });
  }
}

/** Writes `path.new` durably; gives its path. */
function writeBeside({ path, text, mode }: PlacedFile): string {
  const beside = `${path}.new`;
  rmSync(beside, { force: true });
  const file = openSync(beside, "wx", mode);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  return beside;
}
