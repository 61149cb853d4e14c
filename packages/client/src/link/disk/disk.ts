// The port by which what a box keeps reaches its disk: few operations, each of which may fail.
//
// Spec: L12, L20. Tests put disks behind it that are full, read-only or gone.
// I1  Files are made with mode 0600. I2  Nothing here retries or hides a failure, but for a file that is not there.

import { constants } from "node:fs";
import { open, readdir, readFile, rename, rm, type FileHandle } from "node:fs/promises";

/** An open file. */
export interface DiskFile {
  /** Bytes in it when it was opened. */
  readonly bytesAtOpen: number;
  /** Writes all of it at the end. */
  append(bytes: Uint8Array): Promise<void>;
  /** Resolves when what was written survives a power cut. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** How a file is opened: `append` to what is there, or `replace` it. Either makes it if it is not there. */
export type DiskOpenMode = "append" | "replace";

/** A disk. */
export interface Disk {
  /** All bytes of a file; undefined if there is none. */
  read(path: string): Promise<Buffer | undefined>;
  /** `byteCount` bytes from `offset`; fewer where the file ends before. */
  readAt(path: string, offset: number, byteCount: number): Promise<Buffer>;
  /** Names in a folder. */
  list(dir: string): Promise<string[]>;
  open(path: string, mode: DiskOpenMode): Promise<DiskFile>;
  rename(from: string, to: string): Promise<void>;
  /** Removes a file; one that is not there is removed already. */
  remove(path: string): Promise<void>;
  /** Resolves when new names and renames in a folder survive a power cut. */
  syncDir(dir: string): Promise<void>;
}

const FLAGS: Readonly<Record<DiskOpenMode, number>> = {
  append: constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND,
  replace: constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC,
};
const MODE = 0o600;

/** The disk of this machine. */
export const nodeDisk: Disk = {
  read: async (path) => {
    try {
      return await readFile(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  },
  readAt: (path, offset, byteCount) =>
    withFile(path, constants.O_RDONLY, async (file) => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(byteCount), 0, byteCount, offset);
      return buffer.subarray(0, bytesRead);
    }),
  list: (dir) => readdir(dir),
  open: async (path, mode) => openedFile(await open(path, FLAGS[mode], MODE)),
  rename: (from, to) => rename(from, to),
  remove: (path) => rm(path, { force: true }),
  syncDir: (dir) => withFile(dir, constants.O_RDONLY, (file) => file.sync()),
};

async function openedFile(file: FileHandle): Promise<DiskFile> {
  try {
    const { size } = await file.stat();
    return {
      bytesAtOpen: size,
      // writeFile on a handle writes on until all is written, where `write` may stop short.
      append: (bytes) => file.writeFile(bytes),
      sync: () => file.datasync(),
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function withFile<T>(path: string, flags: number, use: (file: FileHandle) => Promise<T>): Promise<T> {
  const file = await open(path, flags);
  try {
    return await use(file);
  } finally {
    await file.close();
  }
}
