// Polls for ever: one poll in flight, no more commands than there are free slots, backing off after every error.
//
// Spec: T17, R17, T25.
// I1  One poll is in flight at most, none while no slot is free. I2  Cancelling ends request and sleep at once (R17).
// I3  Only a successful poll resets the backoff.

import {
  backoffAfterFailure,
  backoffAfterSuccess,
  createPollBackoff,
  FIRST_POLL_WAIT_MS,
  POLL_DEADLINE_SLACK_MS,
  POLL_LIMIT_MAX,
  type PollBackoff,
} from "@moor/protocol";
import { sleep, type Runtime } from "@moor/runtime";
import type { PollClient, PollFailure, PollResult } from "./poll-client.ts";
import { PollWait } from "./poll-wait.ts";

/** Where commands go, and how many it can take. */
export interface CommandSink {
  readonly freeSlots: number;
  accept(result: Extract<PollResult, { kind: "success" }>): void;
  untilChange(signal: AbortSignal): Promise<void>;
}

/** What a poll loop works with. */
export interface PollLoopPorts {
  readonly runtime: Runtime;
  readonly client: Pick<PollClient, "poll">;
  readonly sink: CommandSink;
  /** Configured wait of a poll, milliseconds. */
  readonly pollWaitMs: number;
  onSuccess(): void;
  onFailure(failure: PollFailure, delayMs: number): void;
}

/** Polls until `signal` fires. Never rejects. */
export async function runPollLoop(ports: PollLoopPorts, signal: AbortSignal): Promise<void> {
  const loop = new PollLoop(ports, signal);
  while (!signal.aborted) {
    const limit = Math.min(POLL_LIMIT_MAX, ports.sink.freeSlots);
    if (limit === 0) await ports.sink.untilChange(signal);
    else await loop.pollOnce(limit);
  }
}

class PollLoop {
  readonly #ports: PollLoopPorts;
  readonly #signal: AbortSignal;
  readonly #wait: PollWait;
  #backoff: PollBackoff = createPollBackoff();
  /** Before the first success, and from a failure to the next one. */
  #isProbing = true;

  constructor(ports: PollLoopPorts, signal: AbortSignal) {
    this.#ports = ports;
    this.#signal = signal;
    this.#wait = new PollWait(ports.pollWaitMs);
  }

  /** One poll and, after a failure, the sleep before the next. */
  async pollOnce(limit: number): Promise<void> {
    const { runtime, client, pollWaitMs } = this.#ports;
    // A service that just failed is asked briefly: its answer tells soon whether it works again.
    const { currentMs } = this.#wait;
    const waitMs = this.#isProbing ? Math.min(FIRST_POLL_WAIT_MS, currentMs) : currentMs;
    const deadlineMs = pollWaitMs + POLL_DEADLINE_SLACK_MS;
    const startedAtMs = runtime.monotonicMs();
    const result = await client.poll({ limit, waitMs, deadlineMs }, this.#signal);
    const heldMs = runtime.monotonicMs() - startedAtMs;
    switch (result.kind) {
      case "cancelled":
        return;
      case "success":
        return this.#succeed(result, heldMs);
      case "failed":
        this.#wait.afterFailure(result.failure, heldMs, waitMs);
        return this.#fail(result);
    }
  }

  #succeed(result: Extract<PollResult, { kind: "success" }>, heldMs: number): void {
    this.#backoff = backoffAfterSuccess(this.#backoff);
    this.#isProbing = false;
    this.#wait.afterSuccess(heldMs);
    this.#ports.onSuccess();
    this.#ports.sink.accept(result);
  }

  async #fail({ failure, retryAfterMs }: Extract<PollResult, { kind: "failed" }>): Promise<void> {
    const { runtime } = this.#ports;
    this.#isProbing = true;
    const { state, delayMs } = backoffAfterFailure(this.#backoff, { random: runtime.random(), retryAfterMs });
    this.#backoff = state;
    this.#ports.onFailure(failure, delayMs);
    await sleep(runtime, delayMs, this.#signal);
  }
}
