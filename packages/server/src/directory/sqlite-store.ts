// The embedded store: this process writes the file on a thread of its own and reads it here.
//
// Spec: R22.
// I1  Every read of the replica shows a commit before its promise resolves.
// I2  A file that knows less than this node has seen (watermark.ts), as after a restore, is served and not changed.

import type { DatabaseSync } from "node:sqlite";
import type { Logger, Runtime } from "@moor/runtime";
import { integerAt, textAt } from "./columns.ts";
import type { LocalReplica, ReplicaFeed } from "./local-replica.ts";
import { headFromRow } from "./mutation-batch.ts";
import type { MutationOutcome } from "./mutation-steps.ts";
import type { Mutation } from "./mutations.ts";
import type { ReplicaHealth } from "./replica.ts";
import { changeFromRow } from "./rows.ts";
import { reasonOf } from "./sqlite-batch.ts";
import { createSqliteStatements, type SqliteStatements } from "./sqlite-statements.ts";
import type { SqliteWriter } from "./sqlite-writer.ts";
import { READ, type Query, type Row } from "./statements.ts";
import { throwIfRegressed, unreachable, type Store } from "./store.ts";
import { readWatermark, regressionDetail, WatermarkKeeper, type Watermark } from "./watermark.ts";

/** Changes read at once. */
const CHANGES_PAGE = 1_000;

/** Shows a replica what this process commits to its own file. */
export class SqliteFeed implements ReplicaFeed {
  readonly #statements: SqliteStatements;
  readonly #replica: LocalReplica;
  readonly #logger: Logger;
  readonly #keeper: WatermarkKeeper;
  #watermark: Watermark;
  #health: ReplicaHealth = { kind: "current" };

  /** @param db the replica's connection */
  constructor(options: {
    readonly db: DatabaseSync;
    readonly replica: LocalReplica;
    readonly dir: string;
    readonly runtime: Runtime;
    readonly logger: Logger;
  }) {
    const { db, replica, dir, runtime, logger } = options;
    this.#statements = createSqliteStatements(db);
    this.#replica = replica;
    this.#logger = logger;
    this.#keeper = new WatermarkKeeper({ dir, current: () => this.#watermark, runtime, logger });
    const seen = readWatermark(dir);
    this.#watermark = this.#position();
    if (seen !== undefined) this.#compare(seen);
  }

  get health(): ReplicaHealth {
    return this.#health;
  }

  async catchUp(): Promise<void> {
    this.pull();
  }

  noteRevision(revision: number): void {
    if (revision <= this.#watermark.revision || !Number.isSafeInteger(revision)) return;
    this.#watermark = { ...this.#watermark, revision };
    const detail = regressionDetail(this.#told(), this.#watermark);
    if (detail !== undefined) this.#regress(detail);
    this.#keeper.writeSoon();
  }

  /** Takes in what was committed since the last time. */
  pull(): void {
    for (;;) {
      const rows = this.#statements.all(READ.changesAfter, [this.#replica.seq, CHANGES_PAGE]);
      const last = rows.at(-1);
      if (last === undefined) return;
      this.#replica.show(rows.map(changeFromRow), integerAt(last, "seq"));
      if (this.#health.kind !== "regressed") this.#watermark = this.#position();
      this.#keeper.writeSoon();
    }
  }

  /** Writes the watermark for good. */
  close(): void {
    this.#keeper.close();
  }

  #compare(seen: Watermark): void {
    const detail = regressionDetail(this.#told(seen.seq), seen);
    if (detail === undefined) return;
    this.#watermark = seen;
    this.#regress(detail);
  }

  #regress(detail: string): void {
    this.#health = { kind: "regressed", detail };
    this.#logger.error("directory-regressed", { detail });
  }

  #position(): Watermark {
    const told = this.#told();
    const tx = this.#txAt(told.seq) ?? "";
    const { incarnation, seq, lastRevision: revision } = told;
    return { residency: told.name, incarnation, seq, tx, revision };
  }

  #told(watermarkSeq = 0) {
    const head = headFromRow(this.#statements.get(READ.head, []) ?? {});
    return { ...head, txAtWatermark: this.#txAt(watermarkSeq) };
  }

  #txAt(seq: number): string | undefined {
    const row = this.#statements.get(READ.changeTx, [seq]);
    return row === undefined ? undefined : textAt(row, "tx");
  }
}

/** The store of an embedded directory. */
export class SqliteStore implements Store {
  readonly #writer: SqliteWriter;
  readonly #feed: SqliteFeed;
  readonly #replica: LocalReplica;
  readonly #statements: SqliteStatements;
  readonly #release: () => void;

  constructor(options: {
    readonly writer: SqliteWriter;
    readonly feed: SqliteFeed;
    readonly replica: LocalReplica;
    /** The replica's connection. */
    readonly db: DatabaseSync;
    /** Lets another process have the folder. */
    readonly release: () => void;
  }) {
    this.#writer = options.writer;
    this.#feed = options.feed;
    this.#replica = options.replica;
    this.#statements = createSqliteStatements(options.db);
    this.#release = options.release;
  }

  async commit(mutation: Mutation): Promise<MutationOutcome> {
    throwIfRegressed(this.#feed.health);
    return this.#writer.commit(mutation);
  }

  async commitLease(mutation: Mutation): Promise<MutationOutcome> {
    const outcome = await this.#writer.commit(mutation);
    this.#replica.showLeases();
    return outcome;
  }

  async read(asked: Query): Promise<readonly Row[]> {
    try {
      return this.#statements.all(asked.sql, asked.params);
    } catch (error) {
      throw unreachable(reasonOf(error));
    }
  }

  async close(): Promise<void> {
    await this.#writer.close(() => {
      this.#feed.close();
      this.#replica.close();
    });
    this.#release();
  }
}
