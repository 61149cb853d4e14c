// The calls of one tunnel that wait for a poll, oldest first.
//
// Spec: T4 (each command to exactly one poll), T8 (pinned), T12 (bound).
// I1  A call is in the queue at most once. I2  `takeFor` gives only what that poll may carry, in order.

import type { RegisteredPoll, SubmittedCall } from "../../peer/peer-link.ts";
import { HAND_OUT_BYTES_MAX, QUEUED_BYTES_MAX, QUEUED_CALLS_MAX } from "../../server-limits.ts";

/** A call in a mailbox, with its deadline on the shard's monotonic clock. */
export interface QueuedCall {
  readonly call: SubmittedCall;
  readonly deadlineAtMs: number;
}

export class CallQueue {
  /** Insertion order is queue order; `#returned` stands before it. */
  readonly #waiting = new Map<string, QueuedCall>();
  #returned: QueuedCall[] = [];
  #bytes = 0;

  get size(): number {
    return this.#waiting.size + this.#returned.length;
  }

  /** Whether one more call of `byteCount` payload bytes fits the bounds of T12. */
  hasRoomFor(byteCount: number): boolean {
    return this.size < QUEUED_CALLS_MAX && this.#bytes + byteCount <= QUEUED_BYTES_MAX;
  }

  push(queued: QueuedCall): void {
    this.#waiting.set(queued.call.callId, queued);
    this.#bytes += payloadBytes(queued);
  }

  /** Puts calls whose hand-out was not written back at the head, in their old order. */
  putBack(calls: readonly QueuedCall[]): void {
    this.#returned = [...calls, ...this.#returned];
    for (const queued of calls) this.#bytes += payloadBytes(queued);
  }

  remove(callId: string): boolean {
    const waiting = this.#waiting.get(callId);
    if (waiting !== undefined) {
      this.#waiting.delete(callId);
      this.#bytes -= payloadBytes(waiting);
      return true;
    }
    const at = this.#returned.findIndex((queued) => queued.call.callId === callId);
    if (at < 0) return false;
    this.#bytes -= this.#returned.splice(at, 1).reduce((sum, queued) => sum + payloadBytes(queued), 0);
    return true;
  }

  /** Takes up to `poll.limit` calls, and one or up to HAND_OUT_BYTES_MAX, that `poll` may carry. */
  takeFor(poll: RegisteredPoll): QueuedCall[] {
    const taken: QueuedCall[] = [];
    let bytes = 0;
    for (const queued of this) {
      if (taken.length >= poll.limit) break;
      if (!mayCarry(poll, queued.call)) continue;
      bytes += payloadBytes(queued);
      if (taken.length > 0 && bytes > HAND_OUT_BYTES_MAX) break;
      taken.push(queued);
    }
    for (const queued of taken) this.remove(queued.call.callId);
    return taken;
  }

  /** Takes every call. */
  takeAll(): QueuedCall[] {
    const all = [...this];
    this.#waiting.clear();
    this.#returned = [];
    this.#bytes = 0;
    return all;
  }

  *[Symbol.iterator](): Iterator<QueuedCall> {
    yield* this.#returned;
    yield* this.#waiting.values();
  }
}

/** Whether a poll asks for the call's channel and is of the instance the call is pinned to, if any. */
export function mayCarry(poll: RegisteredPoll, call: SubmittedCall): boolean {
  return (
    (poll.channels.size === 0 || poll.channels.has(call.channel)) &&
    (call.pinnedTo === undefined || call.pinnedTo === poll.instance)
  );
}

/** Bytes of a call's payload as they count against the queue's bound. */
export function payloadBytes(queued: QueuedCall): number {
  return queued.call.command.payload?.byteLength ?? 0;
}
