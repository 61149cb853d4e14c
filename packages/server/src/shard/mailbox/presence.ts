// Whether a tunnel's agents are there, judged from what they were seen to do.
//
// Spec: T12 (connected), T8 (per instance).
// Connected = an open poll, or the last one ended under 20 s ago, or a response or notification came within 20 s,
// or a handed-out command is within its deadline, or an agent was told to wait t and t + 5 s is not over.
// I1  Time is a parameter: every answer is "until when", so that a caller can wait for exactly that moment.

import { CONNECTED_GRACE_MS, TOLD_TO_WAIT_SLACK_MS, type InstanceId } from "@moor/protocol";
import type { CallId } from "../../peer/peer-link.ts";

interface InstanceSigns {
  openPolls: number;
  /** End of the last poll, response or notification. */
  lastSignAtMs: number;
  /** End of the wait it was told, slack included. */
  toldUntilMs: number;
  /** Deadlines of the commands it holds. */
  readonly commands: Map<CallId, number>;
}

/** Presence of every instance of one tunnel's agents. All instants are the shard's monotonic milliseconds. */
export class Presence {
  readonly #instances = new Map<InstanceId, InstanceSigns>();
  /** A new owner takes every agent for alive until here. Spec T12. */
  readonly #graceUntilMs: number;

  constructor(graceUntilMs: number) {
    this.#graceUntilMs = graceUntilMs;
  }

  /** Instances remembered. */
  get size(): number {
    return this.#instances.size;
  }

  pollOpened(instance: InstanceId): void {
    this.#signs(instance).openPolls += 1;
  }

  pollClosed(instance: InstanceId, nowMs: number): void {
    const signs = this.#signs(instance);
    signs.openPolls -= 1;
    signs.lastSignAtMs = nowMs;
  }

  active(instance: InstanceId, nowMs: number): void {
    this.#signs(instance).lastSignAtMs = nowMs;
  }

  toldToWait(instance: InstanceId, nowMs: number, waitMs: number): void {
    const signs = this.#signs(instance);
    signs.toldUntilMs = Math.max(signs.toldUntilMs, nowMs + waitMs + TOLD_TO_WAIT_SLACK_MS);
  }

  commandStarted(instance: InstanceId, callId: CallId, deadlineAtMs: number): void {
    this.#signs(instance).commands.set(callId, deadlineAtMs);
  }

  commandEnded(instance: InstanceId, callId: CallId): void {
    this.#instances.get(instance)?.commands.delete(callId);
  }

  /** Until when `instance` counts as connected if nothing more is heard; Infinity while it has an open poll. */
  instanceConnectedUntil(instance: InstanceId, nowMs: number): number {
    const signs = this.#instances.get(instance);
    return Math.max(this.#graceUntilMs, signs === undefined ? 0 : connectedUntil(signs, nowMs));
  }

  /** As `instanceConnectedUntil`, over all instances. */
  connectedUntil(nowMs: number): number {
    let latestMs = this.#graceUntilMs;
    for (const signs of this.#instances.values()) {
      latestMs = Math.max(latestMs, connectedUntil(signs, nowMs));
      if (latestMs === Number.POSITIVE_INFINITY) break;
    }
    return latestMs;
  }

  /** Forgets commands past their deadline, and instances that are no longer connected. */
  dropLapsed(nowMs: number): void {
    for (const [instance, signs] of this.#instances) {
      dropExpired(signs, nowMs);
      if (connectedUntil(signs, nowMs) <= nowMs) this.#instances.delete(instance);
    }
  }

  #signs(instance: InstanceId): InstanceSigns {
    let signs = this.#instances.get(instance);
    if (signs === undefined) {
      signs = {
        openPolls: 0,
        lastSignAtMs: Number.NEGATIVE_INFINITY,
        toldUntilMs: Number.NEGATIVE_INFINITY,
        commands: new Map(),
      };
      this.#instances.set(instance, signs);
    }
    return signs;
  }
}

function connectedUntil(signs: InstanceSigns, nowMs: number): number {
  if (signs.openPolls > 0) return Number.POSITIVE_INFINITY;
  let latestMs = Math.max(signs.lastSignAtMs + CONNECTED_GRACE_MS, signs.toldUntilMs);
  dropExpired(signs, nowMs);
  for (const deadlineAtMs of signs.commands.values()) latestMs = Math.max(latestMs, deadlineAtMs);
  return latestMs;
}

function dropExpired({ commands }: InstanceSigns, nowMs: number): void {
  for (const [callId, deadlineAtMs] of commands) if (deadlineAtMs <= nowMs) commands.delete(callId);
}
