// Runs commands in a fixed number of slots, each within its own deadline.
//
// Spec: T17 (free slots bound the next poll), T18, T23, T25; R20 (dropped before the tool runs), R21.
// I1  At most `concurrency` commands run at once; what a service hands out beyond that waits in order, its time running.
// I2  A command that is in progress here is not begun a second time. I3  A command's work ends at its deadline, or when the
//     agent stops; never because polling failed.

import { COMMAND_DEADLINE_MS_MAX } from "@moor/protocol";
import type { Logger, Runtime } from "@moor/runtime";
import { parseCommand, type Command } from "./command-parser.ts";
import { rawIdOf, runCommand } from "./command-runner.ts";
import type { ControlPlane } from "./control-plane.ts";
import type { PollResult } from "./poll-client.ts";
import { Responder } from "./responder.ts";
import type { McpTarget } from "./targets/mcp-target.ts";

/** What a dispatcher works with. */
export interface DispatcherPorts {
  readonly runtime: Runtime;
  readonly logger: Logger;
  readonly controlPlane: ControlPlane;
  /** Targets by channel name. */
  readonly targets: ReadonlyMap<string, McpTarget>;
  /** Slots, 1–1_000. */
  readonly concurrency: number;
}

interface Waiting {
  readonly command: Command;
  /** Monotonic, milliseconds. */
  readonly deadlineAtMs: number;
}

/** Commands in progress on one agent. */
export class Dispatcher {
  readonly #ports: DispatcherPorts;
  readonly #running = new Map<string, AbortController>();
  readonly #waiting = new Map<string, Waiting>();
  #onChange: (() => void)[] = [];

  constructor(ports: DispatcherPorts) {
    this.#ports = ports;
  }

  /** Commands that could start now. */
  get freeSlots(): number {
    return Math.max(0, this.#ports.concurrency - this.#running.size - this.#waiting.size);
  }

  /** Commands taken and not yet ended. */
  get inProgress(): number {
    return this.#running.size + this.#waiting.size;
  }

  /** Takes the commands of a poll's answer. Bad ones are logged and dropped, each by itself (T23). */
  accept({ body, commands, headAtMs }: Extract<PollResult, { kind: "success" }>): void {
    for (const slice of commands) {
      const result = parseCommand(body, slice);
      if (result.ok) this.#take(result.command, headAtMs);
      else this.#log(result.requestId).warn("command-dropped", { reason: result.refusal });
    }
    this.#fillSlots();
  }

  /** Resolves at the next end of a command, or when `signal` fires. */
  untilChange(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        signal.removeEventListener("abort", done);
        resolve();
      };
      this.#onChange.push(done);
      signal.addEventListener("abort", done, { once: true });
    });
  }

  /** Resolves when nothing is in progress, or when `signal` fires. */
  async untilIdle(signal: AbortSignal): Promise<void> {
    while (this.inProgress > 0 && !signal.aborted) await this.untilChange(signal);
  }

  /** Ends all work at once; nothing more is posted. */
  abortAll(): void {
    this.#waiting.clear();
    for (const controller of this.#running.values()) controller.abort();
  }

  #take(command: Command, headAtMs: number): void {
    // A token belongs to one hand-out: with it, a reused request id is another command.
    const key = `${command.requestId}\n${command.token}`;
    if (this.#running.has(key) || this.#waiting.has(key)) {
      this.#log(command.requestId).warn("command-dropped", { reason: "already-in-progress" });
      return;
    }
    const deadlineAtMs = headAtMs + (command.responseTimeoutMs ?? COMMAND_DEADLINE_MS_MAX);
    this.#waiting.set(key, { command, deadlineAtMs });
  }

  #fillSlots(): void {
    for (const [key, waiting] of this.#waiting) {
      if (this.#running.size >= this.#ports.concurrency) return;
      this.#waiting.delete(key);
      void this.#run(key, waiting);
    }
  }

  async #run(key: string, { command, deadlineAtMs }: Waiting): Promise<void> {
    const { runtime, controlPlane, targets } = this.#ports;
    const logger = this.#log(command.requestId);
    const startedAtMs = runtime.monotonicMs();
    const leftMs = deadlineAtMs - startedAtMs;
    if (leftMs <= 0) {
      logger.debug("command-expired");
      return;
    }
    const controller = new AbortController();
    const timer = runtime.schedule(leftMs, () => controller.abort());
    this.#running.set(key, controller);
    const { requestId, channel, token } = command;
    const context = { requestId, channel, token, rawId: rawIdOf(command), signal: controller.signal };
    const responder = new Responder(controlPlane, runtime, logger, context);
    const { signal } = controller;
    const target = targets.get(channel);
    const outcome = await runCommand(command, { target, responder, logger, signal });
    runtime.cancel(timer);
    this.#running.delete(key);
    logger.debug("command-ended", { outcome, durationMs: runtime.monotonicMs() - startedAtMs });
    this.#fillSlots();
    const resolvers = this.#onChange;
    this.#onChange = [];
    for (const resolve of resolvers) resolve();
  }

  #log(requestId: string | undefined): Logger {
    return this.#ports.logger.child({ requestId });
  }
}
