// The calls of one tunnel that wait for a poll, oldest first.
//
// Spec: T4 (each command to exactly one poll), T8 (pinned), T12 (bound).
// I1  A call is in the queue at most once. I2  `takeFor` gives only what that poll may carry, in order.
// I3  A call whose entry could not be reached from a poll's entry is not offered there again for a moment.

import type { EntryId, RegisteredPoll, SubmittedCall } from "../../peer/peer-link.ts";
import { HAND_OUT_BYTES_MAX, QUEUED_BYTES_MAX, QUEUED_CALLS_MAX } from "../../server-limits.ts";

/** A call in a mailbox, with instants on the shard's monotonic clock. */
export interface QueuedCall {
  readonly call: SubmittedCall;
  readonly deadlineAtMs: number;
  /** The entry whose polls do not get it until `untilMs`. */
  readonly avoid?: { readonly entry: EntryId; readonly untilMs: number };
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

  has(callId: string): boolean {
    return this.#waiting.has(callId) || this.#returned.some((queued) => queued.call.callId === callId);
  }

  push(queued: QueuedCall): void {
    this.#waiting.set(queued.call.callId, queued);
    this.#bytes += queued.call.payloadBytes;
  }

  /** Puts calls that were not written back at the head, in their old order. */
  putBack(calls: readonly QueuedCall[]): void {
    this.#returned = [...calls, ...this.#returned];
    for (const queued of calls) this.#bytes += queued.call.payloadBytes;
  }

  remove(callId: string): boolean {
    const waiting = this.#waiting.get(callId);
    if (waiting !== undefined) {
      this.#waiting.delete(callId);
      this.#bytes -= waiting.call.payloadBytes;
      return true;
    }
    const at = this.#returned.findIndex((queued) => queued.call.callId === callId);
    if (at < 0) return false;
    for (const removed of this.#returned.splice(at, 1)) this.#bytes -= removed.call.payloadBytes;
    return true;
  }

  /** Takes up to `poll.limit` calls, and one or up to HAND_OUT_BYTES_MAX, that `poll` may carry now. */
  takeFor(poll: RegisteredPoll, nowMs: number): QueuedCall[] {
    const taken: QueuedCall[] = [];
    let bytes = 0;
    for (const queued of this) {
      if (taken.length >= poll.limit) break;
      if (!mayCarry(poll, queued, nowMs)) continue;
      bytes += queued.call.payloadBytes;
      if (taken.length > 0 && bytes > HAND_OUT_BYTES_MAX) break;
      taken.push(queued);
    }
    for (const queued of taken) this.remove(queued.call.callId);
    return taken;
  }

  /** Takes every call, or those of one entry. */
  takeAll(entry?: EntryId): QueuedCall[] {
    const taken = Array.from(this).filter((queued) => entry === undefined || queued.call.entry === entry);
    for (const queued of taken) this.remove(queued.call.callId);
    return taken;
  }

  *[Symbol.iterator](): Iterator<QueuedCall> {
    yield* this.#returned;
    yield* this.#waiting.values();
  }
}

/** Whether a poll asks for the call's channel, is of the instance the call is pinned to, and is not to be avoided. */
export function mayCarry(poll: RegisteredPoll, { call, avoid }: QueuedCall, nowMs: number): boolean {
  return (
    (poll.channels.size === 0 || poll.channels.has(call.channel)) &&
    (call.pinnedTo === undefined || call.pinnedTo === poll.instance) &&
    (avoid === undefined || avoid.entry !== poll.entry || avoid.untilMs <= nowMs)
  );
}
