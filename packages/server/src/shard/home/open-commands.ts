// The commands of one home that are known, by id and by submission, with what they hold: bytes, and a timer each.
//
// Spec: L25, L31.
// I1  A command is here once, by its id; a submission waits for one command. What is removed holds no byte and no timer.
// I2  Data is held until the command is written, and no longer.
// I3  Commands that nobody waits for are bounded: the oldest is forgotten first.

import type { CommandId } from "@moor/protocol";
import type { SubmissionId, SubmittedCommand } from "../../peer/link-ports.ts";
import {
  HOME_COMMAND_BYTES_MAX,
  HOME_COMMANDS_OPEN_MAX,
  HOME_RESULT_KEPT_MS,
  HOME_RESULTS_KEPT_MAX,
} from "../../server-limits.ts";
import type { HomeContext } from "./home-context.ts";
import { dueAtMs, type CommandProgress, type CommandWaiter, type OpenCommand } from "./open-command.ts";

export class OpenCommands {
  readonly #context: Pick<HomeContext, "runtime" | "budget">;
  readonly #due: (open: OpenCommand) => void;
  /** In the order of their submission. */
  readonly #byId = new Map<CommandId, OpenCommand>();
  readonly #bySubmission = new Map<SubmissionId, OpenCommand>();
  #bytes = 0;

  /** @param due called when the time of one of a command's waiters is over */
  constructor(context: Pick<HomeContext, "runtime" | "budget">, due: (open: OpenCommand) => void) {
    this.#context = context;
    this.#due = due;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** Submissions that wait for their ending. */
  get waiterCount(): number {
    return this.#bySubmission.size;
  }

  find(id: CommandId): OpenCommand | undefined {
    return this.#byId.get(id);
  }

  /** The command that a submission waits for. */
  ofSubmission(submission: SubmissionId): OpenCommand | undefined {
    return this.#bySubmission.get(submission);
  }

  [Symbol.iterator](): Iterator<OpenCommand> {
    return this.#byId.values();
  }

  /** Takes a command on that nobody waits for yet; undefined when its data does not fit. */
  add({ id, app, data }: Pick<SubmittedCommand, "id" | "app" | "data">): OpenCommand | undefined {
    const reservedBytes = Buffer.byteLength(data);
    if (this.#bytes + reservedBytes > HOME_COMMAND_BYTES_MAX) return undefined;
    if (!this.#context.budget.tryReserve(reservedBytes)) return undefined;
    this.#bytes += reservedBytes;
    const progress = { kind: "queued" } as const;
    const open = { id, app, data, reservedBytes, progress, waiters: new Map(), timer: undefined };
    this.#byId.set(id, open);
    return open;
  }

  addWaiter(open: OpenCommand, waiter: CommandWaiter): void {
    open.waiters.set(waiter.submission, waiter);
    this.#bySubmission.set(waiter.submission, open);
    this.#setTimer(open);
  }

  removeWaiter(open: OpenCommand, submission: SubmissionId): void {
    this.#bySubmission.delete(submission);
    open.waiters.delete(submission);
    this.#setTimer(open);
    this.#boundUnwanted();
  }

  /** The command has come this far. */
  progress(open: OpenCommand, progress: CommandProgress): void {
    open.progress = progress;
    if (progress.kind === "written") this.#release(open);
    this.#setTimer(open);
    this.#boundUnwanted();
  }

  remove(open: OpenCommand): void {
    if (this.#byId.get(open.id) === open) this.#byId.delete(open.id);
    for (const submission of open.waiters.keys()) this.#bySubmission.delete(submission);
    this.#context.runtime.cancel(open.timer);
    this.#release(open);
  }

  /** Forgets commands that nobody has waited for since HOME_RESULT_KEPT_MS after they were delivered. */
  sweep(nowMs: number): void {
    for (const open of this.#byId.values()) {
      if (open.waiters.size > 0 || open.progress.kind === "queued") continue;
      if (nowMs - open.progress.atMs >= HOME_RESULT_KEPT_MS) this.remove(open);
    }
  }

  /** Ends every timer. */
  close(): void {
    for (const { timer } of this.#byId.values()) this.#context.runtime.cancel(timer);
  }

  #release(open: OpenCommand): void {
    this.#bytes -= open.reservedBytes;
    this.#context.budget.release(open.reservedBytes);
    open.reservedBytes = 0;
    open.data = "";
  }

  #boundUnwanted(): void {
    if (this.#byId.size <= HOME_COMMANDS_OPEN_MAX + HOME_RESULTS_KEPT_MAX) return;
    for (const open of this.#byId.values()) {
      if (open.waiters.size === 0) return this.remove(open);
    }
  }

  /** Fires when the first waiter's time is over. */
  #setTimer(open: OpenCommand): void {
    const { runtime } = this.#context;
    runtime.cancel(open.timer);
    open.timer = undefined;
    let dueMs = Number.POSITIVE_INFINITY;
    for (const waiter of open.waiters.values()) dueMs = Math.min(dueMs, dueAtMs(open, waiter));
    if (dueMs === Number.POSITIVE_INFINITY) return;
    open.timer = runtime.schedule(dueMs - runtime.monotonicMs(), () => this.#due(open));
  }
}
