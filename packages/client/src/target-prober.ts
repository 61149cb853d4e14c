// Keeps asking the MCP servers whether they are there, for as long as somebody asks for readiness.
//
// Spec: T24.
// I1  A server that answered a call since the last round is not probed; every answer counts. I2  One probe per server at most
//     is in flight.

import { sleep, type Runtime } from "@moor/runtime";
import type { TargetProbe } from "./readiness.ts";
import type { McpTarget } from "./targets/mcp-target.ts";

/** Time between two probes of a server, milliseconds. */
export const PROBE_INTERVAL_MS = 10_000;

/** Newest probe results, in the order of the targets. */
export class TargetProber {
  readonly #runtime: Runtime;
  readonly #targets: readonly McpTarget[];
  readonly #failedAtMs = new Map<McpTarget, number>();

  constructor(runtime: Runtime, targets: readonly McpTarget[]) {
    this.#runtime = runtime;
    this.#targets = targets;
  }

  /** Probes all targets again and again until `signal` fires. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await Promise.all(this.#targets.map((target) => this.#probe(target, signal)));
      await sleep(this.#runtime, PROBE_INTERVAL_MS, signal);
    }
  }

  /** What came of each target's newest probe or answer. */
  results(): readonly TargetProbe[] {
    return this.#targets.map((target) => {
      const answeredAtMs = target.lastAnswerAtMs();
      const failedAtMs = this.#failedAtMs.get(target);
      if (failedAtMs !== undefined && (answeredAtMs === undefined || answeredAtMs < failedAtMs))
        return "failed";
      return answeredAtMs === undefined ? "unknown" : "answered";
    });
  }

  async #probe(target: McpTarget, signal: AbortSignal): Promise<void> {
    const answeredAtMs = target.lastAnswerAtMs();
    const isFresh =
      answeredAtMs !== undefined && this.#runtime.monotonicMs() - answeredAtMs < PROBE_INTERVAL_MS;
    if (isFresh) return;
    const hasAnswered = await target.probe(signal);
    if (!hasAnswered && !signal.aborted) this.#failedAtMs.set(target, this.#runtime.monotonicMs());
  }
}
