// The entry of another node, as this node's shards and entry talk to it.
//
// Spec: docs/protocol/peer-link.md. A grant that comes too late is settled "not-written" by the router.
// I1  A claim is answered once, whatever comes back: its poll waits for that.

import { offerEnd } from "./offer-end.ts";
import type {
  CallId,
  CallRefusal,
  Claimant,
  ClaimOutcome,
  EntryId,
  EntryPort,
  Offer,
  PollEnding,
  PollId,
  ShardPort,
} from "./peer-link.ts";
import { encodePlacement, read, type RawHead } from "./peer-messages.ts";
import type { PeerMessage } from "./transport/peer-network.ts";

export interface RemoteEntryOptions {
  readonly entry: EntryId;
  readonly send: (head: RawHead) => boolean;
  readonly sendSurely: (head: RawHead) => void;
  /** Asks the node; `undefined` when there is no answer in time. */
  readonly ask: (head: RawHead, onReply: (reply: PeerMessage | undefined) => void) => void;
}

export class RemoteEntry implements EntryPort {
  readonly entry: EntryId;
  readonly #options: RemoteEntryOptions;

  constructor(options: RemoteEntryOptions) {
    this.entry = options.entry;
    this.#options = options;
  }

  refuseCall(callId: CallId, refusal: CallRefusal): void {
    const why =
      refusal.kind === "refused"
        ? { code: refusal.code }
        : refusal.placement === undefined
          ? {}
          : { placement: encodePlacement(refusal.placement) };
    this.#options.sendSurely({ t: "refuse-call", call: callId, why: refusal.kind, ...why });
  }

  offerCalls({ pollId, tunnel, calls }: Offer, shard: ShardPort): void {
    const offered = calls.map(({ callId, entry }) => [callId, entry]);
    const head = { t: "offer", shard: shard.shard, tunnel, poll: pollId, calls: offered };
    if (this.#options.send(head)) return;
    const blocked = calls.map(({ callId }) => callId);
    shard.offerEnded(tunnel, pollId, offerEnd({ blocked }));
  }

  endPoll(pollId: PollId, ending: PollEnding): void {
    const where =
      ending.kind === "not-owner" && ending.placement !== undefined
        ? { placement: encodePlacement(ending.placement) }
        : {};
    this.#options.sendSurely({ t: "end-poll", poll: pollId, why: ending.kind, ...where });
  }

  claimCall(callId: CallId, claimant: Claimant, answer: (outcome: ClaimOutcome) => void): void {
    this.#options.ask({ t: "claim", call: callId, ...claimantHead(claimant) }, (reply) => {
      let outcome: ClaimOutcome = { kind: "busy" };
      try {
        if (reply !== undefined) outcome = readClaimReply(reply);
      } catch (error) {
        // It may have been a grant, which was not used: the call must be claimable again. The router says what is wrong.
        this.settleClaim(callId, claimant, "not-written");
        throw error;
      } finally {
        answer(outcome);
      }
    });
  }

  settleClaim(callId: CallId, claimant: Claimant, outcome: "written" | "not-written"): void {
    this.#options.sendSurely({ t: "settle", call: callId, ...claimantHead(claimant), outcome });
  }
}

/** A claimant as messages carry it. */
export function claimantHead({ pollId, entry, instance }: Claimant): RawHead {
  return { poll: pollId, entry, instance };
}

/** The claimant a message names. */
export function readClaimant(head: RawHead): Claimant {
  return { pollId: read.poll(head), entry: read.entry(head), instance: read.instance(head) };
}

/** The reply to a claim. */
export function claimReply(head: RawHead, outcome: ClaimOutcome): PeerMessage {
  const { call, n, poll, entry, instance } = head;
  const reply = { t: "claim-reply", n, call, poll, entry, instance, outcome: outcome.kind };
  if (outcome.kind !== "granted") return { head: reply };
  const { members, payload } = outcome.command;
  return {
    head: { ...reply, remainingMs: outcome.remainingMs, members, hasPayload: payload !== undefined },
    ...(payload === undefined ? {} : { payload }),
  };
}

/** What a reply to a claim says. */
export function readClaimReply({ head, payload }: PeerMessage): ClaimOutcome {
  const outcome = read.text(head, "outcome");
  if (outcome !== "granted") return { kind: outcome === "gone" ? "gone" : "busy" };
  const command = {
    members: read.text(head, "members"),
    payload: read.flag(head, "hasPayload") ? (payload ?? new Uint8Array()) : undefined,
  };
  return { kind: "granted", command, remainingMs: read.number(head, "remainingMs") };
}
