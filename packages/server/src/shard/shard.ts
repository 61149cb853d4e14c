// One shard: the mailboxes of the tunnels that are placed on it.
//
// Spec: T12; design "Shape". A shard never forwards: what it does not own it answers with not-owner and what it knows.
// I1  A mailbox exists only while this shard owns its tunnel in the replica.
// I2  A message of a tunnel without a mailbox, other than a submit or a register, is about something already gone.

import type { InstanceId, TunnelId } from "@moor/protocol";
import type { Logger, Runtime, TimerHandle } from "@moor/runtime";
import type { Change, Placement, Replica, ShardId } from "../directory/directory.ts";
import type {
  CallId,
  CallRefusal,
  PollId,
  RegisteredPoll,
  ShardPort,
  SubmittedCall,
} from "../peer/peer-link.ts";
import { MAILBOX_SWEEP_INTERVAL_MS } from "../server-limits.ts";
import { Mailbox, type EntryLookup } from "./mailbox/mailbox.ts";
import { OWNER_GRACE_MS } from "@moor/protocol";

export interface ShardOptions {
  readonly id: ShardId;
  readonly replica: Replica;
  readonly entries: EntryLookup;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

/** What a shard holds right now, for metrics. */
export interface ShardGauges {
  readonly mailboxes: number;
  readonly callsQueued: number;
  readonly pollsWaiting: number;
}

export class Shard implements ShardPort {
  readonly shard: ShardId;
  readonly #options: ShardOptions;
  readonly #mailboxes = new Map<TunnelId, Mailbox>();
  readonly #ownsSinceMs: number;
  readonly #stopListening: () => void;
  #sweepTimer: TimerHandle | undefined;

  constructor(options: ShardOptions) {
    this.shard = options.id;
    this.#options = options;
    this.#ownsSinceMs = options.runtime.monotonicMs();
    this.#stopListening = options.replica.onChange((change) => this.#handleChange(change));
    this.#scheduleSweep();
  }

  submitCall(call: SubmittedCall): void {
    const mailbox = this.#mailboxOf(call.tunnel);
    if (mailbox !== undefined) mailbox.submitCall(call);
    else this.#options.entries(call.entry)?.refuseCall(call.callId, this.#notOwner(call.tunnel));
  }

  withdrawCall(tunnel: TunnelId, callId: CallId): void {
    this.#mailboxes.get(tunnel)?.withdrawCall(callId);
  }

  endCall(tunnel: TunnelId, callId: CallId): void {
    this.#mailboxes.get(tunnel)?.endCall(callId);
  }

  registerPoll(poll: RegisteredPoll): void {
    const mailbox = this.#mailboxOf(poll.tunnel);
    if (mailbox !== undefined) mailbox.registerPoll(poll);
    else this.#options.entries(poll.entry)?.endPoll(poll.pollId, this.#notOwner(poll.tunnel));
  }

  withdrawPoll(tunnel: TunnelId, pollId: PollId): void {
    this.#mailboxes.get(tunnel)?.withdrawPoll(pollId);
  }

  handOutEnded(tunnel: TunnelId, pollId: PollId, outcome: "written" | "not-written"): void {
    this.#mailboxes.get(tunnel)?.handOutEnded(pollId, outcome);
  }

  noteActivity(tunnel: TunnelId, instance: InstanceId): void {
    this.#mailboxes.get(tunnel)?.noteActivity(instance);
  }

  noteToldToWait(tunnel: TunnelId, instance: InstanceId, waitMs: number): void {
    this.#mailboxOf(tunnel)?.noteToldToWait(instance, waitMs);
  }

  gauges(): ShardGauges {
    let callsQueued = 0;
    let pollsWaiting = 0;
    for (const mailbox of this.#mailboxes.values()) {
      callsQueued += mailbox.queuedCount;
      pollsWaiting += mailbox.waitingPollCount;
    }
    return { mailboxes: this.#mailboxes.size, callsQueued, pollsWaiting };
  }

  /** Stops timers and listeners. Mailboxes are left as they are. */
  close(): void {
    this.#stopListening();
    this.#options.runtime.cancel(this.#sweepTimer);
  }

  #mailboxOf(tunnel: TunnelId): Mailbox | undefined {
    const existing = this.#mailboxes.get(tunnel);
    if (existing !== undefined) return existing;
    const record = this.#options.replica.tunnel(tunnel);
    if (record?.placement.shard !== this.shard) return undefined;
    const mailbox = new Mailbox({
      runtime: this.#options.runtime,
      entries: this.#options.entries,
      wasSeen: record.isSeen,
      graceUntilMs: this.#ownsSinceMs + OWNER_GRACE_MS,
    });
    this.#mailboxes.set(tunnel, mailbox);
    return mailbox;
  }

  #notOwner(tunnel: TunnelId): { readonly kind: "not-owner"; readonly placement: Placement | undefined } {
    return { kind: "not-owner", placement: this.#options.replica.tunnel(tunnel)?.placement };
  }

  /** A tunnel that was deleted or placed elsewhere gives its calls and polls back (I1). */
  #handleChange(change: Change): void {
    if (change.kind !== "tunnel" && change.kind !== "placement") return;
    const tunnel = change.id as TunnelId;
    const mailbox = this.#mailboxes.get(tunnel);
    if (mailbox === undefined) return;
    const record = this.#options.replica.tunnel(tunnel);
    if (record?.placement.shard === this.shard) return;
    this.#mailboxes.delete(tunnel);
    const refusal: CallRefusal =
      record === undefined ? { kind: "refused", code: "tunnel_not_found" } : this.#notOwner(tunnel);
    for (const poll of mailbox.dissolve(refusal)) {
      this.#options.entries(poll.entry)?.endPoll(poll.pollId, this.#notOwner(tunnel));
    }
    this.#options.logger.info("mailbox-dissolved", {
      tunnel,
      shard: this.shard,
      isDeleted: record === undefined,
    });
  }

  #scheduleSweep(): void {
    this.#sweepTimer = this.#options.runtime.schedule(MAILBOX_SWEEP_INTERVAL_MS, () => {
      for (const [tunnel, mailbox] of this.#mailboxes) {
        mailbox.sweep();
        if (mailbox.isIdle()) this.#mailboxes.delete(tunnel);
      }
      this.#scheduleSweep();
    });
  }
}
