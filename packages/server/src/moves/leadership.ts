// Whether this node leads: a lease row in the directory, taken by whoever finds it free.
//
// Design: "Liveness". I1  A leader counts its lease from when it sent the request, so it stops believing before the
// directory gives the lease to another.   I2  What a leader writes is checked by the directory again: a belief that
// outlives its lease changes nothing.

import type { Logger, Runtime, TimerHandle } from "@moor/runtime";
import type { Directory } from "../directory/directory.ts";

/** How long leadership lasts without a renewal. Milliseconds. */
const LEADER_LEASE_MS = 15_000;
/** How often it is asked for. Milliseconds: two requests may fail before it is lost. */
const LEADER_ASK_INTERVAL_MS = LEADER_LEASE_MS / 3;

/** What leadership needs. */
export interface LeadershipOptions {
  readonly directory: Pick<Directory, "tryLead">;
  readonly node: string;
  readonly incarnation: string;
  readonly runtime: Runtime;
  readonly logger: Logger;
  /** Called after each answer, whatever it was. */
  readonly onAnswer: () => void;
}

/** Asks from `start` to `stop`. */
export class Leadership {
  readonly #options: LeadershipOptions;
  #untilMs = Number.NEGATIVE_INFINITY;
  #wasLeading = false;
  #isStopped = false;
  #timer: TimerHandle | undefined;

  constructor(options: LeadershipOptions) {
    this.#options = options;
  }

  /** Whether this node leads now, as far as it can know. */
  get isLeading(): boolean {
    return !this.#isStopped && this.#options.runtime.monotonicMs() < this.#untilMs;
  }

  start(): void {
    void this.#ask();
  }

  /** Leads no more; the lease runs out by itself. */
  stop(): void {
    this.#isStopped = true;
    this.#options.runtime.cancel(this.#timer);
  }

  async #ask(): Promise<void> {
    const { directory, node, incarnation, runtime, onAnswer } = this.#options;
    const sentAtMs = runtime.monotonicMs();
    const isGranted = await directory
      .tryLead({ node, incarnation, ttlMs: LEADER_LEASE_MS })
      .catch(() => undefined);
    if (this.#isStopped) return;
    if (isGranted === true) this.#untilMs = sentAtMs + LEADER_LEASE_MS;
    if (isGranted === false) this.#untilMs = Number.NEGATIVE_INFINITY;
    this.#noteTurn();
    onAnswer();
    const tookMs = runtime.monotonicMs() - sentAtMs;
    this.#timer = runtime.schedule(LEADER_ASK_INTERVAL_MS - tookMs, () => void this.#ask());
  }

  #noteTurn(): void {
    const { isLeading } = this;
    if (isLeading !== this.#wasLeading) this.#options.logger.info(isLeading ? "leading" : "leading-no-more");
    this.#wasLeading = isLeading;
  }
}
