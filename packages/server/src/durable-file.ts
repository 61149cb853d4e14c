// A new file that is on disk when the call returns: what is in it, and its name in the folder.
//
// I1  An existing file is never written to. I2  It is readable by its owner only, whatever the umask.

import { closeSync, fchmodSync, fsyncSync, openSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

const OWNER_ONLY_FILE = 0o600;

/** Makes `path` with `text` in it, whole or not at all. Throws what node:fs throws: `EEXIST` where there is a file. */
export function writeDurableFile(path: string, text: string): void {
  const file = openSync(path, "wx", OWNER_ONLY_FILE);
  try {
    fchmodSync(file, OWNER_ONLY_FILE);
    writeFileSync(file, text);
    fsyncSync(file);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
  syncFolder(dirname(path));
}

/** Makes the names in a folder durable. Throws what node:fs throws. */
export function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
