// Bringing a copy of the directory up to the authority: change by change, or by comparing everything.
//
// Spec: R22.
// I1  A copy that is compared page by page is never worse than before: each row in it is its old or its new state, and
//     the copy's number moves only at the end, so that an interrupted comparison is begun again.
// I2  Listeners hear of exactly what differs. A copy that is filled for the first time has been given to nobody yet:
//     nobody listens.

import type { DatabaseSync } from "node:sqlite";
import { integerAt, textAt, textOrNullAt, valuesOf } from "./columns.ts";
import type { ResidencyHead } from "./ledger.ts";
import type { LocalReplica } from "./local-replica.ts";
import { atOneState } from "./postgres-batch.ts";
import type { PostgresSession } from "./postgres-link.ts";
import type { Change } from "./records.ts";
import {
  ID_MAX,
  LEASES_SELECT,
  LEASE_COLUMNS,
  REPLICATED_TABLES,
  ReplicaWriter,
  selectAfter,
  selectBetween,
  selectByIds,
  type ReplicatedTable,
} from "./replicated-tables.ts";
import { headFromRow } from "./mutation-batch.ts";
import { changeFromRow } from "./rows.ts";
import { copyTables, fillCopy, isEmptyCopy } from "./replica-fill.ts";
import { inTransaction } from "./sqlite-statements.ts";
import { READ, type Row } from "./statements.ts";

/** Changes taken in at once: a few milliseconds of this thread. Count. */
const CHANGES_PAGE = 250;
/** Rows compared at once. Count: some milliseconds of this thread. */
const ROWS_PAGE = 1_000;

/** The authority's residency row, and the transaction that made its newest change where that is known. */
export interface AuthorityHead extends ResidencyHead {
  readonly tx: string;
  /** Transaction of the change that was asked for; undefined when the feed does not have it. */
  readonly knownTx: string | undefined;
  /** Number of the oldest change in the feed; 0 when it is empty. */
  readonly oldest: number;
}

/** A copy and what feeds it. */
export class ReplicaSync {
  readonly #db: DatabaseSync;
  readonly #writer: ReplicaWriter;
  readonly #replica: LocalReplica;
  #leases = "";

  constructor(db: DatabaseSync, replica: LocalReplica) {
    this.#db = db;
    this.#writer = new ReplicaWriter(db);
    this.#replica = replica;
  }

  /** Takes in one page of changes after the copy's number; gives how far the copy is now. */
  async takeChanges(session: PostgresSession, head: AuthorityHead): Promise<AuthorityHead | undefined> {
    const page = await session.rows(READ.changesAfter, [this.#replica.seq, CHANGES_PAGE]);
    // What was committed after the head was read waits for the next head: the residency's own row is in it.
    const rows = page.filter((row) => integerAt(row, "seq") <= head.seq);
    const last = rows.at(-1);
    if (last === undefined) return undefined;
    const changes = rows.map(changeFromRow);
    const fetched: [ReplicatedTable, string[], readonly Row[]][] = [];
    for (const table of REPLICATED_TABLES) {
      const ids = new Set(changes.filter((change) => change.kind === table.kind).map((change) => change.id));
      if (ids.size === 0) continue;
      fetched.push([table, [...ids], await session.rows(selectByIds(table, ids.size), [...ids])]);
    }
    const reached = { ...head, seq: integerAt(last, "seq"), tx: textAt(last, "tx") };
    inTransaction(this.#db, () => {
      for (const [table, ids, found] of fetched) this.#writer.replace(table, ids, found);
      this.#writer.position(reached);
    });
    this.#replica.show(changes, reached.seq);
    return reached;
  }

  /** Compares everything, in one transaction of the authority's; gives how far the copy is now. */
  async compareAll(session: PostgresSession): Promise<AuthorityHead> {
    const isNew = this.#replica.seq === 0 && isEmptyCopy(this.#db);
    const head = isNew ? await this.#fill(session) : await this.#compare(session);
    this.#replica.show([{ seq: head.seq, kind: "residency", id: head.name }], head.seq);
    return head;
  }

  /** Copies the leases. */
  async takeLeases(session: PostgresSession): Promise<void> {
    const rows = await session.rows(LEASES_SELECT);
    const leases = JSON.stringify(rows.map((row) => valuesOf(row, LEASE_COLUMNS)));
    if (leases === this.#leases) return;
    inTransaction(this.#db, () => this.#writer.replaceLeases(rows));
    this.#leases = leases;
    this.#replica.showLeases();
  }

  #fill(session: PostgresSession): Promise<AuthorityHead> {
    // The authority's transaction ends before the copy's: making indexes may take longer than it may be idle.
    const copy = () =>
      atOneHead(session, async (head) => {
        await copyTables(this.#db, session);
        this.#writer.position(head);
      });
    return fillCopy(this.#db, copy);
  }

  #compare(session: PostgresSession): Promise<AuthorityHead> {
    return atOneHead(session, async (head) => {
      for (const table of REPLICATED_TABLES) await this.#compareTable(session, table, head.seq);
      inTransaction(this.#db, () => this.#writer.position(head));
    });
  }

  async #compareTable(session: PostgresSession, table: ReplicatedTable, seq: number): Promise<void> {
    let after = "";
    for (;;) {
      const theirs = await session.rows(selectAfter(table), [after, ROWS_PAGE]);
      const isLast = theirs.length < ROWS_PAGE;
      const upTo = isLast ? ID_MAX : textAt(theirs.at(-1), table.idColumn);
      const ours = this.#writer.all(selectBetween(table), [after, upTo]);
      const changes = this.#reconcile(table, theirs, ours).map((id): Change => ({
        seq,
        kind: table.kind,
        id,
      }));
      if (changes.length > 0) this.#replica.show(changes, this.#replica.seq);
      if (isLast) return;
      after = upTo;
    }
  }

  /** Makes a range of the copy what the authority says; gives the ids of what differed. */
  #reconcile(table: ReplicatedTable, theirs: readonly Row[], ours: readonly Row[]): readonly string[] {
    if (ours.length === 0) {
      inTransaction(this.#db, () => this.#writer.insert(table, theirs));
      return theirs.map((row) => textAt(row, table.idColumn));
    }
    const ids = differingIds(table, theirs, ours);
    if (ids.length === 0) return ids;
    const wanted = new Set(ids);
    const changed = theirs.filter((row) => wanted.has(textAt(row, table.idColumn)));
    inTransaction(this.#db, () => this.#writer.replace(table, ids, changed));
    return ids;
  }
}

/**
 * The authority's residency row; undefined in a directory that is not founded.
 *
 * @param knownSeq number of a change whose transaction is asked for along with it
 */
export async function readHead(session: PostgresSession, knownSeq = 0): Promise<AuthorityHead | undefined> {
  const [row] = await session.rows(
    `select name, incarnation, corrections, default_shard, seq, last_revision,
      coalesce((select tx from changes where changes.seq = residency.seq), '') as tx,
      (select tx from changes where changes.seq = $1) as known_tx,
      coalesce((select min(changes.seq) from changes), 0) as oldest from residency where id = 1`,
    [knownSeq],
  );
  if (row === undefined) return undefined;
  const knownTx = textOrNullAt(row, "known_tx");
  return {
    ...headFromRow(row),
    tx: textAt(row, "tx"),
    knownTx: knownTx ?? undefined,
    oldest: integerAt(row, "oldest"),
  };
}

/** Does `work` on one state of the authority; gives that state's head. */
function atOneHead(
  session: PostgresSession,
  work: (head: AuthorityHead) => Promise<void>,
): Promise<AuthorityHead> {
  return atOneState(session, async () => {
    const head = await readHead(session);
    if (head === undefined) throw new Error("invariant broken: D11 a directory that is followed is founded");
    await work(head);
    return head;
  });
}

function differingIds(table: ReplicatedTable, theirs: readonly Row[], ours: readonly Row[]): string[] {
  const { idColumn, columns } = table;
  const content = (row: Row) => JSON.stringify(valuesOf(row, columns));
  const own = new Map(ours.map((row) => [textAt(row, idColumn), content(row)]));
  const ids: string[] = [];
  for (const row of theirs) {
    const id = textAt(row, idColumn);
    if (own.get(id) !== content(row)) ids.push(id);
    own.delete(id);
  }
  return [...ids, ...own.keys()];
}
