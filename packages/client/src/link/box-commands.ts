// The commands of a box: each acted on at most once, over links and restarts, and answered wherever it is asked for.
//
// Spec: L20, L31.
// I1  A handler runs only after its command's id is durable. I2  An id that is known is never acted on again: its result
//     is repeated, a run under way is joined, and one of unknown end is `unknown`.
// I3  Every command is answered, whatever its handler does; a run that outlives its link answers whoever asks again.

import {
  LINK_DATA_BYTES_MAX,
  type BoxCommandFrame,
  type CommandId,
  type CommandOutcome,
  type OutcomeFrame,
  type ResultFrame,
} from "@moor/protocol";
import type { Runtime, TimerHandle } from "@moor/runtime/portable";
import type { CommandLog } from "./command-log.ts";
import { jsonTextOf, RawJson, utf8ByteCount } from "./raw-json.ts";

/** A command as its handler gets it. */
export interface BoxCommand {
  readonly id: string;
  /** The app instance that sent it. */
  readonly app: string;
  /** Milliseconds left to live when it came. */
  readonly ttlMs: number;
  readonly data: RawJson;
  /** Fires when its time is over: nobody waits for the result any more but who asks again. */
  readonly signal: AbortSignal;
}

/** Acts on a command and gives its result: any JSON value, or a RawJson. A failure becomes `{"error":"command_failed"}`. */
export type CommandHandler = (command: BoxCommand) => unknown;

/** Answers on the link that a command came from; does nothing once that is gone. */
export type CommandReply = (frame: ResultFrame | OutcomeFrame) => void;

/** What commands work with. */
export interface BoxCommandsPorts {
  readonly runtime: Runtime;
  readonly log: CommandLog;
  readonly onCommand: CommandHandler;
}

/** Commands under way at once; more are `not_delivered`. */
export const BOX_COMMANDS_MAX = 1_000;

interface Run {
  readonly replies: CommandReply[];
  readonly ending: AbortController;
  /** Fires when its time is over. */
  readonly timer: TimerHandle;
}

/** The commands of one box. */
export class BoxCommands {
  readonly #ports: BoxCommandsPorts;
  readonly #runs = new Map<CommandId, Run>();
  #idle = Promise.withResolvers<void>();
  #isOpen = true;

  constructor(ports: BoxCommandsPorts) {
    this.#ports = ports;
    this.#idle.resolve();
  }

  /** Commands under way. */
  get inProgress(): number {
    return this.#runs.size;
  }

  /** Takes a command from a link. */
  take(frame: BoxCommandFrame, reply: CommandReply): void {
    const { id } = frame;
    const run = this.#runs.get(id);
    if (run !== undefined) {
      run.replies.push(reply);
    } else if (!this.#isOpen || this.#runs.size >= BOX_COMMANDS_MAX) {
      reply(outcomeFrame(id, "not_delivered"));
    } else {
      void this.#run(frame, reply);
    }
  }

  /** Begins nothing more: commands that come now are `not_delivered`. */
  refuse(): void {
    this.#isOpen = false;
  }

  /** Resolves when no command is under way. */
  untilIdle(): Promise<void> {
    return this.#idle.promise;
  }

  /** Tells every handler that its time is over; no timer is left of those that do not listen. */
  abortAll(): void {
    for (const { ending, timer } of this.#runs.values()) {
      this.#ports.runtime.cancel(timer);
      ending.abort();
    }
  }

  async #run(frame: BoxCommandFrame, reply: CommandReply): Promise<void> {
    const { runtime } = this.#ports;
    const ending = new AbortController();
    const timer = runtime.schedule(frame.ttl_ms, () => ending.abort());
    const run: Run = { replies: [reply], ending, timer };
    if (this.#runs.size === 0) this.#idle = Promise.withResolvers();
    this.#runs.set(frame.id, run);
    const answer = await this.#answer(frame, ending.signal);
    runtime.cancel(timer);
    this.#runs.delete(frame.id);
    for (const tell of run.replies) tell(answer);
    if (this.#runs.size === 0) this.#idle.resolve();
  }

  /** What is known of it, else what comes of it now. Never rejects. */
  async #answer(frame: BoxCommandFrame, signal: AbortSignal): Promise<ResultFrame | OutcomeFrame> {
    const { id } = frame;
    const { log } = this.#ports;
    const known = await log.look(id);
    switch (known.kind) {
      case "ended":
        return { t: "result", id, data: known.resultJson };
      case "begun":
        return outcomeFrame(id, "unknown");
      case "unreadable":
        return outcomeFrame(id, "not_delivered");
      case "new":
        if (signal.aborted || frame.ttl_ms === 0) return outcomeFrame(id, "expired");
        if ((await log.begin(id)) === "unwritable") return outcomeFrame(id, "not_delivered");
        // A disk that took its time: not acted on, and whoever asks again hears `unknown`.
        if (signal.aborted) return outcomeFrame(id, "expired");
        return this.#act(frame, signal);
    }
  }

  async #act(frame: BoxCommandFrame, signal: AbortSignal): Promise<ResultFrame> {
    const { log, onCommand } = this.#ports;
    const { id, app, ttl_ms: ttlMs, data } = frame;
    const resultJson = await resultOf(onCommand, { id, app, ttlMs, data: new RawJson(data), signal });
    // A result that cannot be kept is told all the same; who asks for it after a restart hears `unknown`.
    await log.end(id, resultJson);
    return { t: "result", id, data: resultJson };
  }
}

async function resultOf(onCommand: CommandHandler, command: BoxCommand): Promise<string> {
  try {
    const text = jsonTextOf(await onCommand(command));
    return utf8ByteCount(text) > LINK_DATA_BYTES_MAX ? errorJson("result_too_large") : text;
  } catch {
    return errorJson("command_failed");
  }
}

function errorJson(error: string): string {
  return JSON.stringify({ error });
}

function outcomeFrame(id: CommandId, outcome: CommandOutcome): OutcomeFrame {
  return { t: "outcome", id, outcome };
}
