// A folder that belongs to one test, private to its user.
//
// I1  What a test forgets to delete is deleted when its process exits.

import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

export interface TempDir {
  readonly path: string;
  /** Deletes the folder and everything in it. Allowed more than once. */
  remove(): Promise<void>;
}

const dirsLeft = new Set<string>();
process.on("exit", () => {
  for (const dir of dirsLeft) rmSync(dir, { recursive: true, force: true });
});

/** Creates an empty folder (mode 0700) under the system's temporary folder; its name starts with `moor-` and `label`. */
export async function createTempDir(label = "test"): Promise<TempDir> {
  const dir = await mkdtemp(path.join(tmpdir(), `moor-${label}-`));
  dirsLeft.add(dir);
  return {
    path: dir,
    remove: async () => {
      await rm(dir, { recursive: true, force: true, maxRetries: 3 });
      dirsLeft.delete(dir);
    },
  };
}
