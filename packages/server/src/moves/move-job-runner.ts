// Runs the residency's move jobs while this node leads: each running job once, all of them side by side.
//
// Design: "Moves", "Drains and restarts". A job runs at whichever node leads; the command that ordered it only watches.
// I1  A job that another leader began goes on from its cursor.
// I2  Losing the lead stops every job here before its next batch; the directory refuses what comes too late.

import type { Logger, Runtime } from "@moor/runtime";
import type { Directory } from "../directory/directory.ts";
import type { Replica } from "../directory/replica.ts";
import { Leadership } from "./leadership.ts";
import { runMoveJob } from "./move-job.ts";
import type { Mover } from "./mover.ts";

/** What a runner needs. */
export interface MoveJobRunnerOptions {
  readonly directory: Pick<Directory, "tryLead" | "listJobs" | "getJob" | "updateJob">;
  readonly replica: Replica;
  readonly mover: Pick<Mover, "moveBatch">;
  readonly node: string;
  readonly incarnation: string;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

/** Most jobs that run at once: more shards than are ever emptied together. Count. */
const RUNNING_JOBS_MAX = 100;

/** Leads and runs jobs from `start` to `stop`. */
export class MoveJobRunner {
  readonly #options: MoveJobRunnerOptions;
  readonly #leadership: Leadership;
  readonly #running = new Map<string, Promise<void>>();
  readonly #leaving = new AbortController();
  #stopListening: (() => void) | undefined;
  #looking: "no" | "yes" | "again" = "no";

  constructor(options: MoveJobRunnerOptions) {
    this.#options = options;
    this.#leadership = new Leadership({ ...options, onAnswer: () => void this.#look() });
  }

  /** Whether this node leads now, as far as it can know. */
  get isLeading(): boolean {
    return this.#leadership.isLeading;
  }

  start(): void {
    this.#leadership.start();
    // A new job begins when the feed tells of it, not when leadership is next renewed.
    this.#stopListening = this.#options.replica.onChange(({ kind, id }) => {
      if (kind === "job" && !this.#running.has(id)) void this.#look();
    });
  }

  /** Resolves when the batches under way have ended. */
  async stop(): Promise<void> {
    this.#stopListening?.();
    this.#leadership.stop();
    this.#leaving.abort();
    await Promise.all(this.#running.values());
  }

  /** Takes up every running job that is not taken up yet. */
  async #look(): Promise<void> {
    if (this.#looking !== "no") {
      this.#looking = "again";
      return;
    }
    do {
      this.#looking = "yes";
      if (this.isLeading) await this.#takeUpAll();
    } while (this.#wasAskedAgain());
    this.#looking = "no";
  }

  #wasAskedAgain(): boolean {
    return this.#looking === "again";
  }

  async #takeUpAll(): Promise<void> {
    const page = { limit: RUNNING_JOBS_MAX, state: "running" } as const;
    const jobs = await this.#options.directory.listJobs(page).catch(() => undefined);
    for (const { id } of jobs?.items ?? []) this.#takeUp(id);
  }

  #takeUp(id: string): void {
    if (this.#running.has(id) || !this.isLeading) return;
    this.#options.logger.info("move-job-taken-up", { job: id });
    const running = runMoveJob(id, {
      ...this.#options,
      isLeading: () => this.isLeading,
      signal: this.#leaving.signal,
    }).finally(() => this.#running.delete(id));
    this.#running.set(id, running);
  }
}
