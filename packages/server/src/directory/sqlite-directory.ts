// The embedded directory: SQLite in the node's data directory, read here, written on a thread of its own.
//
// Spec: T1, T2, R22. Design: "Directory, changes, replicas".
// I1  One process per data directory (data-folder.ts).
// I2  When changes fail (disk full, read-only), they say directory_unavailable and reads go on.

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ConfigError, type Logger, type Runtime } from "@moor/runtime";
import { openDataFolder } from "./data-folder.ts";
import type { Directory, Replica } from "./directory.ts";
import { LocalReplica } from "./local-replica.ts";
import { ensureNodeSecret, NODE_SECRET_FILE } from "./node-secret.ts";
import { createDirectory } from "./operations/create-directory.ts";
import { DirectoryParts } from "./operations/directory-parts.ts";
import { ensureServiceKeyAtOpening } from "./operations/service-key-operations.ts";
import {
  assertResidencyName,
  assertSameResidency,
  foundation,
  resealing,
  type Foundation,
} from "./residency.ts";
import { createSqliteStatements } from "./sqlite-statements.ts";
import { SqliteFeed, SqliteStore } from "./sqlite-store.ts";
import { SqliteWriter, type WriterThread } from "./sqlite-writer.ts";
import type { WriterSettings } from "./sqlite-writing.ts";
import { READ } from "./statements.ts";
import { TokenKeyVault } from "./token-key-vault.ts";

/** Largest size of the database unless asked otherwise, bytes: about ten million tunnels, far below a usual disk. */
export const DATABASE_BYTES_MAX_DEFAULT = 16 * 1024 ** 3;
/** How long a reader waits for a lock, as of a backup. Milliseconds. */
const BUSY_MS = 5_000;
/** What an embedded directory needs. */
export interface SqliteDirectoryOptions extends Foundation {
  /** The data directory; made if missing. */
  readonly dir: string;
  readonly runtime: Runtime;
  readonly logger: Logger;
  /** 32 bytes. Default: those of `node.secret` in the data directory, minted at the first start. */
  readonly nodeSecret?: Uint8Array | undefined;
  /** Largest size of the database, bytes; changes beyond it say directory_unavailable. Default 16 GiB. */
  readonly databaseBytesMax?: number;
  /** Starts the writer's thread; for tests that do without one. */
  readonly startWorker?: (settings: WriterSettings) => WriterThread;
}

/** An open directory. The replica is closed with the directory. */
export interface OpenDirectory {
  readonly directory: Directory;
  readonly replica: Replica;
}

/**
 * Opens, and if need be creates and migrates, the directory in `options.dir`.
 *
 * @throws ConfigError when the folder is unusable or used by another process, the schema is newer than this program,
 *   the directory is of another residency, or its token keys are sealed under another node secret
 */
export async function openSqliteDirectory(options: SqliteDirectoryOptions): Promise<OpenDirectory> {
  const { dir, runtime, logger } = options;
  assertResidencyName(options.residency);
  const folder = openDataFolder(dir, "moor.sqlite");
  let feed: SqliteFeed | undefined;
  let replica: LocalReplica | undefined;
  const writer = new SqliteWriter({
    path: folder.databasePath,
    bytesMax: options.databaseBytesMax ?? DATABASE_BYTES_MAX_DEFAULT,
    dataDir: dir,
    runtime,
    logger,
    onCommitted: () => feed?.pull(),
    startWorker: options.startWorker,
  });
  await writer.start().catch((error: unknown) => {
    folder.release();
    throw error;
  });
  try {
    const secret = options.nodeSecret ?? ensureNodeSecret(join(dir, NODE_SECRET_FILE), runtime);
    const vault = new TokenKeyVault(secret, runtime);
    await found(writer, options, vault);
    const db = new DatabaseSync(folder.databasePath, { readOnly: true, timeout: BUSY_MS });
    replica = new LocalReplica(db, { vault, logger });
    assertSameResidency(options.residency, replica.residency());
    feed = new SqliteFeed({ db, replica, dir, runtime, logger });
    replica.feedFrom(feed);
    const bare = resealing(replica.residency(), createSqliteStatements(db).all(READ.sealingKeys, []), vault);
    if (bare !== undefined) await writer.commit(bare);
    const store = new SqliteStore({ writer, feed, replica, db, release: () => folder.release() });
    const parts = new DirectoryParts({ store, replica, runtime, vault });
    await ensureServiceKeyAtOpening(parts);
    return { directory: createDirectory(parts), replica };
  } catch (error) {
    await writer.close(() => replica?.close());
    folder.release();
    throw error;
  }
}

async function found(
  writer: SqliteWriter,
  options: SqliteDirectoryOptions,
  vault: TokenKeyVault,
): Promise<void> {
  const outcome = await writer.commit(foundation(options, vault, options.runtime));
  if (outcome.kind === "refused") {
    throw new ConfigError(
      "--data",
      `${options.dir} (${outcome.message})`,
      "a directory that is whole, or empty",
    );
  }
}
