// The report on the drain before this process: counts who comes back, asks other nodes for who is there, and ends in time.
//
// Spec: L24; design "Drains and restarts".
// I1  It ends once: when nobody is missing, when MISSING_MS after the spread is over, or when this node leaves in its turn.
// I2  Its end is logged, and the note deleted. Who was still missing when it was cut short counts as unknown.

import type { Logger, Runtime, TimerHandle } from "@moor/runtime";
import { deleteDrainNote, type DrainNote } from "./drain-note.ts";
import { downMsOf, drainReport, gapMsOf, reportFields, type DrainReport } from "./drain-report.ts";
import type { LinkedClient } from "./link-drain-port.ts";
import { ReturnWatch } from "./return-watch.ts";

/** Time that a handshake may take beyond its moment in the spread. Milliseconds. */
const RETURN_MARGIN_MS = 5_000;

/** What a report works with. */
export interface ReturnReportOptions {
  readonly note: DrainNote;
  readonly shards: readonly string[];
  readonly dataDir: string;
  /** Which of these marks, made with `salt`, are of clients linked to another node now. Never rejects. */
  readonly askOthers: (salt: string, marks: readonly string[]) => Promise<readonly string[]>;
  readonly onDone: (report: DrainReport) => void;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

export class ReturnReport {
  readonly #options: ReturnReportOptions;
  readonly #watch: ReturnWatch;
  #downMs: number | undefined;
  #gapMs: number | undefined;
  #timer: TimerHandle | undefined;
  #isDone = false;

  constructor(options: ReturnReportOptions) {
    this.#options = options;
    this.#watch = new ReturnWatch(options.note, options.runtime);
  }

  /**
   * Time from the close of the drain's last wave to `start`; undefined before that, and where it was no restart that
   * anybody waited for. Milliseconds, 0–GAP_MS_MAX.
   */
  get gapMs(): number | undefined {
    return this.#gapMs;
  }

  /** How long clients may take to be back, from now on. Milliseconds, 0 when none is expected any more. */
  get returningMs(): number {
    const { spreadLeftMs } = this.#watch;
    return spreadLeftMs === 0 ? 0 : spreadLeftMs + RETURN_MARGIN_MS;
  }

  /** The node serves: from now on who is missing is waited for. */
  start(): void {
    const { note, runtime } = this.#options;
    const nowMs = runtime.wallMs();
    this.#downMs = downMsOf(note, nowMs);
    this.#gapMs = gapMsOf(note, nowMs);
    if (this.#watch.isComplete) return this.#finish(false);
    this.#timer = runtime.schedule(this.#watch.spreadLeftMs + RETURN_MARGIN_MS, () => {
      this.#timer = runtime.schedule(this.#watch.remainingMs, () => {
        void this.#lookElsewhere().then(() => this.#finish(false));
      });
      void this.#lookElsewhere();
    });
  }

  came(client: LinkedClient, where: "here" | "elsewhere"): void {
    this.#watch.came(client, where);
    this.#finishIfComplete();
  }

  /** What is known now. */
  current(): DrainReport {
    return drainReport("watching", this.#watch, this.#options.shards, this.#downMs);
  }

  /** Ends it, whoever is missing. */
  cutShort(): void {
    this.#finish(true);
  }

  /** Stops its timer; a note that was not reported stays for the next process. */
  close(): void {
    this.#options.runtime.cancel(this.#timer);
  }

  /** Who holds no link here, and is of no home of this node's shards, may have one at another node. */
  async #lookElsewhere(): Promise<void> {
    const { note, askOthers } = this.#options;
    this.#watch.seenElsewhere(await askOthers(note.salt, this.#watch.missingMarks()));
    this.#finishIfComplete();
  }

  #finishIfComplete(): void {
    if (this.#watch.isComplete && this.#downMs !== undefined) this.#finish(false);
  }

  #finish(isCutShort: boolean): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.close();
    const { shards, dataDir, onDone, logger } = this.#options;
    const report = drainReport(isCutShort ? "cut-short" : "done", this.#watch, shards, this.#downMs);
    logger.info("drain-report", reportFields(report));
    deleteDrainNote(dataDir);
    onDone(report);
  }
}
