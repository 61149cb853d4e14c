// A disk of this machine whose operations fail as a test wants, and that keeps a journal of them.

import type { Disk, DiskFile } from "../../src/link/disk/disk.ts";
import { nodeDisk } from "../../src/link/disk/disk.ts";

/** What can be made to fail. */
export type DiskOperation =
  | "read"
  | "readAt"
  | "list"
  | "open"
  | "append"
  | "sync"
  | "rename"
  | "remove"
  | "syncDir";

/** A disk in a test's hands. */
export interface FailingDisk extends Disk {
  /** Operations that fail from now on. */
  readonly failing: Set<DiskOperation>;
  /** Operations that were tried, in order. */
  readonly journal: DiskOperation[];
  /** Operations after which the power is cut: nothing works any more; undefined: never. */
  cutAfter: number | undefined;
  /** Holds every `sync` back until its promise resolves; undefined: none is. */
  hold: Promise<void> | undefined;
  /** Bytes that the next append writes before it fails; undefined: all. */
  tornAfterBytes: number | undefined;
}

/** A disk that works until it is told otherwise. */
export function createFailingDisk(): FailingDisk {
  const failing = new Set<DiskOperation>();
  const journal: DiskOperation[] = [];
  const attempt = async <T>(operation: DiskOperation, run: () => Promise<T>): Promise<T> => {
    if (journal.length >= (disk.cutAfter ?? Infinity)) throw new Error("power cut");
    journal.push(operation);
    if (failing.has(operation)) throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
    return run();
  };
  const wrap = (file: DiskFile): DiskFile => ({
    bytesAtOpen: file.bytesAtOpen,
    append: async (bytes) => {
      const torn = disk.tornAfterBytes;
      disk.tornAfterBytes = undefined;
      if (torn !== undefined) {
        await file.append(bytes.subarray(0, torn));
        throw new Error("torn");
      }
      return attempt("append", () => file.append(bytes));
    },
    sync: async () => {
      await disk.hold;
      return attempt("sync", () => file.sync());
    },
    close: () => file.close(),
  });
  const disk: FailingDisk = {
    failing,
    journal,
    cutAfter: undefined,
    hold: undefined,
    tornAfterBytes: undefined,
    read: (path) => attempt("read", () => nodeDisk.read(path)),
    readAt: (path, offset, count) => attempt("readAt", () => nodeDisk.readAt(path, offset, count)),
    list: (dir) => attempt("list", () => nodeDisk.list(dir)),
    open: (path, mode) => attempt("open", async () => wrap(await nodeDisk.open(path, mode))),
    rename: (from, to) => attempt("rename", () => nodeDisk.rename(from, to)),
    remove: (path) => attempt("remove", () => nodeDisk.remove(path)),
    syncDir: (dir) => attempt("syncDir", () => nodeDisk.syncDir(dir)),
  };
  return disk;
}
