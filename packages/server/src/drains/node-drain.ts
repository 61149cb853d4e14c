// A node's drain over two processes: the one that leaves plans, closes and notes; the next one counts who came back.
//
// Spec: L24; design "Drains and restarts".
// I1  A note is written before the first link is closed, and deleted when its report is logged.
// I2  A report is logged once for each drain, at the latest MISSING_MS after its spread, or when the next drain begins.

import { randomHex, type Logger, type Runtime, type TimerHandle } from "@moor/runtime";
import { deleteDrainNote, markClients, readDrainNote, writeDrainNote, type DrainNote } from "./drain-note.ts";
import {
  downMsOf,
  drainForecast,
  drainReport,
  reportFields,
  type DrainForecast,
  type DrainReport,
} from "./drain-report.ts";
import { HandshakeMeter } from "./handshake-meter.ts";
import type { LinkDrainPort, LinkedClient, LinkWatch } from "./link-drain-port.ts";
import { ReturnWatch } from "./return-watch.ts";
import { runDrain, type PortFate } from "./run-drain.ts";
import { planEndMs, planSpread, type SpreadPlan } from "./spread-plan.ts";

/** Expected time between two processes of a node before one was measured. Milliseconds. */
const GAP_MS_AT_FIRST = 3_000;

/** What a node's drain works with. */
export interface NodeDrainOptions {
  readonly node: string;
  readonly shards: readonly string[];
  readonly dataDir: string;
  readonly links: () => LinkDrainPort;
  /** Whether another node takes clients in now. */
  readonly isServedMeanwhile: () => boolean;
  /** Whether the public port is an inherited socket, whose queue outlives this process. */
  readonly isPortQueued: boolean;
  /** Time the event loop was busy. Milliseconds, never falling. */
  readonly busyMs: () => number;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

/** How to leave. */
export interface LeaveOrder {
  /** Time that calls under way get. Milliseconds. */
  readonly graceMs: number;
  /** Another process listens at the public port already. Default false. */
  readonly isTakenOver?: boolean;
  /** Fires when there is no time any more: a second signal. */
  readonly hurry?: AbortSignal;
}

/** The parts of the node that a drain moves. */
export interface LeavingParts {
  readonly stopAccepting: () => Promise<void>;
  readonly finishCalls: (graceMs: number) => Promise<void>;
}

export class NodeDrain implements LinkWatch {
  readonly meter: HandshakeMeter;
  readonly #options: NodeDrainOptions;
  readonly #ordered = Promise.withResolvers<void>();
  #spreadMs: number | undefined;
  #isLeaving = false;
  #gapMs = GAP_MS_AT_FIRST;
  #watch: ReturnWatch | undefined;
  #downMs: number | undefined;
  #report: DrainReport | undefined;
  #timer: TimerHandle | undefined;

  constructor(options: NodeDrainOptions) {
    this.#options = options;
    const { runtime, busyMs, dataDir } = options;
    this.meter = new HandshakeMeter({ runtime, busyMs });
    const note = readDrainNote(dataDir);
    if (note === undefined) return;
    if (note.isMeasured) this.meter.recall(note.acceptRate);
    this.#watch = new ReturnWatch(note, runtime);
  }

  /** Resolves when an operator has ordered this node to leave. */
  get ordered(): Promise<void> {
    return this.#ordered.promise;
  }

  /** The node serves: from now on who is missing is waited for. */
  ready(): void {
    const watch = this.#watch;
    if (watch === undefined) return;
    this.#downMs = downMsOf(watch.note, this.#options.runtime.wallMs());
    this.#gapMs = this.#downMs ?? this.#gapMs;
    const waitMs = watch.isComplete ? 0 : watch.remainingMs;
    this.#timer = this.#options.runtime.schedule(waitMs, () => this.#finishReport());
  }

  linkVerified(client: LinkedClient): void {
    this.meter.noteHandshake();
    this.#came(client, "here");
  }

  linkedElsewhere(client: LinkedClient): void {
    this.#came(client, "elsewhere");
  }

  /** What a drain would do now. */
  foretell(spreadMs?: number): DrainForecast {
    const { node, shards, isServedMeanwhile, isPortQueued } = this.#options;
    return drainForecast(this.#plan(spreadMs), {
      node,
      shards,
      acceptRate: this.meter.acceptRate,
      is_measured: this.meter.isMeasured,
      is_handed_over: isPortQueued,
      is_served_meanwhile: isServedMeanwhile(),
      gapMs: this.#gapMs,
    });
  }

  /** Orders the node to leave: whoever runs it hears of it by `ordered`. */
  order(spreadMs?: number): DrainForecast {
    this.#spreadMs = spreadMs;
    this.#ordered.resolve();
    return this.foretell(spreadMs);
  }

  /** The report of the newest drain, if this process knows of one. */
  report(): DrainReport | undefined {
    if (this.#report !== undefined || this.#watch === undefined) return this.#report;
    const state = this.#isLeaving ? "closing" : "watching";
    return drainReport(state, this.#watch, this.#options.shards, this.#downMs);
  }

  /** Drains this node. Resolves when it holds neither call nor link. */
  async leave({ graceMs, isTakenOver = false, hurry }: LeaveOrder, parts: LeavingParts): Promise<void> {
    const { links, isServedMeanwhile, runtime, logger } = this.#options;
    if (this.#watch !== undefined) this.#finishReport();
    this.#isLeaving = true;
    const port: PortFate = isTakenOver ? "taken-over" : this.#options.isPortQueued ? "queued" : "closed";
    let watch: ReturnWatch | undefined;
    const counts = await runDrain({
      ...parts,
      port,
      isServedMeanwhile: isServedMeanwhile(),
      links: links(),
      plan: () => {
        const plan = this.#plan(this.#spreadMs);
        watch = this.#note(plan);
        const { spreadMs, waves } = plan;
        logger.info("drain-links", { links: plan.links, spreadMs, waves: waves.length, port });
        return plan;
      },
      graceMs,
      runtime,
      hurry: hurry ?? new AbortController().signal,
    });
    if (watch !== undefined) this.#noteEnd(watch, counts);
  }

  /** Forgets its timer; a note that was not reported stays for the next process. */
  close(): void {
    this.#options.runtime.cancel(this.#timer);
  }

  #plan(spreadMs: number | undefined): SpreadPlan {
    const { links, isServedMeanwhile } = this.#options;
    return planSpread({
      links: links().links(),
      acceptRate: this.meter.acceptRate,
      isServedMeanwhile: isServedMeanwhile(),
      spreadMs,
    });
  }

  /** Notes who is linked (I1), and watches who comes back elsewhere before this process has ended. */
  #note(plan: SpreadPlan): ReturnWatch {
    const { node, links, runtime } = this.#options;
    const salt = randomHex(runtime, 8);
    const watch = new ReturnWatch(
      {
        v: 1,
        node,
        startedAtMs: runtime.wallMs(),
        closedAtMs: null,
        spreadMs: plan.spreadMs,
        endMs: planEndMs(plan),
        waves: plan.waves.length,
        links: plan.links,
        closed: 0,
        destroyed: 0,
        acceptRate: this.meter.acceptRate,
        isMeasured: this.meter.isMeasured,
        salt,
        marks: markClients(links().clients(), plan.links, salt, runtime),
        elsewhere: 0,
      },
      runtime,
    );
    this.#watch = watch;
    this.#report = undefined;
    this.#write(watch.note);
    return watch;
  }

  #noteEnd(watch: ReturnWatch, counts: { readonly closed: number; readonly destroyed: number }): void {
    const { runtime, logger } = this.#options;
    logger.info("drain-links-closed", counts);
    const { elsewhere } = watch.counts();
    this.#write({
      ...watch.note,
      ...counts,
      closedAtMs: runtime.wallMs(),
      marks: watch.missingMarks(),
      elsewhere,
    });
  }

  #write(note: DrainNote): void {
    try {
      writeDrainNote(this.#options.dataDir, note);
    } catch {
      // Nobody waits for a report as for a restart.
      this.#options.logger.warn("drain-not-noted");
    }
  }

  #came(client: LinkedClient, where: "here" | "elsewhere"): void {
    const watch = this.#watch;
    if (watch === undefined) return;
    watch.came(client, where);
    if (watch.isComplete && this.#timer !== undefined) this.#finishReport();
  }

  /** Logs what became of a drain and forgets its note (I2). */
  #finishReport(): void {
    const { shards, dataDir, runtime, logger } = this.#options;
    const watch = this.#watch;
    if (watch === undefined) return;
    runtime.cancel(this.#timer);
    this.#timer = undefined;
    this.#watch = undefined;
    this.#report = drainReport("done", watch, shards, this.#downMs);
    logger.info("drain-report", reportFields(this.#report));
    deleteDrainNote(dataDir);
  }
}
