// The data directory of a node: made if missing, readable by its owner only, used by one process at a time.
//
// I1  The lock is a lock of the operating system held through SQLite: it ends with the process, whatever ends it.
// I2  No file of the folder is opened and closed beside SQLite once it exists: closing any descriptor of a file gives
//     up this process's locks on it.

import { chmodSync, closeSync, existsSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ConfigError, errorCodeOf } from "@moor/runtime";

const OWNER_ONLY_DIR = 0o700;
const OWNER_ONLY_FILE = 0o600;

/** A data directory this process alone holds. */
export interface DataFolder {
  /** The database's path. */
  readonly databasePath: string;
  /** Lets another process have the directory. */
  release(): void;
}

/**
 * Makes and locks `dir` with a database file in it. Throws ConfigError when it cannot be used or another process uses it.
 *
 * @param fileName `moor.sqlite` where the directory itself lives here, `replica.sqlite` for a copy of one elsewhere
 */
export function openDataFolder(dir: string, fileName: "moor.sqlite" | "replica.sqlite"): DataFolder {
  try {
    if (makeFolder(dir)) chmodSync(dir, OWNER_ONLY_DIR);
    ensureOwnerOnlyFile(join(dir, "lock"));
    ensureOwnerOnlyFile(join(dir, fileName));
  } catch (error) {
    const reason = errorCodeOf(error, "unusable");
    throw new ConfigError("--data", `${dir} (${reason})`, "a directory this user may create and write");
  }
  const lock = new DatabaseSync(join(dir, "lock"), { timeout: 0 });
  try {
    lock.exec("begin exclusive");
  } catch {
    lock.close();
    throw new ConfigError(
      "--data",
      `${dir}, which another moor process is using`,
      "a directory of its own: stop that process, or give another directory",
    );
  }
  return { databasePath: join(dir, fileName), release: () => lock.close() };
}

/** Whether no process holds `dir` now; true where there is no such directory yet. */
export function isDataFolderFree(dir: string): boolean {
  const path = join(dir, "lock");
  if (!existsSync(path)) return true;
  const lock = new DatabaseSync(path, { timeout: 0 });
  try {
    lock.exec("begin exclusive");
    return true;
  } catch {
    return false;
  } finally {
    lock.close();
  }
}

/** Makes `dir` and the folders above it that are missing; false if it was there. */
function makeFolder(dir: string): boolean {
  if (existsSync(dir)) {
    if (statSync(dir).isDirectory()) return false;
    throw Object.assign(new Error("not a directory"), { code: "ENOTDIR" });
  }
  // One by one: Node's own recursive form never returns where a file system says ENOENT of a folder that cannot be made.
  if (dirname(dir) !== dir) makeFolder(dirname(dir));
  mkdirSync(dir, { mode: OWNER_ONLY_DIR });
  return true;
}

/** SQLite gives its journal files the mode of the database, so the database is made first. */
function ensureOwnerOnlyFile(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, "wx", OWNER_ONLY_FILE));
  chmodSync(path, OWNER_ONLY_FILE);
}
