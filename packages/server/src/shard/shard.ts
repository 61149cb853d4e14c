// One shard: the mailboxes of the tunnels that are placed on it.
//
// Spec: T12; design "Shape". A shard never forwards: what it does not own it answers with not-owner and what it knows.
// I1  A mailbox exists only while this shard is the owner by the newest placement known here.
// I2  A sender that goes by a newer placement than we know is believed: it names its revision (R22).
// I3  A message of a tunnel without a mailbox, other than a submit or a register, is about something already gone.

import { OWNER_GRACE_MS, type InstanceId, type TunnelId } from "@moor/protocol";
import type { Logger, Runtime, TimerHandle } from "@moor/runtime";
import type { ShardId } from "../directory/directory.ts";
import type { PlacementKnowledge } from "../entry/placement-knowledge.ts";
import type { Timeline } from "../moves/timeline.ts";
import type {
  CallId,
  CallRefusal,
  EntryId,
  KnownPlacement,
  NotOwner,
  OfferEnd,
  PollId,
  RegisteredPoll,
  ShardPort,
  SubmittedCall,
} from "../peer/peer-link.ts";
import { MAILBOX_SWEEP_INTERVAL_MS } from "../server-limits.ts";
import { Mailbox, type EntryLookup } from "./mailbox/mailbox.ts";
import { TenantArrivals } from "./tenant-arrivals.ts";

export interface ShardOptions {
  readonly id: ShardId;
  readonly placements: PlacementKnowledge;
  /** Whether the directory knows that an agent polled this tunnel once; `undefined` = no such tunnel here (yet). */
  readonly wasSeen: (tunnel: TunnelId) => boolean | undefined;
  /** Notes that an agent polled a tunnel for the first time. Spec T12. */
  readonly noteSeen: (tunnel: TunnelId) => void;
  readonly entries: EntryLookup;
  readonly timeline: Timeline;
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
  readonly #arrivals: TenantArrivals<TunnelId>;
  #sweepTimer: TimerHandle | undefined;

  constructor(options: ShardOptions) {
    this.shard = options.id;
    this.#options = options;
    this.#arrivals = new TenantArrivals(options.runtime, OWNER_GRACE_MS);
    this.#scheduleSweep();
  }

  submitCall(call: SubmittedCall): void {
    const mailbox = this.#mailboxFor(call.tunnel, call.placement);
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
    const mailbox = this.#mailboxFor(poll.tunnel, poll.placement);
    if (mailbox !== undefined && this.#options.wasSeen(poll.tunnel) === false)
      this.#options.noteSeen(poll.tunnel);
    if (mailbox !== undefined) mailbox.registerPoll(poll);
    else this.#options.entries(poll.entry)?.endPoll(poll.pollId, this.#notOwner(poll.tunnel));
  }

  withdrawPoll(tunnel: TunnelId, pollId: PollId): void {
    this.#mailboxes.get(tunnel)?.withdrawPoll(pollId);
  }

  offerEnded(tunnel: TunnelId, pollId: PollId, end: OfferEnd): void {
    this.#mailboxes.get(tunnel)?.offerEnded(pollId, end);
  }

  noteActivity(tunnel: TunnelId, instance: InstanceId): void {
    this.#mailboxes.get(tunnel)?.noteActivity(instance);
  }

  noteToldToWait(tunnel: TunnelId, instance: InstanceId, waitMs: number): void {
    const placement = this.#options.placements.best(tunnel);
    if (placement !== undefined) this.#mailboxFor(tunnel, placement)?.noteToldToWait(instance, waitMs);
  }

  /** A key was revoked: polls that came with it end, whichever entry holds them. */
  keyRevoked(tunnel: TunnelId, keyId: string): void {
    this.#mailboxes.get(tunnel)?.keyRevoked(keyId);
  }

  /** An entry cannot be reached any more. */
  dropEntry(entry: EntryId): void {
    for (const mailbox of this.#mailboxes.values()) mailbox.dropEntry(entry);
  }

  /** A tunnel's placement changed, or the tunnel is gone (`undefined`): lets it go or takes it on. */
  placementChanged(tunnel: TunnelId, placement: KnownPlacement | undefined): void {
    if (placement?.shard === this.shard) return this.#arrived(tunnel, placement);
    this.#arrivals.forget(tunnel);
    const mailbox = this.#mailboxes.get(tunnel);
    if (mailbox === undefined) return;
    this.#mailboxes.delete(tunnel);
    const refusal: CallRefusal =
      placement === undefined
        ? { kind: "refused", code: "tunnel_not_found" }
        : { kind: "not-owner", placement };
    const polls = mailbox.dissolve(refusal);
    for (const poll of polls) {
      this.#options.entries(poll.entry)?.endPoll(poll.pollId, { kind: "not-owner", placement });
    }
    this.#options.timeline.note(
      tunnel,
      "owner-lost",
      `${this.shard}: ${polls.length} waiting polls given back`,
    );
    this.#options.logger.info("owner-lost", { tunnel, shard: this.shard, to: placement?.shard });
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

  /** Stops timers. Mailboxes are left as they are. */
  close(): void {
    this.#options.runtime.cancel(this.#sweepTimer);
  }

  #arrived(tunnel: TunnelId, placement: KnownPlacement): void {
    if (this.#mailboxes.has(tunnel) || !this.#arrivals.note(tunnel)) return;
    this.#options.timeline.note(tunnel, "owner-gained", `${this.shard} at revision ${placement.revision}`);
    // A tunnel that no agent knows yet was created, not moved.
    const level = this.#options.wasSeen(tunnel) === false ? "debug" : "info";
    this.#options.logger[level]("owner-gained", { tunnel, shard: this.shard, revision: placement.revision });
  }

  /** The mailbox of a tunnel this shard owns by the newest of what is known here and to the sender (I2). */
  #mailboxFor(tunnel: TunnelId, senders: KnownPlacement): Mailbox | undefined {
    const { placements } = this.#options;
    const placement = placements.best(tunnel, senders);
    if (placement?.shard !== this.shard) return undefined;
    const existing = this.#mailboxes.get(tunnel);
    if (existing !== undefined) return existing;
    if (placements.learn(tunnel, senders) || this.#arrivals.isJustPlaced(placement)) {
      this.#arrived(tunnel, placement);
    }
    const mailbox = new Mailbox({
      runtime: this.#options.runtime,
      entries: this.#options.entries,
      port: this,
      // A tunnel that only its sender knows of is taken for one whose agents may be on their way.
      wasSeen: this.#options.wasSeen(tunnel) ?? true,
      graceUntilMs: this.#arrivals.sinceMs(tunnel) + OWNER_GRACE_MS,
    });
    this.#mailboxes.set(tunnel, mailbox);
    return mailbox;
  }

  #notOwner(tunnel: TunnelId): NotOwner {
    return { kind: "not-owner", placement: this.#options.placements.best(tunnel) };
  }

  #scheduleSweep(): void {
    this.#sweepTimer = this.#options.runtime.schedule(MAILBOX_SWEEP_INTERVAL_MS, () => {
      for (const [tunnel, mailbox] of this.#mailboxes) {
        mailbox.sweep();
        if (mailbox.isIdle()) this.#mailboxes.delete(tunnel);
      }
      this.#arrivals.sweep();
      this.#scheduleSweep();
    });
  }
}
