// The shared directory: PostgreSQL as authority, and this node's copy of it in its data directory.
//
// Spec: R22. Design: "Directory, changes, replicas".
// I1  A node with a copy starts also while the authority is down; one without cannot.
// I2  The schema is changed by `moor directory migrate` only.

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { randomHex, ConfigError, type Logger, type Runtime, type Secret } from "@moor/runtime";
import { textAt } from "./columns.ts";
import { openDataFolder } from "./data-folder.ts";
import { FeedReplica } from "./feed-replica.ts";
import { LocalReplica } from "./local-replica.ts";
import { applyMigrations, isOlderSchema } from "./migrations.ts";
import { headFromRow } from "./mutation-batch.ts";
import { ensureNodeSecret, NODE_SECRET_FILE } from "./node-secret.ts";
import { createDirectory } from "./operations/create-directory.ts";
import { DirectoryParts } from "./operations/directory-parts.ts";
import { ensureServiceKeyAtOpening } from "./operations/service-key-operations.ts";
import { commitOnPostgres } from "./postgres-batch.ts";
import {
  assertPostgresUrl,
  PostgresFailure,
  PostgresLink,
  type PostgresLinkOptions,
} from "./postgres-link.ts";
import { assertSchema } from "./postgres-schema.ts";
import { asked, PostgresStore } from "./postgres-store.ts";
import { PostgresWriter } from "./postgres-writer.ts";
import { discardUnfinished } from "./replica-fill.ts";
import { ReplicaSync } from "./replica-sync.ts";
import {
  assertResidencyName,
  assertSameResidency,
  foundation,
  resealing,
  type Foundation,
} from "./residency.ts";
import type { OpenDirectory } from "./sqlite-directory.ts";
import { createSqliteStatements } from "./sqlite-statements.ts";
import { openingError } from "./sqlite-writer.ts";
import { READ } from "./statements.ts";
import { TokenKeyVault } from "./token-key-vault.ts";
import { readWatermark, type Watermark } from "./watermark.ts";

/** Channel of the notifications that make feeds look sooner. */
const CHANNEL = "moor_changes";
/** Longest time a change waits to be shown by this node's copy. Milliseconds. */
const SHOWN_MS_MAX = 5_000;

/** Pages of the copy's file kept in memory, KiB: at most; a copy of 100,000 tunnels has 120 MB. */
const COPY_CACHE_KIB = 65_536;
/** Pages written to the copy's journal before they go to its file. Count of 4 KiB. */
const COPY_CHECKPOINT_PAGES = 16_384;
/** Longest time the answer to a renewal may take: a third of the default lease is 5 s. Milliseconds. */
const LEASE_ANSWER_MS_MAX = 4_000;

/** What a shared directory needs. */
export interface PostgresDirectoryOptions extends Foundation {
  readonly url: Secret;
  /** The node's data folder; made if missing. */
  readonly dir: string;
  readonly runtime: Runtime;
  readonly logger: Logger;
  /** 32 bytes, the same at every node of the residency. Default: those of `node.secret` in the folder. */
  readonly nodeSecret?: Uint8Array | undefined;
  /** Shorter waits, for tests. */
  readonly patience?: {
    /** Longest time an answer may take, milliseconds. */
    readonly answerMsMax?: number;
    /** How long a COMMIT without an answer is looked up, milliseconds. */
    readonly lookUpMsMax?: number;
  };
}

/** Opens the directory at `options.url`, founding it if need be. Throws as `openDirectory`. */
export async function openPostgresDirectory(options: PostgresDirectoryOptions): Promise<OpenDirectory> {
  const { dir, runtime, logger } = options;
  assertResidencyName(options.residency);
  assertPostgresUrl(options.url);
  const folder = openDataFolder(dir, "replica.sqlite");
  const closers: (() => unknown)[] = [() => folder.release()];
  try {
    const secret = options.nodeSecret ?? ensureNodeSecret(join(dir, NODE_SECRET_FILE), runtime);
    const vault = new TokenKeyVault(secret, runtime);
    const db = openCopy(folder.databasePath, dir, runtime);
    const replica = new LocalReplica(db, { vault, logger });
    closers.unshift(() => replica.close());
    const watermark = watermarkOf(db, dir);
    const residency = watermark?.residency ?? options.residency;
    if (residency !== undefined) assertSameResidency(options.residency, residency);

    const { patience } = options;
    const answers = patience?.answerMsMax === undefined ? {} : { answerMsMax: patience.answerMsMax };
    const link = (name: string, more: Partial<PostgresLinkOptions> = {}) =>
      new PostgresLink({ url: options.url, name: `moor ${name}`, logger, ...more, ...answers });
    const links = {
      changes: link("changes"),
      leases: link("leases", { answerMsMax: LEASE_ANSWER_MS_MAX }),
      reads: link("reads"),
    };
    const feed = new FeedReplica({
      link: feedLink(link, () => feed),
      sync: new ReplicaSync(db, replica),
      replica,
      watermark,
      residency,
      dir,
      runtime,
      logger,
    });
    replica.feedFrom(feed);
    closers.unshift(() => feed.close(), ...Object.values(links).map((each) => () => each.close()));
    await reachAuthority({ ...options, vault, feed, changes: links.changes, hasCopy: replica.seq > 0 });
    assertServes(replica, feed);
    assertSecretFits(db, replica, vault);
    const writer = createWriter(links.changes, feed, options);
    const store = new PostgresStore({ writer, links, feed, replica, release: () => folder.release() });
    const parts = new DirectoryParts({ store, replica, runtime, vault });
    if (feed.health.kind === "current") await ensureServiceKeyAtOpening(parts);
    return { directory: createDirectory(parts), replica };
  } catch (error) {
    for (const close of closers) await close();
    throw error;
  }
}

function createWriter(
  link: PostgresLink,
  feed: FeedReplica,
  { runtime, logger, patience }: PostgresDirectoryOptions,
): PostgresWriter {
  return new PostgresWriter({
    link,
    runtime,
    logger,
    seen: () => feed.seen,
    lookUpMsMax: patience?.lookUpMsMax,
    onCommitted: (seq) => {
      // Unheard, it costs a second: a database without notifications is served as well.
      link.use((session) => session.rows("select pg_notify($1, '')", [CHANNEL])).catch(() => {});
      return feed.shows(seq, SHOWN_MS_MAX);
    },
  });
}

function feedLink(
  link: (name: string, more: Partial<PostgresLinkOptions>) => PostgresLink,
  feed: () => FeedReplica,
): PostgresLink {
  return link("feed", {
    onConnect: async (session) => {
      await assertSchema(session);
      await session.command(`listen ${CHANNEL}`).catch(() => {});
    },
    onNotify: () => feed().wake(),
  });
}

/** Founds and follows the authority; where it is down and there is a copy, leaves it to later. */
async function reachAuthority(
  options: PostgresDirectoryOptions & {
    readonly vault: TokenKeyVault;
    readonly feed: FeedReplica;
    readonly changes: PostgresLink;
    readonly hasCopy: boolean;
  },
): Promise<void> {
  const { feed, changes, logger, hasCopy } = options;
  try {
    await changes.use(assertSchema);
    await found(options);
    await feed.start();
  } catch (error) {
    const isDown = error instanceof PostgresFailure;
    if (!isDown || !hasCopy) return asked(() => Promise.reject(error));
    logger.warn("directory-unreachable", { reason: error.reason });
    feed.wake();
  }
}

async function found(
  options: PostgresDirectoryOptions & { readonly vault: TokenKeyVault; readonly changes: PostgresLink },
): Promise<void> {
  const { changes, runtime, vault } = options;
  const heads = await changes.use((session) => session.rows(READ.head));
  if (heads.length > 0) return;
  const outcome = await commitOnPostgres((work) => changes.use(work), [foundation(options, vault, runtime)], {
    tx: randomHex(runtime, 8),
    wallMs: runtime.wallMs(),
  });
  if (outcome.kind === "failed") throw new PostgresFailure("statement", outcome.reason);
  if (outcome.kind === "unanswered") throw new PostgresFailure("connection", outcome.reason);
  const [made] = outcome.result.outcomes;
  if (made?.kind !== "refused") return;
  // Another node may have founded it meanwhile.
  const again = await changes.use((session) => session.rows(READ.head));
  if (again.length > 0) return;
  throw new ConfigError("directory", `a database (${made.message})`, "one that is whole, or empty");
}

/** The copy's file; one that was not finished is begun anew. Throws ConfigError for one of a newer program. */
function openCopy(path: string, dir: string, runtime: Runtime): DatabaseSync {
  discardUnfinished(path);
  const db = new DatabaseSync(path, { timeout: 5_000 });
  // What a power cut takes from the copy comes again from the authority.
  db.exec("pragma journal_mode = wal; pragma synchronous = normal;");
  // A new copy touches the same index pages again and again: they are kept, and written to the file seldom.
  db.exec(`pragma cache_size = -${COPY_CACHE_KIB}; pragma wal_autocheckpoint = ${COPY_CHECKPOINT_PAGES};`);
  compareOlderCopy(db);
  const schema = applyMigrations(db, runtime.wallMs());
  if (schema.kind !== "too-new") return db;
  db.close();
  throw openingError(dir, schema);
}

/** A copy of an older schema says that it is of no incarnation: it serves, and is compared at the first chance. */
function compareOlderCopy(db: DatabaseSync): void {
  if (isOlderSchema(db)) db.exec("update residency set incarnation = ''");
}

/** How far this node was: by its copy, or by the file beside it where that knows more. */
function watermarkOf(db: DatabaseSync, dir: string): Watermark | undefined {
  const kept = readWatermark(dir);
  const statements = createSqliteStatements(db);
  const row = statements.get(READ.head, []);
  if (row === undefined) return kept;
  const { name: residency, incarnation, seq, lastRevision } = headFromRow(row);
  const tx = textAt(statements.get(READ.changeTx, [seq]) ?? { tx: "" }, "tx");
  const revision = Math.max(lastRevision, kept?.revision ?? 0);
  const isKeptFurther = kept !== undefined && kept.incarnation === incarnation && kept.seq > seq;
  return isKeptFurther ? { ...kept, revision } : { residency, incarnation, seq, tx, revision };
}

/** Throws ConfigError when there is no copy to serve, and the authority tells less than this node has seen. */
function assertServes(replica: LocalReplica, { health }: FeedReplica): void {
  if (replica.seq > 0 || health.kind !== "regressed") return;
  const expected =
    "one that knows all that this node has seen: its data folder holds no copy to serve meanwhile";
  throw new ConfigError("directory", `a directory that has gone back in time (${health.detail})`, expected);
}

/** Throws ConfigError when the node secret does not open the copy's token keys. */
function assertSecretFits(db: DatabaseSync, replica: LocalReplica, vault: TokenKeyVault): void {
  const rows = createSqliteStatements(db).all(READ.sealingKeys, []);
  resealing(replica.residency(), rows, vault);
}
