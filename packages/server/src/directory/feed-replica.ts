// Keeps a node's copy of a PostgreSQL directory up to date, for as long as the node lives.
//
// Spec: R22. Design: "Directory, changes, replicas".
// I1  It works through one connection, one round after the other; each round ends with the copy at the authority, or
//     with a reason why not. Notifications only make a round come sooner.
// I2  An authority that knows less than this node has seen is not copied: the copy stays what it is, and health says so,
//     until a fence has given the directory a new incarnation above everything seen.
// I3  While the authority is down the copy serves; rounds are tried again with growing pauses, for ever.

import { ConfigError, type Logger, type Runtime, type TimerHandle } from "@moor/runtime";
import { reasonOf } from "./sqlite-batch.ts";
import type { LocalReplica, ReplicaFeed } from "./local-replica.ts";
import { PostgresFailure, type PostgresLink, type PostgresSession } from "./postgres-link.ts";
import type { ReplicaHealth } from "./replica.ts";
import { readHead, type AuthorityHead, type ReplicaSync } from "./replica-sync.ts";
import { assertSameResidency } from "./residency.ts";
import { regressionDetail, WatermarkKeeper, type Watermark } from "./watermark.ts";

/** Longest time between rounds. Milliseconds: what a database without notifications costs in lateness. */
const ROUND_INTERVAL_MS = 1_000;
/** How often leases are copied. Milliseconds: a fraction of the shortest lease's third. */
const LEASES_INTERVAL_MS = 1_500;
/** First pause after a round that failed, doubled each time up to the largest; half of it is chance. Milliseconds. */
const PAUSE_MS = { first: 100, max: 2_000 } as const;

/** What a feed needs. */
export interface FeedReplicaOptions {
  readonly link: Pick<PostgresLink, "use" | "close">;
  readonly sync: ReplicaSync;
  readonly replica: LocalReplica;
  /** How far the copy, or this node before it, was; undefined for a new one. */
  readonly watermark: Watermark | undefined;
  /** Name that the residency has to have; undefined where the copy is new and none was asked for. */
  readonly residency: string | undefined;
  /** The node's data folder. */
  readonly dir: string;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

interface Waiter {
  readonly seq: number;
  readonly resolve: (isShown: boolean) => void;
}

/** Follows the authority. */
export class FeedReplica implements ReplicaFeed {
  readonly #options: FeedReplicaOptions;
  readonly #keeper: WatermarkKeeper;
  #watermark: Watermark | undefined;
  #residency: string | undefined;
  #regression: string | undefined;
  /** When the authority was last read, monotonic. */
  #readAtMs: number;
  /** Rounds that failed since. At the start none has succeeded: 1. */
  #failures = 1;
  /** Why the last one failed, as logged. */
  #lastFailure: string | undefined;
  #leasesAtMs = Number.NEGATIVE_INFINITY;
  #round: Promise<void> | undefined;
  #isAskedAgain = false;
  #timer: TimerHandle | undefined;
  #waiters: Waiter[] = [];
  #isClosed = false;

  constructor(options: FeedReplicaOptions) {
    this.#options = options;
    const { dir, runtime, logger } = options;
    this.#keeper = new WatermarkKeeper({ dir, current: () => this.#watermark, runtime, logger });
    this.#watermark = options.watermark;
    this.#residency = options.residency;
    this.#readAtMs = options.runtime.monotonicMs();
  }

  get health(): ReplicaHealth {
    if (this.#regression !== undefined) return { kind: "regressed", detail: this.#regression };
    return this.#failures === 0 ? { kind: "current" } : { kind: "behind", sinceMs: this.#readAtMs };
  }

  /** What this node has seen, for the writer. */
  get seen(): Watermark | undefined {
    return this.#watermark;
  }

  /** One round now; rejects with why it failed. For the start, when somebody wants to know. */
  async start(): Promise<void> {
    const followed = this.#followNow();
    // A notification meanwhile does not begin another round on the same connection (I1).
    this.#round = followed.catch(() => {});
    try {
      await followed;
    } finally {
      this.#round = undefined;
    }
    this.#scheduleNext();
  }

  /** A round as soon as the one under way has ended; from then on they follow by themselves. */
  wake(): void {
    if (this.#isClosed) return;
    if (this.#round !== undefined) {
      this.#isAskedAgain = true;
      return;
    }
    this.#options.runtime.cancel(this.#timer);
    this.#round = this.#runRound();
  }

  async catchUp(waitMs: number): Promise<void> {
    // While the authority is known to be down there is nothing to wait for.
    if (this.#isClosed || this.#failures > 0) return;
    const { runtime } = this.#options;
    const waited = Promise.withResolvers<void>();
    const timer = runtime.schedule(waitMs, () => waited.resolve());
    // The round under way may have begun before what the caller knows of was committed.
    const before = this.#round;
    this.wake();
    const fresh = before === undefined ? this.#round : before.then(() => this.#round);
    fresh?.then(waited.resolve, waited.resolve);
    await waited.promise;
    runtime.cancel(timer);
  }

  /** Whether the copy shows change `seq`, waiting up to `waitMs` milliseconds for it. */
  shows(seq: number, waitMs: number): Promise<boolean> {
    const { replica, runtime } = this.#options;
    if (replica.seq >= seq) return Promise.resolve(true);
    this.wake();
    return new Promise((resolve) => {
      const timer = runtime.schedule(waitMs, () => {
        this.#waiters = this.#waiters.filter((each) => each !== waiter);
        resolve(false);
      });
      const waiter: Waiter = {
        seq,
        resolve: (isShown) => {
          runtime.cancel(timer);
          resolve(isShown);
        },
      };
      this.#waiters.push(waiter);
    });
  }

  noteRevision(revision: number): void {
    const watermark = this.#watermark;
    if (watermark === undefined || revision <= watermark.revision || !Number.isSafeInteger(revision)) return;
    this.#watermark = { ...watermark, revision };
    this.#keeper.writeSoon();
    this.wake();
  }

  /** Stops following; writes the watermark for good. */
  async close(): Promise<void> {
    const { runtime, link } = this.#options;
    this.#isClosed = true;
    runtime.cancel(this.#timer);
    await link.close();
    await this.#round;
    this.#keeper.close();
    for (const waiter of this.#waiters.splice(0)) waiter.resolve(false);
  }

  async #runRound(): Promise<void> {
    try {
      await this.#followNow();
    } catch (error) {
      this.#failed(error);
    }
    this.#round = undefined;
    this.#scheduleNext();
  }

  async #followNow(): Promise<void> {
    this.#isAskedAgain = false;
    await this.#options.link.use((session) => this.#follow(session));
    this.#succeeded();
  }

  #scheduleNext(): void {
    if (this.#failures > 0) this.#again(this.#pauseMs());
    else if (this.#isAskedAgain) this.wake();
    else this.#again(ROUND_INTERVAL_MS);
  }

  async #follow(session: PostgresSession): Promise<void> {
    const { sync, replica, runtime } = this.#options;
    const head = await readHead(session, this.#watermark?.seq);
    if (head === undefined) throw new PostgresFailure("statement", "not-founded");
    this.#residency ??= head.name;
    assertSameResidency(this.#residency, head.name);
    if (this.#findsRegressed(head)) return;
    if (this.#needsComparison(head)) this.#reached(await sync.compareAll(session));
    while (replica.seq < head.seq) {
      const reached = await sync.takeChanges(session, head);
      if (reached === undefined) break;
      this.#reached(reached);
    }
    this.#trusts(head);
    const nowMs = runtime.monotonicMs();
    if (nowMs - this.#leasesAtMs >= LEASES_INTERVAL_MS) {
      await sync.takeLeases(session);
      this.#leasesAtMs = nowMs;
    }
  }

  /** Whether the authority knows less than this node has seen. */
  #findsRegressed(head: AuthorityHead): boolean {
    const seen = this.#watermark;
    if (seen === undefined) return false;
    const detail = regressionDetail({ ...head, txAtWatermark: head.knownTx }, seen);
    if (detail === undefined) return false;
    if (this.#regression !== detail) this.#options.logger.error("directory-regressed", { detail });
    this.#regression = detail;
    return true;
  }

  /** The copy is at an authority that knows all this node has seen. */
  #trusts(head: AuthorityHead): void {
    if (this.#regression === undefined) return;
    this.#regression = undefined;
    this.#options.logger.info("directory-trusted-again", { incarnation: head.incarnation });
  }

  /** Whether the feed alone does not lead from the copy to the authority. */
  #needsComparison({ incarnation, seq, oldest }: AuthorityHead): boolean {
    const own = this.#options.replica.seq;
    if (this.#watermark?.incarnation !== incarnation || own === 0 || own > seq) return true;
    return own < seq && (oldest === 0 || oldest > own + 1);
  }

  #reached(head: AuthorityHead): void {
    const { name: residency, incarnation, seq, tx, lastRevision } = head;
    const revision = Math.max(lastRevision, this.#watermark?.revision ?? 0);
    this.#watermark = { residency, incarnation, seq, tx, revision };
    this.#keeper.writeSoon();
    const shown = this.#waiters.filter((waiter) => waiter.seq <= seq);
    this.#waiters = this.#waiters.filter((waiter) => waiter.seq > seq);
    for (const waiter of shown) waiter.resolve(true);
  }

  #succeeded(): void {
    if (this.#lastFailure !== undefined) this.#options.logger.info("directory-reached-again");
    this.#lastFailure = undefined;
    this.#failures = 0;
    this.#readAtMs = this.#options.runtime.monotonicMs();
  }

  #failed(error: unknown): void {
    this.#failures += 1;
    const reason = error instanceof PostgresFailure ? error.reason : nameOf(error);
    if (reason === this.#lastFailure || this.#isClosed) return;
    this.#lastFailure = reason;
    const { logger } = this.#options;
    if (error instanceof PostgresFailure) logger.warn("directory-unreachable", { reason });
    else logger.error("directory-not-followed", { reason });
  }

  #pauseMs(): number {
    const fullMs = Math.min(PAUSE_MS.max, PAUSE_MS.first * 2 ** Math.min(this.#failures - 1, 10));
    return fullMs / 2 + (fullMs / 2) * this.#options.runtime.random();
  }

  #again(delayMs: number): void {
    if (this.#isClosed) return;
    const { runtime } = this.#options;
    runtime.cancel(this.#timer);
    this.#timer = runtime.schedule(delayMs, () => this.wake());
  }
}

/** What went wrong, without values: a ConfigError's message is made for people. */
function nameOf(error: unknown): string {
  return error instanceof ConfigError ? error.message : reasonOf(error);
}
