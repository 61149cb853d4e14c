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
  const { runtime, client, sink, pollWaitMs } = ports;
  const wait = new PollWait(pollWaitMs);
  let backoff: PollBackoff = createPollBackoff();
  let isProbing = true;
  while (!signal.aborted) {
    const limit = Math.min(POLL_LIMIT_MAX, sink.freeSlots);
    if (limit === 0) {
      await sink.untilChange(signal);
      continue;
    }
    // A service that just failed is asked briefly: its answer tells soon whether it works again.
    const waitMs = isProbing ? Math.min(FIRST_POLL_WAIT_MS, wait.currentMs) : wait.currentMs;
    const startedAtMs = runtime.monotonicMs();
    const result = await client.poll(
      { limit, waitMs, deadlineMs: pollWaitMs + POLL_DEADLINE_SLACK_MS },
      signal,
    );
    const heldMs = runtime.monotonicMs() - startedAtMs;
    switch (result.kind) {
      case "cancelled":
        break;
      case "success":
        backoff = backoffAfterSuccess(backoff);
        isProbing = false;
        wait.afterSuccess(heldMs);
        ports.onSuccess();
        sink.accept(result);
        break;
      case "failed": {
        isProbing = true;
        wait.afterFailure(result.failure, heldMs, waitMs);
        const { retryAfterMs } = result;
        const step = backoffAfterFailure(backoff, { random: runtime.random(), retryAfterMs });
        backoff = step.state;
        ports.onFailure(result.failure, step.delayMs);
        await sleep(runtime, step.delayMs, signal);
        break;
      }
    }
  }
}
