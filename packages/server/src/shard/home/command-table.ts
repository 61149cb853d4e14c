// The commands of one home: queued for its box, delivered, written, answered.
//
// Spec: L20, L31, L33; link-ports.ts I2, I5.
// I1  A command is in the table once, by its id. A repeat of an id that is known joins it, or gets the kept result.
// I2  A command is delivered to one link at a time, and to a link at most once. `not-written` makes it deliverable to
//     another; one that was written, or of which nobody said, is never delivered again.
// I3  Every waiter gets exactly one ending: `expired`, `not-delivered` and `not-owner` only before a box may have it.
// I4  A written command that nobody waits for stays known while its link lasts, so that a repeat joins it.

import type { CommandId, HomeId } from "@moor/protocol";
import type { CommandEndingLabel } from "../../operator/metrics.ts";
import type {
  BoxAnswer,
  CommandEnding,
  LinkEntryPort,
  LinkId,
  Presence,
  SubmissionId,
  SubmittedCommand,
} from "../../peer/link-ports.ts";
import type { EntryId } from "../../peer/peer-link.ts";
import {
  COMMAND_SETTLE_WAIT_MS,
  HOME_COMMAND_BYTES_MAX,
  HOME_COMMANDS_OPEN_MAX,
  HOME_RESULT_KEPT_MS,
  HOME_RESULTS_KEPT_MAX,
} from "../../server-limits.ts";
import type { HomeContext } from "./home-context.ts";
import { KeptResults } from "./kept-results.ts";
import {
  answerEnding,
  dueAtMs,
  hasLinkEnded,
  overdueEnding,
  type CommandWaiter,
  type OpenCommand,
} from "./open-command.ts";

const NO_BOX: CommandEnding = { kind: "not-delivered", why: "no-box" };
const BUSY: CommandEnding = { kind: "not-delivered", why: "busy" };
const UNKNOWN: CommandEnding = { kind: "unknown" };

const ENDING_LABELS: Readonly<Record<CommandEnding["kind"], CommandEndingLabel>> = {
  result: "result",
  unknown: "unknown",
  "not-delivered": "not_delivered",
  expired: "expired",
  "not-owner": "given_back",
};

/** The box as commands see it. */
export interface CommandSink {
  readonly presence: () => Presence["box"];
  /** The link that takes commands now, if any, and its entry. */
  readonly link: () => { readonly linkId: LinkId; readonly entry: LinkEntryPort } | undefined;
}

export class CommandTable {
  readonly #home: HomeId;
  readonly #context: HomeContext;
  readonly #box: CommandSink;
  /** In the order of their submission. */
  readonly #commands = new Map<CommandId, OpenCommand>();
  readonly #bySubmission = new Map<SubmissionId, OpenCommand>();
  readonly #results: KeptResults;
  #bytes = 0;
  /** Set while the shard does not own the home: how what turns out not to be written ends. */
  #givenBackAs: CommandEnding | undefined;

  constructor(home: HomeId, context: HomeContext, box: CommandSink) {
    this.#home = home;
    this.#context = context;
    this.#box = box;
    this.#results = new KeptResults(context.budget);
  }

  /** Submissions that wait for their ending. */
  get openCount(): number {
    return this.#bySubmission.size;
  }

  /** Whether nothing would be lost by forgetting it. */
  isIdle(): boolean {
    return this.#commands.size === 0 && this.#results.size === 0;
  }

  /** Ends every timer. Commands are left as they are: their entries end them. */
  close(): void {
    for (const { timer } of this.#commands.values()) this.#context.runtime.cancel(timer);
  }

  submit(command: SubmittedCommand): void {
    const waiter = { ...waiterOf(command), deadlineAtMs: this.#nowMs() + command.remainingMs };
    const open = this.#commands.get(command.id);
    if (open?.waiters.has(command.submission) === true) return this.#tellIfWritten(open, waiter);
    const result = this.#results.find(command.id, this.#nowMs());
    if (result !== undefined) return this.#tellEnding(waiter, { kind: "result", data: result });
    // It may have been here before, and have run (link-ports.ts I5).
    if (command.isAgain && open === undefined) return this.#tellEnding(waiter, UNKNOWN);
    const refusal = this.#refusalOf(command, open);
    if (refusal !== undefined) return this.#tellEnding(waiter, command.isAgain ? UNKNOWN : refusal);
    if (open === undefined) return this.#start(command, waiter);
    this.#addWaiter(open, waiter);
    this.#tellIfWritten(open, waiter);
  }

  /** Nobody waits for this submission any more. */
  withdraw(submission: SubmissionId): void {
    const open = this.#bySubmission.get(submission);
    if (open === undefined) return;
    this.#bySubmission.delete(submission);
    open.waiters.delete(submission);
    this.#settleTimer(open);
    this.#forgetIfUnwanted(open);
  }

  /** An entry is gone for good, and whoever waited there. */
  dropEntry(entry: EntryId): void {
    for (const open of this.#commands.values()) {
      for (const waiter of open.waiters.values())
        if (waiter.entry === entry) this.withdraw(waiter.submission);
    }
  }

  /** The first word of a link's entry on a delivered command. */
  settle(linkId: LinkId, id: CommandId, outcome: "written" | "not-written"): void {
    const open = this.#commands.get(id);
    if (open?.progress.kind !== "delivered" || open.progress.linkId !== linkId) return;
    if (outcome === "written") {
      return hasLinkEnded(open) ? this.#end(open, UNKNOWN) : this.#written(open, linkId);
    }
    open.progress = { kind: "queued" };
    if (open.waiters.size === 0) return this.#remove(open);
    if (this.#givenBackAs !== undefined) return this.#end(open, this.#givenBackAs);
    this.#settleTimer(open);
    const link = this.#box.link();
    if (link !== undefined && link.linkId !== linkId) this.#deliver(open);
    else if (this.#box.presence() !== "unknown") this.#end(open, NO_BOX);
  }

  /** Whether a command was delivered to a link and nothing is known of it yet. */
  isInDoubt(linkId: LinkId, id: CommandId): boolean {
    const progress = this.#commands.get(id)?.progress;
    return progress?.kind === "delivered" && progress.linkId === linkId;
  }

  /** What the box says of a command, be it one that was given to an earlier link of it. */
  answer(id: CommandId, answer: BoxAnswer): void {
    const isKept = answer.kind === "result" && this.#givenBackAs === undefined;
    if (isKept) this.#results.keep(id, answer.data, this.#nowMs());
    const open = this.#commands.get(id);
    if (open === undefined) return;
    this.#remove(open);
    for (const waiter of open.waiters.values()) this.#tellEnding(waiter, answerEnding(answer, waiter));
  }

  /** A box link takes commands from now on. */
  deliverQueued(): void {
    for (const open of this.#commands.values()) if (open.progress.kind === "queued") this.#deliver(open);
  }

  /** No box is to be expected. */
  failQueued(): void {
    for (const open of this.#commands.values()) if (open.progress.kind === "queued") this.#end(open, NO_BOX);
  }

  /** A box link ended: what it had is in nobody's hands any more (L20). */
  linkEnded(linkId: LinkId): void {
    for (const open of this.#commands.values()) {
      if (open.progress.kind === "queued" || open.progress.linkId !== linkId) continue;
      if (open.progress.kind === "written") this.#end(open, UNKNOWN);
      else this.#doubt(open);
    }
  }

  /** The shard does not own the home any more: gives back what was not written. */
  leave(ending: CommandEnding): void {
    this.#givenBackAs = ending;
    this.#results.clear();
    for (const open of this.#commands.values()) {
      if (open.progress.kind === "queued") this.#end(open, ending);
      else if (open.progress.kind === "written") this.#end(open, UNKNOWN);
      else this.#doubt(open);
    }
  }

  /** The shard owns the home again. */
  arrive(): void {
    this.#givenBackAs = undefined;
  }

  /** Forgets what is over. */
  sweep(): void {
    const nowMs = this.#nowMs();
    this.#results.sweep(nowMs);
    for (const open of this.#commands.values()) {
      const isForgotten =
        open.progress.kind !== "queued" && nowMs - open.progress.atMs >= HOME_RESULT_KEPT_MS;
      if (open.waiters.size === 0 && isForgotten) this.#remove(open);
    }
  }

  #refusalOf(command: SubmittedCommand, open: OpenCommand | undefined): CommandEnding | undefined {
    if (command.remainingMs <= 0) return { kind: "expired" };
    if (open === undefined && this.#box.presence() === "offline") return NO_BOX;
    if (this.#bySubmission.size >= HOME_COMMANDS_OPEN_MAX) return BUSY;
    if (open !== undefined) return undefined;
    const bytes = Buffer.byteLength(command.data);
    return this.#bytes + bytes <= HOME_COMMAND_BYTES_MAX && this.#context.budget.tryReserve(bytes)
      ? undefined
      : BUSY;
  }

  /** Takes a command on whose bytes are reserved. */
  #start({ id, app, data }: SubmittedCommand, waiter: CommandWaiter): void {
    const reservedBytes = Buffer.byteLength(data);
    this.#bytes += reservedBytes;
    const open: OpenCommand = {
      id,
      app,
      data,
      reservedBytes,
      progress: { kind: "queued" },
      waiters: new Map(),
      timer: undefined,
    };
    this.#commands.set(id, open);
    this.#addWaiter(open, waiter);
    this.#deliver(open);
  }

  #addWaiter(open: OpenCommand, waiter: CommandWaiter): void {
    open.waiters.set(waiter.submission, waiter);
    this.#bySubmission.set(waiter.submission, open);
    this.#settleTimer(open);
  }

  #deliver(open: OpenCommand): void {
    const link = this.#box.link();
    if (link === undefined) return;
    const nowMs = this.#nowMs();
    const { linkId, entry } = link;
    const { id, app, data } = open;
    open.progress = { kind: "delivered", linkId, atMs: nowMs, doubtUntilMs: Number.POSITIVE_INFINITY };
    this.#settleTimer(open);
    const deadlineAtMs = Math.max(...[...open.waiters.values()].map((waiter) => waiter.deadlineAtMs));
    const remainingMs = Math.max(0, deadlineAtMs - nowMs);
    entry.deliverCommand({ linkId, home: this.#home, id, app, remainingMs, data }, this.#context.port);
  }

  #written(open: OpenCommand, linkId: LinkId): void {
    open.progress = { kind: "written", linkId, atMs: this.#nowMs() };
    this.#release(open);
    open.data = "";
    this.#settleTimer(open);
    for (const waiter of open.waiters.values()) this.#tellIfWritten(open, waiter);
    this.#boundKnown();
  }

  #doubt(open: OpenCommand): void {
    if (open.progress.kind !== "delivered") return;
    open.progress = { ...open.progress, doubtUntilMs: this.#nowMs() + COMMAND_SETTLE_WAIT_MS };
    this.#settleTimer(open);
    this.#forgetIfUnwanted(open);
  }

  /** Ends a command for everybody who waits for it, and forgets it. */
  #end(open: OpenCommand, ending: CommandEnding): void {
    this.#remove(open);
    for (const waiter of open.waiters.values()) this.#tellEnding(waiter, ending);
  }

  #remove(open: OpenCommand): void {
    this.#commands.delete(open.id);
    for (const submission of open.waiters.keys()) this.#bySubmission.delete(submission);
    this.#context.runtime.cancel(open.timer);
    this.#release(open);
  }

  #release(open: OpenCommand): void {
    this.#bytes -= open.reservedBytes;
    this.#context.budget.release(open.reservedBytes);
    open.reservedBytes = 0;
  }

  /** What no link has and nobody wants is not delivered any more. */
  #forgetIfUnwanted(open: OpenCommand): void {
    const isHad = open.progress.kind !== "queued" && !hasLinkEnded(open);
    if (open.waiters.size === 0 && !isHad) this.#remove(open);
    this.#boundKnown();
  }

  /** Written commands that nobody waits for are bounded: the oldest is forgotten first (I4). */
  #boundKnown(): void {
    if (this.#commands.size <= HOME_COMMANDS_OPEN_MAX + HOME_RESULTS_KEPT_MAX) return;
    for (const open of this.#commands.values()) {
      if (open.waiters.size === 0) return this.#remove(open);
    }
  }

  /** Looks again when the first waiter's time is over. */
  #settleTimer(open: OpenCommand): void {
    const { runtime } = this.#context;
    runtime.cancel(open.timer);
    open.timer = undefined;
    let dueMs = Number.POSITIVE_INFINITY;
    for (const waiter of open.waiters.values()) dueMs = Math.min(dueMs, dueAtMs(open, waiter));
    if (dueMs === Number.POSITIVE_INFINITY) return;
    open.timer = runtime.schedule(dueMs - this.#nowMs(), () => this.#endOverdue(open));
  }

  #endOverdue(open: OpenCommand): void {
    const nowMs = this.#nowMs();
    const overdue = [...open.waiters.values()].filter((waiter) => dueAtMs(open, waiter) <= nowMs);
    const ending = overdueEnding(open);
    for (const waiter of overdue) {
      this.withdraw(waiter.submission);
      this.#tellEnding(waiter, ending);
    }
    if (this.#commands.get(open.id) === open) this.#settleTimer(open);
  }

  #tellIfWritten(open: OpenCommand, waiter: CommandWaiter): void {
    if (open.progress.kind !== "written") return;
    this.#context.entries(waiter.entry)?.commandWritten(waiter.submission);
  }

  #tellEnding({ entry, submission }: CommandWaiter, ending: CommandEnding): void {
    const { metrics, logger, entries } = this.#context;
    metrics.commandsEnded.inc(ENDING_LABELS[ending.kind]);
    if (logger.isDebug)
      logger.debug("home-command-ended", { home: this.#home, submission, ending: ending.kind });
    entries(entry)?.commandEnded(submission, ending);
  }

  #nowMs(): number {
    return this.#context.runtime.monotonicMs();
  }
}

function waiterOf({ submission, entry, app }: SubmittedCommand): Omit<CommandWaiter, "deadlineAtMs"> {
  return { submission, entry, app };
}
