// A command of a home from its submission to its end, and who waits for it.
//
// Spec: L20, L31, L33.

import type { AppInstance, CommandId } from "@moor/protocol";
import type { TimerHandle } from "@moor/runtime";
import type { BoxAnswer, CommandEnding, LinkId, SubmissionId } from "../../peer/link-ports.ts";
import type { EntryId } from "../../peer/peer-link.ts";
import { COMMAND_LATE_ANSWER_MS } from "../../server-limits.ts";

/**
 * queued: no link took it. delivered: its link's entry has not said what became of it; `doubtUntilMs`: how long that is
 * waited for, Infinity while the link is there. written: the box has it. Instants are the shard's monotonic milliseconds.
 */
export type CommandProgress =
  | { readonly kind: "queued" }
  | {
      readonly kind: "delivered";
      readonly linkId: LinkId;
      readonly atMs: number;
      readonly doubtUntilMs: number;
    }
  | { readonly kind: "written"; readonly linkId: LinkId; readonly atMs: number };

/** One submission of a command: who is told of its end. */
export interface CommandWaiter {
  readonly submission: SubmissionId;
  readonly entry: EntryId;
  /** Undefined for a one-shot. */
  readonly app: AppInstance | undefined;
  readonly deadlineAtMs: number;
}

export interface OpenCommand {
  readonly id: CommandId;
  readonly app: AppInstance | undefined;
  /** Raw JSON; empty once it is written. */
  data: string;
  /** Bytes of `data` taken from the budgets. */
  reservedBytes: number;
  progress: CommandProgress;
  readonly waiters: Map<SubmissionId, CommandWaiter>;
  timer: TimerHandle | undefined;
}

/** Whether a command is in doubt and its link gone: nothing but a last word of the link's entry may come. */
export function hasLinkEnded({ progress }: OpenCommand): boolean {
  return progress.kind === "delivered" && progress.doubtUntilMs !== Number.POSITIVE_INFINITY;
}

/** When the last waiter's time is over, grace left out: how long the box may still act. */
export function deadlineAtMs({ waiters }: OpenCommand): number {
  return Math.max(...[...waiters.values()].map((waiter) => waiter.deadlineAtMs));
}

/** When a waiter's time is over if nothing more is heard: then it gets `overdueEnding`. */
export function dueAtMs({ progress }: OpenCommand, { deadlineAtMs }: CommandWaiter): number {
  switch (progress.kind) {
    case "queued":
      return deadlineAtMs;
    case "delivered":
      return Math.min(deadlineAtMs + COMMAND_LATE_ANSWER_MS, progress.doubtUntilMs);
    case "written":
      return deadlineAtMs + COMMAND_LATE_ANSWER_MS;
  }
}

/** How a waiter ends whose time is over: `expired` only what was certainly never written. */
export function overdueEnding({ progress }: OpenCommand): CommandEnding {
  return progress.kind === "queued" ? { kind: "expired" } : { kind: "unknown" };
}

/** What a box's answer means to a waiter. An app link has seen an ack: after that only result or unknown (L31). */
export function answerEnding(answer: BoxAnswer, { app }: CommandWaiter): CommandEnding {
  if (answer.kind === "result") return answer;
  if (answer.outcome === "unknown" || app !== undefined) return { kind: "unknown" };
  return answer.outcome === "expired" ? { kind: "expired" } : { kind: "not-delivered", why: "box" };
}
