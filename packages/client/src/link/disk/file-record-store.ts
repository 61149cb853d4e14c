// A box's link record as a file.
//
// Spec: L12 (mode 0600, temporary file, fsync, rename, directory fsync), L13 (`.bad`).
// I1  At every moment the path holds the old record or the new one, whole. I2  A save that failed leaves no file behind,
//     as far as the disk lets it.

import { dirname } from "node:path";
import type { LinkRecordStore } from "../record-store.ts";
import { nodeDisk, type Disk } from "./disk.ts";

/** A store for the record at `path`. Its folder must exist. */
export function createFileRecordStore(path: string, disk: Disk = nodeDisk): LinkRecordStore {
  const beside = `${path}.new`;
  return {
    load: async () => (await disk.read(path))?.toString("utf8"),
    save: async (text) => {
      try {
        await writeDurably(disk, beside, text);
        await disk.rename(beside, path);
      } catch (error) {
        await disk.remove(beside).catch(() => {});
        throw error;
      }
      await disk.syncDir(dirname(path));
    },
    setAside: async () => {
      await disk.rename(path, `${path}.bad`);
      await disk.syncDir(dirname(path));
    },
  };
}

async function writeDurably(disk: Disk, path: string, text: string): Promise<void> {
  // What a run before left there may have another mode.
  await disk.remove(path);
  const file = await disk.open(path, "replace");
  try {
    await file.append(Buffer.from(`${text}\n`));
    await file.sync();
  } finally {
    await file.close();
  }
}
