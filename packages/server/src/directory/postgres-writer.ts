// The asking side of a PostgreSQL directory: one transaction under way, everything asked meanwhile goes into the next.
//
// Spec: R22.
// I1  Mutations of this node commit in the order asked.
// I2  A promise settles only after `onCommitted` has, so that this node's replica shows what it resolves for.
// I3  Every refusal says which it is: nothing was changed, the change is made but cannot be read yet, or unknown.

import { randomHex, sleep, type Logger, type Runtime } from "@moor/runtime";
import type { BatchOptions, BatchResult } from "./mutation-batch.ts";
import type { MutationOutcome } from "./mutation-steps.ts";
import type { Mutation } from "./mutations.ts";
import { commitOnPostgres, wasCommitted } from "./postgres-batch.ts";
import { PostgresFailure, type PostgresLink } from "./postgres-link.ts";
import { outcomeUnknown, settleCommitted, unavailable, WAITING_MUTATIONS_MAX, type Asker } from "./store.ts";

/** Largest number of mutations in one transaction. */
const BATCH_MUTATIONS_MAX = 50;
/** How long a COMMIT without an answer is looked up, unless told otherwise, before its outcome is unknown. Milliseconds. */
const LOOK_UP_MS_MAX = 10_000;
/** Pause between look-ups. Milliseconds. */
const LOOK_UP_INTERVAL_MS = 250;

/** What a writer needs. */
export interface PostgresWriterOptions {
  readonly link: PostgresLink;
  readonly runtime: Runtime;
  readonly logger: Logger;
  /** What this node has seen: a directory that tells less is not changed. */
  readonly seen: () => BatchOptions["seen"];
  /** Called after each commit with the number of its newest change, before its promises settle; false = not shown yet. */
  readonly onCommitted: (seq: number) => Promise<boolean>;
  /** How long a COMMIT without an answer is looked up. Milliseconds, default 10_000. */
  readonly lookUpMsMax?: number | undefined;
}

interface Waiting extends Asker {
  readonly mutation: Mutation;
}

/** Commits mutations, batch by batch. */
export class PostgresWriter {
  readonly #options: PostgresWriterOptions;
  #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: PostgresWriterOptions) {
    this.#options = options;
  }

  /** The outcome of one mutation; rejects with `directory_unavailable`. */
  commit(mutation: Mutation): Promise<MutationOutcome> {
    if (this.#isClosed) return Promise.reject(unavailable("the directory is closed"));
    if (this.#waiting.length >= WAITING_MUTATIONS_MAX) {
      return Promise.reject(unavailable("too many changes wait"));
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ mutation, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Commits what waits. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH_MUTATIONS_MAX);
      try {
        const { outcomes, seq, firstSeq } = await this.#commitBatch(batch.map((entry) => entry.mutation));
        const isShown = firstSeq === undefined || (await this.#options.onCommitted(seq));
        for (const [index, entry] of batch.entries()) {
          const own = outcomes[index];
          if (own !== undefined) settleCommitted(entry, own, isShown);
        }
      } catch (error) {
        for (const entry of batch) entry.reject(error);
      }
    }
    this.#running = undefined;
  }

  /** What a batch came to, committed. Rejects with `directory_unavailable`. */
  async #commitBatch(mutations: readonly Mutation[]): Promise<BatchResult> {
    const { link, runtime, logger, seen } = this.#options;
    const tx = randomHex(runtime, 8);
    const known = seen();
    const options = { tx, wallMs: runtime.wallMs(), ...(known === undefined ? {} : { seen: known }) };
    const outcome = await commitOnPostgres((work) => link.use(work), mutations, options);
    switch (outcome.kind) {
      case "committed":
        return outcome.result;
      case "failed":
        logger.warn("directory-change-failed", { reason: outcome.reason });
        throw unavailable(`the database failed (${outcome.reason})`);
      case "unanswered":
        logger.warn("directory-commit-unanswered", { reason: outcome.reason });
        if (await this.#lookUp(outcome.result, tx)) return outcome.result;
        throw unavailable(`the connection broke (${outcome.reason}) and nothing was changed`);
    }
  }

  /** Whether a transaction was committed after all. Rejects with `directory_unavailable`, outcome unknown. */
  async #lookUp({ firstSeq }: BatchResult, tx: string): Promise<boolean> {
    if (firstSeq === undefined) throw outcomeUnknown("the database was lost during the commit");
    const { link, runtime, lookUpMsMax = LOOK_UP_MS_MAX } = this.#options;
    const endMs = runtime.monotonicMs() + lookUpMsMax;
    while (runtime.monotonicMs() < endMs) {
      try {
        return await link.use((session) => wasCommitted(session, firstSeq, tx));
      } catch (error) {
        if (!(error instanceof PostgresFailure)) throw error;
        await sleep(runtime, LOOK_UP_INTERVAL_MS);
      }
    }
    throw outcomeUnknown("the database was lost during the commit");
  }
}
