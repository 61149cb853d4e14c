// The asking side of the writer thread: one batch under way, everything asked meanwhile goes into the next.
//
// I1  Mutations commit in the order asked.
// I2  A promise settles only after `onCommitted` ran, so that this node's replica shows what it resolves for.
// I3  When the thread dies, what was under way has an unknown outcome and says so; the next mutation starts a new thread.
// I4  Every refusal says which it is: nothing was changed, the change is made but cannot be read yet, or unknown.

import { Worker } from "node:worker_threads";
import type { ProtocolError } from "@moor/protocol";
import { randomHex, ConfigError, type Logger, type Runtime } from "@moor/runtime";
import type { MutationOutcome } from "./mutation-steps.ts";
import type { Mutation } from "./mutations.ts";
import { reasonOf, type BatchOutcome } from "./sqlite-batch.ts";
import { outcomeUnknown, settleCommitted, unavailable, WAITING_MUTATIONS_MAX, type Asker } from "./store.ts";
import type { WriterOrder, WriterReport, WriterSettings } from "./sqlite-writing.ts";

/** Largest number of mutations in one transaction: bounds the time a batch holds the database. */
const BATCH_MUTATIONS_MAX = 200;

/** What a writer needs. */
export interface SqliteWriterOptions {
  readonly path: string;
  readonly bytesMax: number;
  /** The data directory as the user wrote it, for messages. */
  readonly dataDir: string;
  readonly runtime: Runtime;
  readonly logger: Logger;
  /** Called after each commit, before its promises settle. */
  readonly onCommitted: () => void;
  /** Starts the thread. Default: a worker on sqlite-writer-worker. */
  readonly startWorker?: ((settings: WriterSettings) => WriterThread) | undefined;
}

/** A thread as its asker sees it. */
export type WriterThread = Pick<Worker, "on" | "once" | "postMessage" | "terminate">;

interface Waiting extends Asker {
  readonly mutation: Mutation;
}

type WriterState =
  | { readonly kind: "stopped" }
  | { readonly kind: "starting" }
  | { readonly kind: "idle"; readonly worker: WriterThread }
  | { readonly kind: "busy"; readonly worker: WriterThread; readonly batch: readonly Waiting[] }
  | { readonly kind: "closed" };

/** Commits mutations on the writer thread. */
export class SqliteWriter {
  readonly #options: SqliteWriterOptions;
  #state: WriterState = { kind: "stopped" };
  #waiting: Waiting[] = [];

  constructor(options: SqliteWriterOptions) {
    this.#options = options;
  }

  /** Starts the thread; throws ConfigError when the database cannot be opened or is newer than this program. */
  async start(): Promise<void> {
    const { path, bytesMax, runtime } = this.#options;
    this.#state = { kind: "starting" };
    const settings: WriterSettings = { path, bytesMax, wallMs: runtime.wallMs() };
    const worker = (this.#options.startWorker ?? startWriterWorker)(settings);
    const opened = await firstReport(worker);
    if (opened.kind !== "opened") {
      this.#state = { kind: "stopped" };
      await worker.terminate();
      throw openingError(this.#options.dataDir, opened);
    }
    worker.on("message", (report: WriterReport) => {
      if (report.kind === "batch") this.#settle(worker, report.outcome);
    });
    worker.on("error", (error) =>
      this.#options.logger.error("directory-writer-failed", { reason: error.name }),
    );
    worker.on("exit", () => this.#died(worker));
    this.#state = { kind: "idle", worker };
    this.#next();
  }

  /** The outcome of one mutation; rejects with `directory_unavailable`. */
  commit(mutation: Mutation): Promise<MutationOutcome> {
    if (this.#state.kind === "closed") return Promise.reject(unavailable("the directory is closed"));
    if (this.#waiting.length >= WAITING_MUTATIONS_MAX)
      return Promise.reject(unavailable("too many changes wait"));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ mutation, resolve, reject });
      this.#next();
    });
  }

  /**
   * Commits what waits, then ends the thread. `beforeEnd` closes readers in between: the connection that closes last
   * folds the journal into the database, and only this one may write.
   */
  async close(beforeEnd: () => void = () => {}): Promise<void> {
    await this.commit({ kind: "record-seen", ids: [] }).catch(() => {});
    const state = this.#state;
    this.#state = { kind: "closed" };
    beforeEnd();
    if (state.kind !== "idle" && state.kind !== "busy") return;
    const exited = new Promise<void>((resolve) => void state.worker.once("exit", () => resolve()));
    tell(state.worker, { kind: "close" });
    await exited;
  }

  #next(): void {
    const state = this.#state;
    if (this.#waiting.length === 0) return;
    if (state.kind === "stopped") {
      this.start().catch(() => fail(this.#waiting.splice(0), unavailable("the database cannot be opened")));
    } else if (state.kind === "idle") {
      const batch = this.#takeBatch();
      this.#state = { kind: "busy", worker: state.worker, batch };
      const { runtime } = this.#options;
      const mutations = batch.map((entry) => entry.mutation);
      tell(state.worker, { kind: "commit", mutations, tx: randomHex(runtime, 8), wallMs: runtime.wallMs() });
    }
  }

  #takeBatch(): readonly Waiting[] {
    return this.#waiting.splice(0, BATCH_MUTATIONS_MAX);
  }

  #settle(worker: WriterThread, outcome: BatchOutcome): void {
    const state = this.#state;
    if (state.kind !== "busy" || state.worker !== worker) return;
    this.#state = { kind: "idle", worker };
    if (outcome.kind === "failed") {
      this.#options.logger.error("directory-change-failed", { reason: outcome.reason });
      fail(state.batch, unavailable(outcome.reason));
    } else {
      const isShown = this.#isShown();
      for (const [index, entry] of state.batch.entries()) {
        const own = outcome.outcomes[index];
        if (own !== undefined) settleCommitted(entry, own, isShown);
      }
    }
    this.#next();
  }

  /** Lets the replica catch up; false when it could not read, which the next commit makes good. */
  #isShown(): boolean {
    try {
      this.#options.onCommitted();
      return true;
    } catch (error) {
      this.#options.logger.error("directory-read-failed", { reason: reasonOf(error) });
      return false;
    }
  }

  #died(worker: WriterThread): void {
    const state = this.#state;
    if ((state.kind !== "idle" && state.kind !== "busy") || state.worker !== worker) return;
    this.#state = { kind: "stopped" };
    if (state.kind === "busy") fail(state.batch, outcomeUnknown("the directory's writer ended"));
    this.#next();
  }
}

function fail(batch: readonly Waiting[], error: ProtocolError): void {
  for (const entry of batch) entry.reject(error);
}

function tell(worker: WriterThread, order: WriterOrder): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  worker.postMessage(order);
}

/** Starts the writer thread from its source beside this file, or from its compiled form beside the compiled form. */
export function startWriterWorker(settings: WriterSettings): Worker {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const url = new URL(`./sqlite-writer-worker.${extension}`, import.meta.url);
  return new Worker(url, { workerData: settings, execArgv: [] });
}

function firstReport(worker: WriterThread): Promise<WriterReport> {
  return new Promise((resolve) => {
    worker.once("message", resolve);
    worker.once("error", (error) => resolve({ kind: "not-opened", reason: error.name }));
    worker.once("exit", () => resolve({ kind: "not-opened", reason: "its thread ended" }));
  });
}

/** What is said of a data folder whose database cannot be opened. */
export function openingError(dataDir: string, report: WriterReport): ConfigError {
  if (report.kind === "too-new") {
    return new ConfigError(
      "--data",
      `${dataDir}, whose schema is version ${report.version}`,
      `version ${report.known} or older: run the newer moor that wrote it, or use another directory`,
    );
  }
  const reason = report.kind === "not-opened" ? report.reason : report.kind;
  return new ConfigError(
    "--data",
    `${dataDir} (${reason})`,
    "a directory with a moor database, or an empty one",
  );
}
