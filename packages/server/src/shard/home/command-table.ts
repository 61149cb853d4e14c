// The commands of one home: queued for its box, delivered, written, answered.
//
// Spec: L20, L31, L33; link-ports.ts I2, I5.
// I1  A repeat of an id that is known joins the command, or gets the kept result.
// I2  A command is delivered to one link at a time, and to a link at most once. `not-written` makes it deliverable to
//     another; one that was written, or of which nobody said, is never delivered again.
// I3  Every waiter gets exactly one ending: `expired`, `not-delivered` and `not-owner` only before a box may have it.
// I4  A written command that nobody waits for stays known while its link lasts, so that a repeat joins it.

import type { CommandId, HomeId } from "@moor/protocol";
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
import { COMMAND_SETTLE_WAIT_MS, HOME_COMMANDS_OPEN_MAX } from "../../server-limits.ts";
import { CommandVoice } from "./command-voice.ts";
import type { HomeContext } from "./home-context.ts";
import { KeptResults } from "./kept-results.ts";
import {
  answerEnding,
  deadlineAtMs,
  dueAtMs,
  hasLinkEnded,
  overdueEnding,
  type OpenCommand,
} from "./open-command.ts";
import { OpenCommands } from "./open-commands.ts";

const NO_BOX: CommandEnding = { kind: "not-delivered", why: "no-box" };
const BUSY: CommandEnding = { kind: "not-delivered", why: "busy" };
const UNKNOWN: CommandEnding = { kind: "unknown" };

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
  readonly #voice: CommandVoice;
  readonly #commands: OpenCommands;
  readonly #results: KeptResults;
  /** Set while the shard does not own the home: how what turns out not to be written ends. */
  #givenBackAs: CommandEnding | undefined;

  constructor(home: HomeId, context: HomeContext, box: CommandSink) {
    this.#home = home;
    this.#context = context;
    this.#box = box;
    this.#voice = new CommandVoice(home, context);
    this.#commands = new OpenCommands(context, (open) => this.#endOverdue(open));
    this.#results = new KeptResults(context.budget);
  }

  /** Submissions that wait for their ending. */
  get openCount(): number {
    return this.#commands.waiterCount;
  }

  /** Whether nothing would be lost by forgetting it. */
  isIdle(): boolean {
    return this.#commands.size === 0 && this.#results.size === 0;
  }

  /** Ends every timer. Commands are left as they are: their entries end them. */
  close(): void {
    this.#commands.close();
  }

  submit(command: SubmittedCommand): void {
    const { id, submission, entry, app, remainingMs, isAgain } = command;
    const waiter = { submission, entry, app, deadlineAtMs: this.#nowMs() + remainingMs };
    const known = this.#commands.find(id);
    if (known?.waiters.has(submission) === true) return this.#voice.joined(known, waiter);
    const result = this.#results.find(id, this.#nowMs());
    if (result !== undefined) return this.#voice.ended(waiter, { kind: "result", data: result });
    // It may have been here before, and have run (link-ports.ts I5).
    if (isAgain && known === undefined) return this.#voice.ended(waiter, UNKNOWN);
    const refusal = this.#refusalOf(command, known);
    if (refusal !== undefined) return this.#voice.ended(waiter, isAgain ? UNKNOWN : refusal);
    const open = known ?? this.#commands.add(command);
    if (open === undefined) return this.#voice.ended(waiter, BUSY);
    this.#commands.addWaiter(open, waiter);
    if (known === undefined) this.#deliver(open);
    else this.#voice.joined(open, waiter);
  }

  /** Nobody waits for this submission any more. */
  withdraw(submission: SubmissionId): void {
    const open = this.#commands.ofSubmission(submission);
    if (open === undefined) return;
    this.#commands.removeWaiter(open, submission);
    this.#forgetIfUnwanted(open);
  }

  /** An entry is gone for good, and whoever waited there. */
  dropEntry(entry: EntryId): void {
    for (const open of this.#commands) {
      for (const waiter of open.waiters.values())
        if (waiter.entry === entry) this.withdraw(waiter.submission);
    }
  }

  /** The first word of a link's entry on a delivered command. */
  settle(linkId: LinkId, id: CommandId, outcome: "written" | "not-written"): void {
    const open = this.#commands.find(id);
    if (open?.progress.kind !== "delivered" || open.progress.linkId !== linkId) return;
    if (outcome === "not-written") this.#notWritten(open, linkId);
    else if (hasLinkEnded(open)) this.#end(open, UNKNOWN);
    else {
      this.#commands.progress(open, { kind: "written", linkId, atMs: this.#nowMs() });
      this.#voice.written(open);
    }
  }

  /** Whether a command was delivered to a link and nothing is known of it yet. */
  isInDoubt(linkId: LinkId, id: CommandId): boolean {
    const progress = this.#commands.find(id)?.progress;
    return progress?.kind === "delivered" && progress.linkId === linkId;
  }

  /** What the box says of a command, be it one that was given to an earlier link of it. */
  answer(id: CommandId, answer: BoxAnswer): void {
    const isKept = answer.kind === "result" && this.#givenBackAs === undefined;
    if (isKept) this.#results.keep(id, answer.data, this.#nowMs());
    const open = this.#commands.find(id);
    if (open === undefined) return;
    this.#commands.remove(open);
    for (const waiter of open.waiters.values()) this.#voice.ended(waiter, answerEnding(answer, waiter));
  }

  /** A box link takes commands from now on. */
  deliverQueued(): void {
    for (const open of this.#commands) if (open.progress.kind === "queued") this.#deliver(open);
  }

  /** No box is to be expected. */
  failQueued(): void {
    for (const open of this.#commands) if (open.progress.kind === "queued") this.#end(open, NO_BOX);
  }

  /** A box link ended: what it had is in nobody's hands any more (L20). */
  linkEnded(linkId: LinkId): void {
    for (const open of this.#commands) {
      if (open.progress.kind !== "queued" && open.progress.linkId === linkId) this.#lost(open);
    }
  }

  /** The shard does not own the home any more: gives back what was not written. */
  leave(ending: CommandEnding): void {
    this.#givenBackAs = ending;
    this.#results.clear();
    for (const open of this.#commands) {
      if (open.progress.kind === "queued") this.#end(open, ending);
      else this.#lost(open);
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
    this.#commands.sweep(nowMs);
  }

  #refusalOf({ remainingMs }: SubmittedCommand, known: OpenCommand | undefined): CommandEnding | undefined {
    if (remainingMs <= 0) return { kind: "expired" };
    if (known === undefined && this.#box.presence() === "offline") return NO_BOX;
    return this.#commands.waiterCount >= HOME_COMMANDS_OPEN_MAX ? BUSY : undefined;
  }

  #deliver(open: OpenCommand): void {
    const link = this.#box.link();
    if (link === undefined) return;
    const nowMs = this.#nowMs();
    const { linkId, entry } = link;
    const { id, app, data } = open;
    const doubtUntilMs = Number.POSITIVE_INFINITY;
    this.#commands.progress(open, { kind: "delivered", linkId, atMs: nowMs, doubtUntilMs });
    const remainingMs = Math.max(0, deadlineAtMs(open) - nowMs);
    entry.deliverCommand({ linkId, home: this.#home, id, app, remainingMs, data }, this.#context.port);
  }

  /** A link's entry did not write it, and never will: another link may. */
  #notWritten(open: OpenCommand, linkId: LinkId): void {
    if (open.waiters.size === 0) return this.#commands.remove(open);
    if (this.#givenBackAs !== undefined) return this.#end(open, this.#givenBackAs);
    this.#commands.progress(open, { kind: "queued" });
    const link = this.#box.link();
    if (link !== undefined && link.linkId !== linkId) this.#deliver(open);
    else if (this.#box.presence() !== "unknown") this.#end(open, NO_BOX);
  }

  /** Its link is gone: what was written is unknown, what is in doubt waits a little for its entry's word. */
  #lost(open: OpenCommand): void {
    if (open.progress.kind !== "delivered") return this.#end(open, UNKNOWN);
    const doubtUntilMs = this.#nowMs() + COMMAND_SETTLE_WAIT_MS;
    this.#commands.progress(open, { ...open.progress, doubtUntilMs });
    this.#forgetIfUnwanted(open);
  }

  /** Ends a command for everybody who waits for it, and forgets it. */
  #end(open: OpenCommand, ending: CommandEnding): void {
    this.#commands.remove(open);
    for (const waiter of open.waiters.values()) this.#voice.ended(waiter, ending);
  }

  /** What no link has and nobody wants is not delivered any more. */
  #forgetIfUnwanted(open: OpenCommand): void {
    const isHad = open.progress.kind !== "queued" && !hasLinkEnded(open);
    if (open.waiters.size === 0 && !isHad) this.#commands.remove(open);
  }

  #endOverdue(open: OpenCommand): void {
    const nowMs = this.#nowMs();
    const overdue = [...open.waiters.values()].filter((waiter) => dueAtMs(open, waiter) <= nowMs);
    const ending = overdueEnding(open);
    for (const waiter of overdue) {
      this.withdraw(waiter.submission);
      this.#voice.ended(waiter, ending);
    }
  }

  #nowMs(): number {
    return this.#context.runtime.monotonicMs();
  }
}
