// Files that appear whole or not at all, and replace others only when asked to.
//
// I1  Without force an existing file stays as it is, and none of the others is written.
// I2  With force what was there is kept beside it as `.old`.
// I3  When one cannot be placed, all are as they were before.

import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
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
  const undo: (() => void)[] = [];
  try {
    for (const file of files) written.push(writeBeside(file));
    for (const { path } of files) {
      if (!existsSync(path)) continue;
      renameSync(path, `${path}.old`);
      undo.push(() => renameSync(`${path}.old`, path));
    }
    for (const { path } of files) {
      place(`${path}.new`, path);
      undo.push(() => rmSync(path));
    }
  } catch (error) {
    for (const step of undo.toReversed()) step();
    const code = errorCodeOf(error, "unusable");
    throw new ConfigError("--dir", `${files[0]?.path ?? ""} (${code})`, "a folder that can be written to");
  } finally {
    for (const path of written) rmSync(path, { force: true });
  }
}

/** What a file system says that has no hard links. */
const NO_LINKS = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"];

/** Gives the file at `beside` its name `path`, which nothing has. */
function place(beside: string, path: string): void {
  try {
    linkSync(beside, path); // Unlike a rename it never replaces.
  } catch (error) {
    if (!NO_LINKS.includes(errorCodeOf(error, ""))) throw error;
    closeSync(openSync(path, "wx", 0o600)); // The name is claimed, so that the rename replaces nothing of anybody's.
    renameSync(beside, path);
  }
}

/** Writes `path.new` durably; gives its path. */
function writeBeside({ path, text, mode }: PlacedFile): string {
  const beside = `${path}.new`;
  rmSync(beside, { force: true });
  const file = openSync(beside, "wx", mode);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  return beside;
}
