// Commands of apps and one-shots that have no ending yet: from submission to result or outcome.
//
// Spec: L20, L31, L33; link-ports.ts I2, I5, I6.
// I1  A command has one ending. `expired` and `not_delivered` are said only of what certainly was not acted on.
// I2  What a shard gave back was never delivered: it goes to the owner within its TTL. What was sent and is not given back
//     is only asked after again, never sent as new.
// I3  A command whose owner is out of reach is held within its TTL.
// I4  Data is held until the command is written or ends, and no longer: what is asked after again does not carry it.

import type { AppInstance, CommandId, HomeId } from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import type { ShardId } from "../../directory/directory.ts";
import type { CommandEnding, HomeShardPort, SubmissionId } from "../../peer/link-ports.ts";
import { COMMAND_LATE_ANSWER_MS, OWNER_HOPS_MAX } from "../../server-limits.ts";
import type { EntryId } from "../../peer/peer-link.ts";
import type { DueItem, DueWheel } from "./due-wheel.ts";
import type { HomePlacements } from "./link-context.ts";
import { ONCE_WAIT_MS_MAX } from "./link-limits.ts";

/** How a command ended for whoever waits for it. */
export type CommandEnd = Exclude<CommandEnding, { readonly kind: "not-owner" }>;

/** Who waits for a command. */
export interface CommandWaiter {
  /** It stands in the box's socket. */
  written(): void;
  ended(end: CommandEnd): void;
}

/** A command as its app gives it. */
export interface NewCommand {
  readonly home: HomeId;
  readonly id: CommandId;
  readonly app: AppInstance | undefined;
  readonly ttlMs: number;
  readonly data: string;
  readonly waiter: CommandWaiter;
}

export interface CommandTableOptions {
  readonly entry: EntryId;
  readonly runtime: Runtime;
  readonly wheel: DueWheel<DueItem>;
  readonly placements: Pick<HomePlacements, "best" | "learn">;
  readonly shardPort: (shard: ShardId) => HomeShardPort | undefined;
}

/** Stands for data that nobody needs any more. Raw JSON. */
const NO_DATA = "null";

/** A command without an ending. */
export class OpenCommand implements DueItem {
  wheelTick = 0;
  readonly submission: SubmissionId;
  readonly command: Omit<NewCommand, "ttlMs" | "data">;
  /** Raw JSON. The wheel keeps a command for a minute after its end. */
  data: string;
  readonly expiresAtMs: number;
  /** When it ends as unknown, if it was sent and nothing more is heard. */
  readonly unknownAtMs: number;
  readonly #table: CommandTable;
  /** Where it was sent; undefined while it is held. */
  port: HomeShardPort | undefined;
  isWritten = false;
  hops = 0;

  constructor(table: CommandTable, submission: SubmissionId, command: NewCommand, nowMs: number) {
    this.#table = table;
    const { data, home, id, app, ttlMs, waiter } = command;
    this.submission = submission;
    this.command = { home, id, app, waiter };
    this.data = data;
    this.expiresAtMs = nowMs + ttlMs;
    const lateAtMs = this.expiresAtMs + COMMAND_LATE_ANSWER_MS;
    this.unknownAtMs = app === undefined ? Math.min(lateAtMs, nowMs + ONCE_WAIT_MS_MAX) : lateAtMs;
  }

  wake(nowMs: number): number | undefined {
    return this.#table.lookAt(this, nowMs);
  }
}

export class CommandTable {
  readonly #options: CommandTableOptions;
  readonly #open = new Map<SubmissionId, OpenCommand>();
  readonly #onNoOneShot = new Set<() => void>();
  #count = 0;
  #oneShotCount = 0;

  constructor(options: CommandTableOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Takes a command on. Its waiter may hear of its ending before this returns. */
  submit(command: NewCommand): SubmissionId {
    this.#count += 1;
    const submission = `${this.#options.entry}-${this.#count.toString(36)}` as SubmissionId;
    const nowMs = this.#options.runtime.monotonicMs();
    const open = new OpenCommand(this, submission, command, nowMs);
    this.#open.set(submission, open);
    if (command.app === undefined) this.#oneShotCount += 1;
    if (command.ttlMs <= 0) this.#end(open, { kind: "expired" });
    else {
      this.#options.wheel.add(open, open.expiresAtMs);
      this.#send(open, false);
    }
    return submission;
  }

  /** Nobody waits any more. */
  withdraw(submission: SubmissionId): void {
    const open = this.#open.get(submission);
    if (open === undefined) return;
    this.#remove(open);
    open.port?.withdrawCommand(open.command.home, submission);
  }

  /** Waits until no one-shot is open, at most `graceMs`, then ends those that are left. Spec L24. */
  async finishOneShots(graceMs: number): Promise<void> {
    const { runtime } = this.#options;
    if (this.#oneShotCount === 0) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        runtime.cancel(timer);
        this.#onNoOneShot.delete(done);
        resolve();
      };
      const timer = runtime.schedule(graceMs, done);
      this.#onNoOneShot.add(done);
    });
    for (const open of this.#open.values()) {
      if (open.command.app !== undefined) continue;
      this.#end(open, open.port === undefined ? { kind: "not-delivered", why: "busy" } : { kind: "unknown" });
    }
  }

  written(submission: SubmissionId): void {
    const open = this.#open.get(submission);
    if (open === undefined || open.isWritten) return;
    open.isWritten = true;
    open.data = NO_DATA;
    open.command.waiter.written();
  }

  ended(submission: SubmissionId, ending: CommandEnding): void {
    const open = this.#open.get(submission);
    if (open === undefined) return;
    if (ending.kind !== "not-owner") return this.#end(open, ending);
    const { placements } = this.#options;
    const { home } = open.command;
    if (ending.placement !== undefined) placements.learn(home, ending.placement);
    if (open.isWritten) return this.#end(open, { kind: "unknown" });
    const asked = open.port?.shard;
    open.port = undefined;
    open.hops += 1;
    if (open.hops > OWNER_HOPS_MAX) return this.#end(open, { kind: "not-delivered", why: "busy" });
    // Nothing newer is known than what led there: the news is on its way, and brings the command along.
    if (placements.best(home)?.shard !== asked) this.#send(open, false);
  }

  /** Shards came within reach or went out of it, or run in another process than before. */
  shardsChanged(shards: ReadonlySet<ShardId>): void {
    for (const open of this.#open.values()) {
      const shard = open.port?.shard ?? this.#options.placements.best(open.command.home)?.shard;
      if (shard === undefined || shards.has(shard)) this.#send(open, open.port !== undefined);
    }
  }

  /**
   * A home was placed elsewhere: what is held goes there. What was sent is given back by the old owner, or was delivered;
   * by one that is out of reach it is taken for delivered.
   */
  placementChanged(home: HomeId): void {
    for (const open of this.#open.values()) {
      if (open.command.home !== home) continue;
      if (open.port === undefined) this.#send(open, false);
      else if (this.#options.shardPort(open.port.shard) === undefined) this.#end(open, { kind: "unknown" });
    }
  }

  /** Called by the wheel. */
  lookAt(open: OpenCommand, nowMs: number): number | undefined {
    if (!this.#open.has(open.submission)) return undefined;
    if (nowMs < open.expiresAtMs) return open.expiresAtMs;
    if (open.port === undefined && !open.isWritten) {
      this.#end(open, { kind: "expired" });
      return undefined;
    }
    if (nowMs < open.unknownAtMs) return open.unknownAtMs;
    open.port?.withdrawCommand(open.command.home, open.submission);
    this.#end(open, { kind: "unknown" });
    return undefined;
  }

  #send(open: OpenCommand, isAgain: boolean): void {
    const { placements, shardPort, entry, runtime } = this.#options;
    const { data } = open;
    const { home, id, app } = open.command;
    const placement = placements.best(home);
    // What was sent is asked after where it was sent, wherever the home is now.
    const shard = isAgain ? open.port?.shard : placement?.shard;
    const port = shard === undefined ? undefined : shardPort(shard);
    if (port === undefined || placement === undefined) return;
    open.port = port;
    const remainingMs = Math.max(0, open.expiresAtMs - runtime.monotonicMs());
    port.submitCommand({
      submission: open.submission,
      entry,
      home,
      id,
      app,
      remainingMs,
      data,
      placement,
      isAgain,
    });
  }

  #end(open: OpenCommand, end: CommandEnd): void {
    if (this.#remove(open)) open.command.waiter.ended(end);
  }

  /** Forgets a command; false if it had ended before. */
  #remove(open: OpenCommand): boolean {
    if (!this.#open.delete(open.submission)) return false;
    open.data = NO_DATA;
    if (open.command.app !== undefined) return true;
    this.#oneShotCount -= 1;
    if (this.#oneShotCount === 0) for (const run of this.#onNoOneShot) run();
    return true;
  }
}
