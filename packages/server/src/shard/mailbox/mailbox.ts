// One tunnel's mailbox: matches waiting calls with waiting polls, and knows whether its agents are there.
//
// Spec: T4, T8, T12, T13.   No I/O: entries are ports, time comes from the Runtime.
// I1  A call is in exactly one place: queued, offered to one poll, handed out, or gone.
// I2  A poll gets at most one offer per registration; while it is offered to, it is not waiting.
// I3  "returned" and "blocked" calls go to the head of the queue; "written" is final: they are never queued again.
// I4  A queued call never outlives the connection of the agents that could take it (T12).
// I5  Everything here is soft: an entry that lost touch submits and registers again, and its claims keep calls single.

import type { InstanceId } from "@moor/protocol";
import type { Runtime, TimerHandle } from "@moor/runtime";
import { offerEnd } from "../../peer/offer-end.ts";
import type {
  CallId,
  CallRefusal,
  EntryId,
  EntryPort,
  OfferEnd,
  PollId,
  RegisteredPoll,
  ShardPort,
  SubmittedCall,
} from "../../peer/peer-link.ts";
import { OFFER_RETRY_MS, WAITING_POLLS_MAX } from "../../server-limits.ts";
import { CallQueue, mayCarry, type QueuedCall } from "./call-queue.ts";
import { Presence } from "./presence.ts";

/** Looks up the way back to the entry of a call or a poll; `undefined` while that entry cannot be reached. */
export type EntryLookup = (entry: EntryId) => EntryPort | undefined;

export interface MailboxOptions {
  readonly runtime: Runtime;
  readonly entries: EntryLookup;
  /** The shard this mailbox is part of, as entries answer it. */
  readonly port: ShardPort;
  /** Whether an agent polled this tunnel before this mailbox existed. */
  readonly wasSeen: boolean;
  /** Until when agents count as connected without a sign, on the monotonic clock. Spec T12, last sentence. */
  readonly graceUntilMs: number;
}

/** An offer under way. */
interface OpenOffer {
  readonly poll: RegisteredPoll;
  readonly calls: readonly QueuedCall[];
}

/** A call that an agent has. */
interface HandedOut {
  readonly instance: InstanceId;
  readonly deadlineAtMs: number;
}

export class Mailbox {
  readonly #options: MailboxOptions;
  readonly #presence: Presence;
  readonly #queue = new CallQueue();
  readonly #waiting = new Map<PollId, RegisteredPoll>();
  readonly #offers = new Map<PollId, OpenOffer>();
  /** Who holds each handed-out call, until it is answered or its deadline passes: its entry may never say. */
  readonly #handedOut = new Map<CallId, HandedOut>();
  #isSeen: boolean;
  #lapseTimer: TimerHandle | undefined;
  #retryTimer: TimerHandle | undefined;

  constructor(options: MailboxOptions) {
    this.#options = options;
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
    const nowMs = this.#nowMs();
    return this.#queue.size === 0 && this.#offers.size === 0 && this.#presence.connectedUntil(nowMs) <= nowMs;
  }

  /** Forgets what no longer matters: an agent whose next process has another instance id leaves traces of the last. */
  sweep(): void {
    const nowMs = this.#nowMs();
    this.#presence.dropLapsed(nowMs);
    for (const [callId, { deadlineAtMs }] of this.#handedOut) {
      if (deadlineAtMs <= nowMs) this.#handedOut.delete(callId);
    }
  }

  submitCall(call: SubmittedCall): void {
    if (this.#holds(call.callId)) return; // Its entry found us again.
    const nowMs = this.#nowMs();
    const refusal = this.#refusalOf(call, nowMs);
    if (refusal !== undefined) {
      this.#entry(call.entry)?.refuseCall(call.callId, refusal);
      return;
    }
    const queued = { call, deadlineAtMs: nowMs + call.remainingMs };
    this.#queue.push(queued);
    for (const poll of this.#waiting.values()) {
      if (mayCarry(poll, queued, nowMs)) return this.#offerTo(poll);
    }
    this.#watchLapse();
  }

  /** The caller left or its deadline passed. An offer under way learns it from the claim. */
  withdrawCall(callId: CallId): void {
    // A handed-out call stays a sign of life of its agent until its own deadline (T12): Presence forgets it by then.
    if (!this.#queue.remove(callId)) this.#handedOut.delete(callId);
  }

  /** A handed-out call got its final answer. */
  endCall(callId: CallId): void {
    const held = this.#handedOut.get(callId);
    if (held === undefined) return;
    this.#handedOut.delete(callId);
    this.#presence.commandEnded(held.instance, callId);
  }

  registerPoll(poll: RegisteredPoll): void {
    if (this.#waiting.has(poll.pollId) || this.#offers.has(poll.pollId)) return;
    if (this.#waiting.size >= WAITING_POLLS_MAX) {
      this.#entry(poll.entry)?.endPoll(poll.pollId, { kind: "too-many" });
      return;
    }
    this.#isSeen = true;
    this.#presence.pollOpened(poll.instance);
    this.#waiting.set(poll.pollId, poll);
    this.#offerTo(poll);
  }

  withdrawPoll(pollId: PollId): void {
    const poll = this.#waiting.get(pollId);
    if (poll === undefined) return;
    this.#waiting.delete(pollId);
    this.#closePoll(poll);
  }

  /** Second phase of an offer. A poll that its entry still holds is registered anew. */
  offerEnded(pollId: PollId, end: OfferEnd): void {
    const offer = this.#offers.get(pollId);
    if (offer === undefined) return; // Its entry was taken for lost meanwhile.
    this.#offers.delete(pollId);
    const { poll } = offer;
    for (const { call, deadlineAtMs } of offer.calls) {
      if (!end.written.includes(call.callId)) continue;
      this.#presence.commandStarted(poll.instance, call.callId, deadlineAtMs);
      this.#handedOut.set(call.callId, { instance: poll.instance, deadlineAtMs });
    }
    this.#takeBack(offer, end);
    this.#closePoll(poll);
  }

  noteActivity(instance: InstanceId): void {
    this.#presence.active(instance, this.#nowMs());
  }

  noteToldToWait(instance: InstanceId, waitMs: number): void {
    this.#isSeen = true;
    this.#presence.toldToWait(instance, this.#nowMs(), waitMs);
  }

  /** Ends the waiting polls that came with a revoked key (T2). */
  keyRevoked(keyId: string): void {
    for (const poll of this.#waiting.values()) {
      if (poll.keyId !== keyId) continue;
      this.withdrawPoll(poll.pollId);
      this.#entry(poll.entry)?.endPoll(poll.pollId, { kind: "revoked" });
    }
  }

  /** Forgets what an entry that cannot be reached had here (I5). Calls offered to its polls wait for it no longer. */
  dropEntry(entry: EntryId): void {
    this.#queue.takeAll(entry);
    for (const poll of this.#waiting.values()) if (poll.entry === entry) this.withdrawPoll(poll.pollId);
    for (const [pollId, { poll, calls }] of this.#offers) {
      // Whether they were written is for the claims to say: offered again, a written one is refused by its entry.
      if (poll.entry === entry) {
        this.offerEnded(pollId, offerEnd({ returned: calls.map(({ call }) => call.callId) }));
      }
    }
  }

  /** Lets go of everything not handed out: calls are refused with `refusal`, waiting polls are returned. */
  dissolve(refusal: CallRefusal): readonly RegisteredPoll[] {
    this.#options.runtime.cancel(this.#lapseTimer);
    this.#options.runtime.cancel(this.#retryTimer);
    const offered = [...this.#offers.values()].flatMap((offer) => offer.calls);
    this.#offers.clear();
    for (const { call } of [...offered, ...this.#queue.takeAll()]) {
      this.#entry(call.entry)?.refuseCall(call.callId, refusal);
    }
    const polls = [...this.#waiting.values()];
    this.#waiting.clear();
    return polls;
  }

  #nowMs(): number {
    return this.#options.runtime.monotonicMs();
  }

  #entry(entry: EntryId): EntryPort | undefined {
    return this.#options.entries(entry);
  }

  #holds(callId: CallId): boolean {
    if (this.#queue.has(callId) || this.#handedOut.has(callId)) return true;
    for (const offer of this.#offers.values()) {
      if (offer.calls.some(({ call }) => call.callId === callId)) return true;
    }
    return false;
  }

  #refusalOf(call: SubmittedCall, nowMs: number): CallRefusal | undefined {
    if (!this.#isSeen) return { kind: "refused", code: "tunnel_client_not_seen" };
    if (this.#presence.connectedUntil(nowMs) <= nowMs) {
      return { kind: "refused", code: "tunnel_client_not_connected" };
    }
    if (call.pinnedTo !== undefined && this.#presence.instanceConnectedUntil(call.pinnedTo, nowMs) <= nowMs) {
      return { kind: "refused", code: "session_not_found" };
    }
    return this.#queue.hasRoomFor(call.payloadBytes)
      ? undefined
      : { kind: "refused", code: "tunnel_queue_full" };
  }

  /** Offers a waiting poll what it may carry, if there is anything. */
  #offerTo(poll: RegisteredPoll): void {
    const calls = this.#queue.takeFor(poll, this.#nowMs());
    if (calls.length === 0) return;
    this.#waiting.delete(poll.pollId);
    this.#offers.set(poll.pollId, { poll, calls });
    const { pollId, tunnel } = poll;
    const offered = calls.map(({ call }) => ({ callId: call.callId, entry: call.entry }));
    const entry = this.#entry(poll.entry);
    if (entry !== undefined) return entry.offerCalls({ pollId, tunnel, calls: offered }, this.#options.port);
    this.offerEnded(pollId, offerEnd({ blocked: offered.map(({ callId }) => callId) }));
  }

  /** Calls not written wait at the head; an entry that could not claim them is avoided for a moment. */
  #takeBack({ poll, calls }: OpenOffer, end: OfferEnd): void {
    const untilMs = this.#nowMs() + OFFER_RETRY_MS;
    const avoid = { entry: poll.entry, untilMs };
    const back = calls.flatMap((queued) => {
      if (end.returned.includes(queued.call.callId)) return [queued];
      return end.blocked.includes(queued.call.callId) ? [{ ...queued, avoid }] : [];
    });
    if (back.length === 0) return;
    this.#queue.putBack(back);
    this.#rematch();
    if (end.blocked.length === 0) return;
    this.#options.runtime.cancel(this.#retryTimer);
    this.#retryTimer = this.#options.runtime.schedule(OFFER_RETRY_MS, () => this.#rematch());
  }

  #rematch(): void {
    for (const poll of this.#waiting.values()) this.#offerTo(poll);
  }

  #closePoll(poll: RegisteredPoll): void {
    this.#presence.pollClosed(poll.instance, this.#nowMs());
    this.#watchLapse();
  }

  /** While calls wait, looks again at the moment the first of them could lose its agents (I4). */
  #watchLapse(): void {
    this.#options.runtime.cancel(this.#lapseTimer);
    this.#lapseTimer = undefined;
    if (this.#queue.size === 0) return;
    const nowMs = this.#nowMs();
    let nextMs = this.#presence.connectedUntil(nowMs);
    for (const { call } of this.#queue) {
      if (call.pinnedTo === undefined) continue;
      nextMs = Math.min(nextMs, this.#presence.instanceConnectedUntil(call.pinnedTo, nowMs));
    }
    if (nextMs === Number.POSITIVE_INFINITY) return;
    this.#lapseTimer = this.#options.runtime.schedule(nextMs - nowMs, () => this.#failLapsed());
  }

  #failLapsed(): void {
    const nowMs = this.#nowMs();
    const isConnected = this.#presence.connectedUntil(nowMs) > nowMs;
    for (const { call } of Array.from(this.#queue)) {
      const isPinnedLost =
        call.pinnedTo !== undefined && this.#presence.instanceConnectedUntil(call.pinnedTo, nowMs) <= nowMs;
      if (isConnected && !isPinnedLost) continue;
      this.#queue.remove(call.callId);
      const code = isConnected ? "session_not_found" : "tunnel_client_not_connected";
      this.#entry(call.entry)?.refuseCall(call.callId, { kind: "refused", code });
    }
    this.#presence.dropLapsed(nowMs);
    this.#watchLapse();
  }
}
