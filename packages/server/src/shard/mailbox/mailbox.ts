// One tunnel's mailbox: matches waiting calls with waiting polls, and knows whether its agents are there.
//
// Spec: T4, T8, T12, T13.   No I/O: entries are ports, time comes from the Runtime.
// I1  A call is in exactly one place: queued, being handed out to one poll, handed out, or gone.
// I2  A poll gets at most one hand-out; while it is being written to, it is no longer waiting.
// I3  "not-written" returns calls to the head of the queue; "written" is final: they are never queued again.
// I4  A queued call never outlives the connection of the agents that could take it (T12).

import type { InstanceId } from "@moor/protocol";
import { invariant, type Runtime, type TimerHandle } from "@moor/runtime";
import type {
  CallId,
  CallRefusal,
  EntryId,
  EntryPort,
  PollId,
  RegisteredPoll,
  SubmittedCall,
} from "../../peer/peer-link.ts";
import { WAITING_POLLS_MAX } from "../../server-limits.ts";
import { CallQueue, mayCarry, type QueuedCall } from "./call-queue.ts";
import { Presence } from "./presence.ts";

/** Looks up the way back to the entry of a call or a poll; `undefined` once that entry is gone. */
export type EntryLookup = (entry: EntryId) => EntryPort | undefined;

export interface MailboxOptions {
  readonly runtime: Runtime;
  readonly entries: EntryLookup;
  /** Whether an agent polled this tunnel before this mailbox existed. */
  readonly wasSeen: boolean;
  /** Until when agents count as connected without a sign, on the monotonic clock. Spec T12, last sentence. */
  readonly graceUntilMs: number;
}

interface HandOut {
  readonly poll: RegisteredPoll;
  readonly calls: readonly QueuedCall[];
}

export class Mailbox {
  readonly #runtime: Runtime;
  readonly #entries: EntryLookup;
  readonly #presence: Presence;
  readonly #queue = new CallQueue();
  readonly #waiting = new Map<PollId, RegisteredPoll>();
  readonly #handingOut = new Map<PollId, HandOut>();
  /** Instance that holds each handed-out call, until it is answered or its deadline passes. */
  readonly #handedOut = new Map<CallId, InstanceId>();
  /** Calls withdrawn while a hand-out of theirs was being written. */
  readonly #withdrawn = new Set<CallId>();
  #isSeen: boolean;
  #lapseTimer: TimerHandle | undefined;

  constructor(options: MailboxOptions) {
    this.#runtime = options.runtime;
    this.#entries = options.entries;
    this.#isSeen = options.wasSeen;
    this.#presence = new Presence(options.wasSeen ? options.graceUntilMs : Number.NEGATIVE_INFINITY);
  }

  get queuedCount(): number {
    return this.#queue.size;
  }

  get waitingPollCount(): number {
    return this.#waiting.size;
  }

  /** Whether nothing would be lost by forgetting this mailbox. */
  isIdle(): boolean {
    const nowMs = this.#runtime.monotonicMs();
    return (
      this.#queue.size === 0 && this.#handingOut.size === 0 && this.#presence.connectedUntil(nowMs) <= nowMs
    );
  }

  /** Forgets what no longer matters: an agent whose next process has another instance id leaves traces of the last. */
  sweep(): void {
    this.#presence.dropLapsed(this.#runtime.monotonicMs());
  }

  submitCall(call: SubmittedCall): void {
    const nowMs = this.#runtime.monotonicMs();
    const refusal = this.#refusalOf(call, nowMs);
    if (refusal !== undefined) {
      this.#entries(call.entry)?.refuseCall(call.callId, refusal);
      return;
    }
    this.#queue.push({ call, deadlineAtMs: nowMs + call.remainingMs });
    for (const poll of this.#waiting.values()) {
      if (!mayCarry(poll, call)) continue;
      this.#handOutTo(poll);
      return;
    }
    this.#watchLapse();
  }

  /** The caller left or its deadline passed. */
  withdrawCall(callId: CallId): void {
    if (this.#queue.remove(callId)) return;
    for (const handOut of this.#handingOut.values()) {
      if (handOut.calls.some((queued) => queued.call.callId === callId)) this.#withdrawn.add(callId);
    }
    // A handed-out call stays a sign of life of its agent until its own deadline (T12): Presence forgets it by then.
    this.#handedOut.delete(callId);
  }

  /** A handed-out call got its final answer. */
  endCall(callId: CallId): void {
    const instance = this.#handedOut.get(callId);
    if (instance === undefined) return;
    this.#handedOut.delete(callId);
    this.#presence.commandEnded(instance, callId);
  }

  registerPoll(poll: RegisteredPoll): void {
    if (this.#waiting.size >= WAITING_POLLS_MAX) {
      this.#entries(poll.entry)?.endPoll(poll.pollId, { kind: "too-many" });
      return;
    }
    this.#isSeen = true;
    this.#presence.pollOpened(poll.instance);
    this.#waiting.set(poll.pollId, poll);
    this.#handOutTo(poll);
  }

  withdrawPoll(pollId: PollId): void {
    const poll = this.#waiting.get(pollId);
    if (poll === undefined) return;
    this.#waiting.delete(pollId);
    this.#closePoll(poll);
  }

  handOutEnded(pollId: PollId, outcome: "written" | "not-written"): void {
    const handOut = this.#handingOut.get(pollId);
    invariant(handOut !== undefined, "I2 a hand-out ends once");
    this.#handingOut.delete(pollId);
    if (outcome === "written") this.#settleWritten(handOut);
    else this.#settleNotWritten(handOut);
    this.#closePoll(handOut.poll);
  }

  noteActivity(instance: InstanceId): void {
    this.#presence.active(instance, this.#runtime.monotonicMs());
  }

  noteToldToWait(instance: InstanceId, waitMs: number): void {
    this.#isSeen = true;
    this.#presence.toldToWait(instance, this.#runtime.monotonicMs(), waitMs);
  }

  /** Lets go of everything not handed out: calls are refused with `refusal`, waiting polls are returned. */
  dissolve(refusal: CallRefusal): readonly RegisteredPoll[] {
    this.#runtime.cancel(this.#lapseTimer);
    for (const { call } of this.#queue.takeAll()) this.#entries(call.entry)?.refuseCall(call.callId, refusal);
    const polls = [...this.#waiting.values()];
    for (const poll of polls) this.withdrawPoll(poll.pollId);
    return polls;
  }

  #refusalOf(call: SubmittedCall, nowMs: number): CallRefusal | undefined {
    if (!this.#isSeen) return { kind: "refused", code: "tunnel_client_not_seen" };
    if (this.#presence.connectedUntil(nowMs) <= nowMs) {
      return { kind: "refused", code: "tunnel_client_not_connected" };
    }
    if (call.pinnedTo !== undefined && this.#presence.instanceConnectedUntil(call.pinnedTo, nowMs) <= nowMs) {
      return { kind: "refused", code: "session_not_found" };
    }
    return this.#queue.hasRoomFor(call.command.payload?.byteLength ?? 0)
      ? undefined
      : { kind: "refused", code: "tunnel_queue_full" };
  }

  /** Gives a waiting poll what it may carry, if there is anything. */
  #handOutTo(poll: RegisteredPoll): void {
    const calls = this.#queue.takeFor(poll);
    if (calls.length === 0) return;
    this.#waiting.delete(poll.pollId);
    this.#handingOut.set(poll.pollId, { poll, calls });
    const nowMs = this.#runtime.monotonicMs();
    const commands = calls.map(({ call, deadlineAtMs }) => ({
      callId: call.callId,
      command: call.command,
      remainingMs: Math.max(0, deadlineAtMs - nowMs),
    }));
    const entry = this.#entries(poll.entry);
    if (entry === undefined) this.handOutEnded(poll.pollId, "not-written");
    else entry.handOut(poll.pollId, commands);
  }

  #settleWritten({ poll, calls }: HandOut): void {
    for (const { call, deadlineAtMs } of calls) {
      this.#presence.commandStarted(poll.instance, call.callId, deadlineAtMs);
      if (this.#withdrawn.delete(call.callId)) continue;
      this.#handedOut.set(call.callId, poll.instance);
      this.#entries(call.entry)?.callHandedOut(call.callId, poll.instance);
    }
  }

  #settleNotWritten({ calls }: HandOut): void {
    this.#queue.putBack(calls.filter(({ call }) => !this.#withdrawn.delete(call.callId)));
    for (const poll of this.#waiting.values()) this.#handOutTo(poll);
  }

  #closePoll(poll: RegisteredPoll): void {
    this.#presence.pollClosed(poll.instance, this.#runtime.monotonicMs());
    this.#watchLapse();
  }

  /** While calls wait, looks again at the moment the first of them could lose its agents (I4). */
  #watchLapse(): void {
    this.#runtime.cancel(this.#lapseTimer);
    this.#lapseTimer = undefined;
    if (this.#queue.size === 0) return;
    const nowMs = this.#runtime.monotonicMs();
    let nextMs = this.#presence.connectedUntil(nowMs);
    for (const { call } of this.#queue) {
      if (call.pinnedTo === undefined) continue;
      nextMs = Math.min(nextMs, this.#presence.instanceConnectedUntil(call.pinnedTo, nowMs));
    }
    if (nextMs === Number.POSITIVE_INFINITY) return;
    this.#lapseTimer = this.#runtime.schedule(nextMs - nowMs, () => this.#failLapsed());
  }

  #failLapsed(): void {
    const nowMs = this.#runtime.monotonicMs();
    const isConnected = this.#presence.connectedUntil(nowMs) > nowMs;
    for (const { call } of Array.from(this.#queue)) {
      const isPinnedLost =
        call.pinnedTo !== undefined && this.#presence.instanceConnectedUntil(call.pinnedTo, nowMs) <= nowMs;
      if (isConnected && !isPinnedLost) continue;
      this.#queue.remove(call.callId);
      const code = isConnected ? "session_not_found" : "tunnel_client_not_connected";
      this.#entries(call.entry)?.refuseCall(call.callId, { kind: "refused", code });
    }
    this.#presence.dropLapsed(nowMs);
    this.#watchLapse();
  }
}
