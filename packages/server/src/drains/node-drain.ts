// A node's drain over two processes: the one that leaves plans, closes and notes; the next one counts who came back.
//
// Spec: L24; design "Drains and restarts".
// I1  A note is written before the first link is closed; what the next process makes of it is return-report.ts.
// I2  At most one drain is watched: a node that leaves ends the report on the drain before.

import { clampSpreadMs } from "@moor/protocol";
import { randomHex, type Logger, type Runtime } from "@moor/runtime";
import type { CloseCounts } from "./close-links.ts";
import { markClients, readDrainNote, writeDrainNote, type DrainNote } from "./drain-note.ts";
import { drainForecast, drainReport, type DrainForecast, type DrainReport } from "./drain-report.ts";
import { HandshakeMeter } from "./handshake-meter.ts";
import type { LinkDrainPort, LinkedClient, LinkWatch } from "./link-drain-port.ts";
import { findMarks } from "./linked-marks.ts";
import { ReturnReport } from "./return-report.ts";
import { ReturnWatch } from "./return-watch.ts";
import { runDrain, type PortFate } from "./run-drain.ts";
import { planEndMs, planSpread, spreadNeededMs, type SpreadPlan } from "./spread-plan.ts";

/** Expected time from closing links to the next process serving, before one was measured. Milliseconds. */
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
  /** Which of these marks, made with `salt`, are of clients linked to another node now. Never rejects. */
  readonly askOthers: (salt: string, marks: readonly string[]) => Promise<readonly string[]>;
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
  readonly finishOneShots: (graceMs: number) => Promise<void>;
}

export class NodeDrain implements LinkWatch {
  readonly meter: HandshakeMeter;
  readonly #options: NodeDrainOptions;
  readonly #ordered = Promise.withResolvers<void>();
  readonly #before: ReturnReport | undefined;
  #spreadMs: number | undefined;
  #isLeaving = false;
  /** Who has left with this process's own drain. */
  #leaving: ReturnWatch | undefined;
  #gapMs = GAP_MS_AT_FIRST;
  #report: DrainReport | undefined;

  constructor(options: NodeDrainOptions) {
    this.#options = options;
    const { runtime, busyMs, dataDir, shards, askOthers, logger } = options;
    this.meter = new HandshakeMeter({ runtime, busyMs });
    const note = readDrainNote(dataDir);
    if (note === undefined) return;
    if (note.isMeasured) this.meter.recall(note.acceptRate);
    const onDone = (report: DrainReport) => {
      this.#report = report;
    };
    this.#before = new ReturnReport({ note, shards, dataDir, askOthers, onDone, runtime, logger });
  }

  /** Resolves when an operator has ordered this node to leave. */
  get ordered(): Promise<void> {
    return this.#ordered.promise;
  }

  /** The node serves: from now on who is missing is waited for. */
  ready(): void {
    this.#before?.start();
    this.#gapMs = this.#before?.gapMs ?? this.#gapMs;
  }

  /** How long boxes of the last drain may take to be back, from now on. Milliseconds, 0 when none is expected. */
  get returningMs(): number {
    return this.#before?.returningMs ?? 0;
  }

  linkVerified(client: LinkedClient): void {
    this.meter.noteVerified();
    this.#before?.came(client, "here");
  }

  handshakeFailed(): void {
    this.meter.noteFailed();
  }

  linkedElsewhere(client: LinkedClient): void {
    this.#before?.came(client, "elsewhere");
    this.#leaving?.came(client, "elsewhere");
  }

  /** Over how many milliseconds clients are to come back should this process end now, drained or not. Spec L24, L28. */
  get spreadMs(): number {
    const links = this.#options.links().links();
    return clampSpreadMs(spreadNeededMs({ links, acceptRate: this.meter.acceptRate, gapMs: this.#gapMs }));
  }

  /** What a drain would do now. */
  foretell(spreadMs?: number): DrainForecast {
    const { node, shards, isServedMeanwhile, isPortQueued } = this.#options;
    return drainForecast(this.#plan(spreadMs, isServedMeanwhile()), {
      node,
      shards,
      acceptRate: this.meter.acceptRate,
      is_measured: this.meter.isMeasured,
      is_handed_over: isPortQueued,
      is_served_meanwhile: isServedMeanwhile(),
      gapMs: this.#gapMs,
    });
  }

  /** Whether this node was told to leave, by whatever. */
  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  /** Orders the node to leave, once: whoever runs it hears of it by `ordered`. */
  order(spreadMs?: number): DrainForecast {
    this.#isLeaving = true;
    this.#spreadMs = spreadMs;
    this.#ordered.resolve();
    return this.foretell(spreadMs);
  }

  /** The report of the newest drain, if this process knows of one. */
  report(): DrainReport | undefined {
    if (this.#leaving !== undefined) {
      return drainReport("closing", this.#leaving, this.#options.shards, undefined);
    }
    return this.#report ?? this.#before?.current();
  }

  /** Which of these marks, made with another node's salt, are of clients linked here. */
  async linkedHere(salt: string, marks: readonly string[]): Promise<readonly string[]> {
    return findMarks(this.#options.links().clients(), salt, marks, this.#options.runtime);
  }

  /** Drains this node. Resolves when it holds neither call nor link. */
  async leave({ graceMs, isTakenOver = false, hurry }: LeaveOrder, parts: LeavingParts): Promise<void> {
    const { links, isServedMeanwhile, runtime, logger } = this.#options;
    this.#isLeaving = true;
    this.#before?.cutShort();
    const port: PortFate = isTakenOver ? "taken-over" : this.#options.isPortQueued ? "queued" : "closed";
    const counts = await runDrain({
      ...parts,
      port,
      isServedMeanwhile: isServedMeanwhile(),
      links: links(),
      plan: () => {
        // Whoever has taken the port over holds dials for no longer than this process takes: waves would outlast it.
        const plan = this.#plan(this.#spreadMs, !isTakenOver && isServedMeanwhile());
        this.#leaving = this.#note(plan);
        const { spreadMs, waves } = plan;
        logger.info("drain-links", { links: plan.links, spreadMs, waves: waves.length, port });
        return plan;
      },
      graceMs,
      runtime,
      hurry: hurry ?? new AbortController().signal,
    });
    if (this.#leaving !== undefined) this.#noteEnd(this.#leaving, counts);
  }

  /** Stops its timers; a note that was not reported stays for the next process. */
  close(): void {
    this.#before?.close();
  }

  #plan(spreadMs: number | undefined, isServedMeanwhile: boolean): SpreadPlan {
    const links = this.#options.links().links();
    const { acceptRate } = this.meter;
    return planSpread({ links, acceptRate, gapMs: this.#gapMs, isServedMeanwhile, spreadMs });
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
    this.#write(watch.note);
    return watch;
  }

  #noteEnd(watch: ReturnWatch, { closed, destroyed }: CloseCounts): void {
    const { runtime, logger } = this.#options;
    logger.info("drain-links-closed", { closed, destroyed });
    const { elsewhere } = watch.counts();
    this.#write({
      ...watch.note,
      closed,
      destroyed,
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
}
