// A small file of the data directory, readable by its owner only, replaced as a whole: a reader sees the old or the new one.

import { renameSync, rmSync } from "node:fs";
import { writeDurableFile } from "./durable-file.ts";

/** Replaces `path`. Throws what node:fs throws. */
export function replaceFile(path: string, text: string): void {
  const draft = `${path}.new`;
  // A draft of an earlier start may have another mode, which opening would keep.
  rmSync(draft, { force: true });
  writeDurableFile(draft, text);
  renameSync(draft, path);
}
