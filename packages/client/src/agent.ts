// The agent: polls a service for commands, serves them through MCP servers, posts what they say.
//
// Spec: R9 (a new agent starts tokenless), T16–T20, T22–T25.
// I1  After `stop` has resolved nothing of it is left: no timer, socket, listener or command. I2  It takes every setting at
//     its creation; endpoint and tunnel never change (R9).

import { STOP_GRACE_MS_DEFAULT } from "@moor/protocol";
import type { Logger, Runtime, TimerHandle } from "@moor/runtime";
import { parseAgentOptions, type AgentOptions } from "./agent-options.ts";
import { createInstanceId } from "./control-headers.ts";
import { createControlPlane } from "./control-plane.ts";
import { Dispatcher } from "./dispatcher.ts";
import { PollClient, type PollFailure } from "./poll-client.ts";
import { runPollLoop } from "./poll-loop.ts";
import type { RawDump } from "./raw-dump.ts";
import { judgeReadiness, type Readiness, type ReadinessFacts } from "./readiness.ts";
import { TargetProber } from "./target-prober.ts";
import { createHttpTarget } from "./targets/http-target.ts";

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
  const { runtime, logger, dump } = ports;
  const settings = parseAgentOptions(options);
  const controlPlane = createControlPlane(settings, createInstanceId(runtime), runtime, dump);
  const targets = new Map(
    settings.channels.map(({ name, mcpUrl }) => {
      const staticHeaders = settings.mcpHeaders;
      return [name, createHttpTarget({ url: mcpUrl, staticHeaders, runtime, logger, dump })] as const;
    }),
  );
  const { concurrency, pollWaitMs } = settings;
  const dispatcher = new Dispatcher({ runtime, logger, controlPlane, targets, concurrency });
  const prober = new TargetProber(runtime, [...targets.values()]);
  const stopping = new AbortController();
  let phase: AgentStatus["phase"] = "new";
  let newestPoll: ReadinessFacts["newestPoll"] = "none";
  let newestPollAtMs = 0;
  let isConnected = false;
  let loop: Promise<void> = Promise.resolve();

  const onPoll = (how: "succeeded" | "failed") => {
    newestPoll = how;
    newestPollAtMs = runtime.monotonicMs();
  };
  const onSuccess = () => {
    if (newestPoll !== "succeeded") logger.info("polling", { tunnel: settings.tunnel });
    onPoll("succeeded");
    if (!isConnected) ports.onConnected?.();
    isConnected = true;
  };
  const onFailure = (failure: PollFailure, delayMs: number) => {
    onPoll("failed");
    const { kind, status, fault } = failure;
    logger.warn("poll-failed", { kind, status, fault, delayMs: Math.round(delayMs) });
    ports.onPollFailed?.(failure, delayMs);
  };

  return {
    start: () => {
      if (phase !== "new") return;
      phase = "running";
      const client = new PollClient(controlPlane, runtime);
      loop = runPollLoop(
        { runtime, client, sink: dispatcher, pollWaitMs, onSuccess, onFailure },
        stopping.signal,
      );
    },
    startProbing: () => void prober.run(stopping.signal),
    stop: async (graceMs = STOP_GRACE_MS_DEFAULT) => {
      phase = "stopping";
      stopping.abort();
      await loop;
      await withinGrace(runtime, graceMs, (signal) => dispatcher.untilIdle(signal));
      dispatcher.abortAll();
      await Promise.all([controlPlane.close(), ...[...targets.values()].map((target) => target.close())]);
      phase = "stopped";
    },
    status: () => {
      const newestPollAgeMs = newestPoll === "none" ? 0 : runtime.monotonicMs() - newestPollAtMs;
      const facts: ReadinessFacts = { newestPoll, newestPollAgeMs, pollWaitMs, targets: prober.results() };
      return { phase, inProgress: dispatcher.inProgress, readiness: judgeReadiness(facts) };
    },
  };
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
