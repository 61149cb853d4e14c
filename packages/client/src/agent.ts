// The agent: polls a service for commands, serves them through MCP servers, posts what they say.
//
// Spec: R9 (a new agent starts tokenless), T16–T20, T22–T25.
// I1  After `stop` has resolved nothing of it is left: no timer, socket, listener or command. I2  It takes every setting at
//     its creation; endpoint and tunnel never change (R9).

import { STOP_GRACE_MS_DEFAULT } from "@moor/protocol";
import type { Logger, Runtime, TimerHandle } from "@moor/runtime";
import { parseAgentOptions, type AgentOptions, type AgentSettings } from "./agent-options.ts";
import { createInstanceId } from "./control-headers.ts";
import { createControlPlane, type ControlPlane } from "./control-plane.ts";
import { Dispatcher } from "./dispatcher.ts";
import { PollClient, type PollFailure } from "./poll-client.ts";
import { runPollLoop, type PollLoopPorts } from "./poll-loop.ts";
import type { RawDump } from "./raw-dump.ts";
import { judgeReadiness, type Readiness, type ReadinessFacts } from "./readiness.ts";
import { TargetProber } from "./target-prober.ts";
import { createHttpTarget } from "./targets/http-target.ts";
import type { McpTarget } from "./targets/mcp-target.ts";

/** What the agent runs on, and who hears of it. */
export interface AgentPorts {
  readonly runtime: Runtime;
  readonly logger: Logger;
  /** Where raw exchanges go; absent for nowhere. */
  readonly dump?: RawDump;
  /** The first successful poll. */
  onConnected?(): void;
  /** Every failed poll, and the wait before the next. */
  onPollFailed?(failure: PollFailure, delayMs: number): void;
}

/** What the agent is doing. */
export interface AgentStatus {
  readonly phase: "new" | "running" | "stopping" | "stopped";
  /** Commands taken and not yet ended. */
  readonly inProgress: number;
  readonly readiness: Readiness;
}

/** A running, or not yet running, agent. */
export interface Agent {
  /** Begins polling. Once only. */
  start(): void;
  /** Probes targets so that `status().readiness` means something; off by default because it costs requests. */
  startProbing(): void;
  /**
   * Stops polling at once, lets running commands finish, then ends what is left.
   *
   * @param graceMs time for running commands, milliseconds, default 10_000
   */
  stop(graceMs?: number): Promise<void>;
  status(): AgentStatus;
}

/**
 * An agent after these options.
 *
 * @throws ConfigError for options that cannot be used
 */
export function createAgent(options: AgentOptions, ports: AgentPorts): Agent {
  return new PollingAgent(parseAgentOptions(options), ports);
}

class PollingAgent implements Agent {
  readonly #settings: AgentSettings;
  readonly #ports: AgentPorts;
  readonly #controlPlane: ControlPlane;
  readonly #targets: ReadonlyMap<string, McpTarget>;
  readonly #dispatcher: Dispatcher;
  readonly #prober: TargetProber;
  readonly #stopping = new AbortController();
  #phase: AgentStatus["phase"] = "new";
  #newestPoll: ReadinessFacts["newestPoll"] = "none";
  #newestPollAtMs = 0;
  #isConnected = false;
  #loop: Promise<void> = Promise.resolve();

  constructor(settings: AgentSettings, ports: AgentPorts) {
    const { runtime, logger, dump } = ports;
    const { concurrency } = settings;
    const controlPlane = createControlPlane(settings, createInstanceId(runtime), runtime, dump);
    const targets = createTargets(settings, ports);
    this.#settings = settings;
    this.#ports = ports;
    this.#controlPlane = controlPlane;
    this.#targets = targets;
    this.#dispatcher = new Dispatcher({ runtime, logger, controlPlane, targets, concurrency });
    this.#prober = new TargetProber(runtime, [...targets.values()]);
  }

  start(): void {
    if (this.#phase !== "new") return;
    this.#phase = "running";
    const { runtime } = this.#ports;
    const loopPorts: PollLoopPorts = {
      runtime,
      client: new PollClient(this.#controlPlane, runtime),
      sink: this.#dispatcher,
      pollWaitMs: this.#settings.pollWaitMs,
      onSuccess: () => this.#onPollSucceeded(),
      onFailure: (failure, delayMs) => this.#onPollFailed(failure, delayMs),
    };
    this.#loop = runPollLoop(loopPorts, this.#stopping.signal);
  }

  startProbing(): void {
    void this.#prober.run(this.#stopping.signal);
  }

  async stop(graceMs = STOP_GRACE_MS_DEFAULT): Promise<void> {
    this.#phase = "stopping";
    this.#stopping.abort();
    await this.#loop;
    await withinGrace(this.#ports.runtime, graceMs, (signal) => this.#dispatcher.untilIdle(signal));
    this.#dispatcher.abortAll();
    await Promise.all([this.#controlPlane, ...this.#targets.values()].map((part) => part.close()));
    this.#phase = "stopped";
  }

  status(): AgentStatus {
    const ageMs = this.#ports.runtime.monotonicMs() - this.#newestPollAtMs;
    const readiness = judgeReadiness({
      newestPoll: this.#newestPoll,
      newestPollAgeMs: this.#newestPoll === "none" ? 0 : ageMs,
      pollWaitMs: this.#settings.pollWaitMs,
      targets: this.#prober.results(),
    });
    return { phase: this.#phase, inProgress: this.#dispatcher.inProgress, readiness };
  }

  #onPollSucceeded(): void {
    if (this.#newestPoll !== "succeeded")
      this.#ports.logger.info("polling", { tunnel: this.#settings.tunnel });
    this.#recordPoll("succeeded");
    if (this.#isConnected) return;
    this.#isConnected = true;
    this.#ports.onConnected?.();
  }

  #onPollFailed(failure: PollFailure, delayMs: number): void {
    this.#recordPoll("failed");
    const { kind, status, fault } = failure;
    this.#ports.logger.warn("poll-failed", { kind, status, fault, delayMs: Math.round(delayMs) });
    this.#ports.onPollFailed?.(failure, delayMs);
  }

  #recordPoll(ending: "succeeded" | "failed"): void {
    this.#newestPoll = ending;
    this.#newestPollAtMs = this.#ports.runtime.monotonicMs();
  }
}

function createTargets(settings: AgentSettings, ports: AgentPorts): ReadonlyMap<string, McpTarget> {
  const { runtime, logger, dump } = ports;
  const staticHeaders = settings.mcpHeaders;
  return new Map(
    settings.channels.map(({ name, mcpUrl }) => [
      name,
      createHttpTarget({ url: mcpUrl, staticHeaders, runtime, logger, dump }),
    ]),
  );
}

/** Runs `wait` with a signal that fires after `graceMs` milliseconds. */
async function withinGrace(
  runtime: Runtime,
  graceMs: number,
  wait: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const grace = new AbortController();
  const timer: TimerHandle = runtime.schedule(graceMs, () => grace.abort());
  await wait(grace.signal);
  runtime.cancel(timer);
}
