// The numbers of one transaction: which changes and revisions it gives out, and what it writes about that at its end.
//
// The transaction holds the residency's row from its first statement to its commit, so numbers are given in commit order.
//
// Spec: R22.   Pure.
// I1  A change's number and a revision are given out once: the row they are counted in is written with what used them.
// I2  A revision is max(last + 1, database time in microseconds), below 2^53.
// I3  What a refused mutation took is taken back, since nobody has seen it.

import type { ChangeKind } from "./records.ts";
import { insertRows } from "./multi-row.ts";
import { revisionFloor } from "./placement-choice.ts";
import { query, type Query } from "./statements.ts";
import { WRITE } from "./write-statements.ts";

/** The residency's row as a transaction found it. */
export interface ResidencyHead {
  readonly name: string;
  /** New at the foundation and at each fence. */
  readonly incarnation: string;
  readonly isCorrecting: boolean;
  /** Empty while no shard was ever registered. */
  readonly defaultShard: string;
  /** Number of the newest change. */
  readonly seq: number;
  /** Highest revision given out. */
  readonly lastRevision: number;
}

/** Kinds that programs of schema 2 do not know: their feed reads them as changes of the residency. */
const KINDS_SINCE_3: readonly ChangeKind[] = ["home", "home-app", "service-key"];

/** Changes that stay in the feed however old they are. Count. */
const CHANGES_KEPT_MIN = 100_000;
/** Changes younger than this stay in the feed however many they are. Milliseconds: an hour. */
const CHANGES_KEPT_MS = 3_600_000;
/** The feed is trimmed when its number passes a multiple of this: seldom, and never much at once. Count. */
const TRIM_EVERY = 5_000;
/** Moves older than this are forgotten. Milliseconds: 400 days. */
const MOVES_KEPT_MS = 400 * 24 * 3_600_000;

/** A place in a ledger to go back to. */
export interface LedgerMark {
  readonly seq: number;
  readonly lastRevision: number;
  readonly changeCount: number;
}

/** Counts for one transaction. */
export class Ledger {
  /** The residency as the transaction found it; undefined in a directory that is not founded. */
  readonly head: ResidencyHead | undefined;
  /** The database's time at the transaction's start, milliseconds since 1970. */
  readonly wallMs: number;
  readonly #tx: string;
  #changes: (readonly [seq: number, kind: ChangeKind, id: string])[] = [];
  #seq: number;
  #lastRevision: number;

  /** @param tx names the transaction in the changes it makes: by it, a lost COMMIT is found again */
  constructor(head: ResidencyHead | undefined, wallMs: number, tx: string) {
    this.head = head;
    this.wallMs = Math.trunc(wallMs);
    this.#tx = tx;
    this.#seq = head?.seq ?? 0;
    this.#lastRevision = head?.lastRevision ?? 0;
  }

  /** Number of the newest change. */
  get seq(): number {
    return this.#seq;
  }

  /** Highest revision given out. */
  get lastRevision(): number {
    return this.#lastRevision;
  }

  /** Number of this transaction's first change; undefined when it has none. */
  get firstSeq(): number | undefined {
    return this.#changes[0]?.[0];
  }

  /** Notes a change; gives its number. */
  change(kind: ChangeKind, id: string): number {
    this.#seq += 1;
    this.#changes.push([this.#seq, kind, id]);
    return this.#seq;
  }

  /** A revision that was never given out. Spec R22. */
  takeRevision(): number {
    this.#lastRevision = Math.max(this.#lastRevision + 1, revisionFloor(this.wallMs));
    return this.#lastRevision;
  }

  /** Gives out nothing at or below `revision` from here on. */
  raiseRevision(revision: number): void {
    this.#lastRevision = Math.max(this.#lastRevision, revision);
  }

  mark(): LedgerMark {
    return { seq: this.#seq, lastRevision: this.#lastRevision, changeCount: this.#changes.length };
  }

  rollBack(mark: LedgerMark): void {
    this.#seq = mark.seq;
    this.#lastRevision = mark.lastRevision;
    this.#changes = this.#changes.slice(0, mark.changeCount);
  }

  /** What the transaction writes last. */
  closingQueries(): readonly Query[] {
    const isUntouched = this.#changes.length === 0 && this.#lastRevision === (this.head?.lastRevision ?? 0);
    if (isUntouched) return [];
    const rows = this.#changes.map(([seq, kind, id]) => {
      const isLater = KINDS_SINCE_3.includes(kind);
      return [seq, isLater ? "residency" : kind, id, this.#tx, this.wallMs, isLater ? kind : ""];
    });
    return [
      ...insertRows("changes", ["seq", "kind", "id", "tx", "at_ms", "topic"], rows),
      query(WRITE.numberHead, [this.#seq, this.#lastRevision]),
      ...this.#trimQueries(),
    ];
  }

  #trimQueries(): readonly Query[] {
    const isDue = Math.floor(this.#seq / TRIM_EVERY) > Math.floor((this.head?.seq ?? 0) / TRIM_EVERY);
    if (!isDue) return [];
    const oldMovesMs = this.wallMs - MOVES_KEPT_MS;
    return [
      query(WRITE.trimChanges, [this.#seq - CHANGES_KEPT_MIN, this.wallMs - CHANGES_KEPT_MS]),
      query(WRITE.trimMoves, [revisionFloor(oldMovesMs), oldMovesMs]),
    ];
  }
}
