// Every poll this entry holds: from registration to its one answer.
//
// Spec: T4, T2 (revocation reaches waiting polls), T12, R4.
// I1  A poll is answered once: 200 with commands, 204, a correction, or an error.
// I2  Commands are claimed from their calls' entries, then written, then settled: a poll known to be gone settles
//     "not-written" and loses nothing.
// I3  While claims are under way nothing else answers the poll: a correction consumes no command (R4).
// I4  A poll whose owner cannot be reached is parked within its time, not failed.
// I5  A leaving node holds no poll, but hands out what is queued: those calls can end nowhere else.

import { encodeCorrectionBody, HEADER, ProtocolError, type TunnelId } from "@moor/protocol";
import { JSON_TYPE, NO_STORE } from "../http/http-exchange.ts";
import { replyError } from "../http/reply-error.ts";
import type { ShardId } from "../directory/directory.ts";
import type { PollOutcome } from "../operator/metrics.ts";
import { offerEnd } from "../peer/offer-end.ts";
import type {
  Claimant,
  KnownPlacement,
  Offer,
  OfferEnd,
  PollEnding,
  PollId,
  ShardPort,
} from "../peer/peer-link.ts";
import { OWNER_HOPS_MAX, RETRY_AFTER_S } from "../server-limits.ts";
import { sealPollingToken } from "../tokens/polling-token.ts";
import { claimOffer, type Claims } from "./claim-offer.ts";
import { encodeCommands } from "./command-encoding.ts";
import { createCorrectionPolicy, type CorrectionPolicy } from "./correction-policy.ts";
import type { EntryContext } from "./entry-context.ts";
import type { ArrivedPoll, HeldPoll } from "./held-poll.ts";
import { TunnelIndex } from "./tunnel-index.ts";

/** The polls of one entry. */
export class PollTable {
  readonly #context: EntryContext;
  readonly #policy: CorrectionPolicy;
  readonly #polls = new Map<PollId, HeldPoll>();
  readonly #byTunnel = new TunnelIndex<HeldPoll>();

  constructor(context: EntryContext) {
    this.#context = context;
    this.#policy = createCorrectionPolicy(context.runtime, context.isCorrecting);
  }

  get size(): number {
    return this.#polls.size;
  }

  /** Takes a poll on and registers it with the tunnel's owner. `known`: the placement its look-up gave, if any. */
  hold(poll: ArrivedPoll, known: KnownPlacement | undefined): void {
    const held: HeldPoll = {
      poll,
      state: { kind: "parked" },
      registeredBy: 0,
      hops: 0,
      holdTimer: undefined,
    };
    this.#polls.set(poll.pollId, held);
    this.#byTunnel.add(poll.tunnel, held);
    this.#context.metrics.pollsWaiting.set(this.#polls.size);
    poll.exchange.onGone(() => this.#left(held));
    if (poll.exchange.isGone) return this.#left(held);
    if (known !== undefined && this.#correct(held, known)) return;
    this.#register(held, poll.presented);
    if (!this.#polls.has(poll.pollId)) return;
    if (this.#context.isLeaving()) return this.#refuse(held, "draining", nodeDraining());
    held.holdTimer = this.#context.runtime.schedule(poll.query.holdMs, () =>
      this.#answerEmpty(held, "empty"),
    );
  }

  /** A shard offers calls to a poll: claims them, writes what was granted, settles. */
  offer(offer: Offer, shard: ShardPort): void {
    const held = this.#polls.get(offer.pollId);
    const callIds = offer.calls.map(({ callId }) => callId);
    if (held === undefined || held.state.kind === "claiming" || held.poll.exchange.isGone) {
      if (held?.state.kind === "registered") this.#remove(held, "agent_gone");
      return shard.offerEnded(offer.tunnel, offer.pollId, offerEnd({ returned: callIds }));
    }
    // An offer of a former owner is as good as any; the present one must not make another.
    if (held.state.kind === "registered" && held.state.port !== shard) {
      held.state.port.withdrawPoll(offer.tunnel, offer.pollId);
    }
    held.state = { kind: "claiming", port: shard, isOver: false };
    const claimant = { pollId: offer.pollId, entry: this.#context.entry, instance: held.poll.instance };
    claimOffer(this.#context, offer, claimant, (claims) => this.#write(held, claimant, claims, shard));
  }

  /** The shard lets go of a poll. */
  end(pollId: PollId, ending: PollEnding): void {
    const held = this.#polls.get(pollId);
    if (held === undefined || held.state.kind === "claiming") return;
    switch (ending.kind) {
      case "too-many":
        return this.#refuse(held, "refused", tooManyPolls());
      case "revoked":
        return this.#refuse(held, "revoked", new ProtocolError("unauthorized"));
      case "not-owner":
        return this.#follow(held, ending.placement);
    }
  }

  /** A key stopped working: its waiting polls end. */
  keyRevoked(keyId: string): void {
    for (const held of this.#polls.values()) {
      if (held.poll.keyId === keyId) this.#refuse(held, "revoked", new ProtocolError("unauthorized"));
    }
  }

  /** A tunnel is gone: so are the keys its waiting polls came with. */
  tunnelDeleted(tunnel: TunnelId): void {
    for (const held of this.#byTunnel.of(tunnel)) {
      this.#refuse(held, "revoked", new ProtocolError("unauthorized"));
    }
  }

  /** A tunnel was placed elsewhere: its waiting polls go to the new owner. */
  placementChanged(tunnel: TunnelId): void {
    const shard = this.#context.placements.best(tunnel)?.shard;
    for (const held of this.#byTunnel.of(tunnel)) {
      const isThere = held.state.kind === "registered" && held.state.port.shard === shard;
      if (!isThere && held.state.kind !== "claiming") this.#register(held, held.poll.presented);
    }
  }

  /** Shards came within reach or went out of it: their polls register again, or are parked. */
  shardsChanged(shards: ReadonlySet<ShardId>): void {
    for (const held of this.#polls.values()) {
      const { state, poll } = held;
      if (state.kind === "claiming") continue;
      const shard =
        state.kind === "registered" ? state.port.shard : this.#context.placements.best(poll.tunnel)?.shard;
      if (shard === undefined || shards.has(shard)) this.#register(held, poll.presented);
    }
  }

  /** Ends every poll with 204, because this node is leaving. */
  release(): void {
    for (const held of this.#polls.values()) this.#answerEmpty(held, "draining");
  }

  #register(held: HeldPoll, hint: KnownPlacement | undefined): void {
    const { placements, shardPort, entry } = this.#context;
    const { pollId, tunnel, instance, keyId, query } = held.poll;
    const placement = placements.best(tunnel, hint);
    if (held.state.kind === "registered" && held.state.port.shard !== placement?.shard) {
      held.state.port.withdrawPoll(tunnel, pollId);
    }
    const port = placement === undefined ? undefined : shardPort(placement.shard);
    if (placement === undefined || port === undefined) {
      held.state = { kind: "parked" };
      return;
    }
    held.state = { kind: "registered", port };
    held.registeredBy = placement.revision;
    const { channels, limit } = query;
    port.registerPoll({ pollId, entry, tunnel, keyId, channels, limit, instance, placement });
  }

  /** Goes where the tunnel is now, or tells the client to. */
  #follow(held: HeldPoll, placement: KnownPlacement | undefined): void {
    const { placements } = this.#context;
    const { tunnel } = held.poll;
    if (placement !== undefined) {
      placements.learn(tunnel, placement);
      if (this.#correct(held, placement)) return;
      const isCrossed = placement.revision <= held.registeredBy;
      if (held.state.kind === "registered" && isCrossed) return; // It is where the ending would send it.
    }
    const asked = held.state.kind === "registered" ? held.state.port.shard : undefined;
    held.state = { kind: "parked" };
    held.hops += 1;
    if (held.hops > OWNER_HOPS_MAX) return this.#answerEmpty(held, "moved");
    // Nothing newer is known than what led there: the news is on its way, and brings the poll along.
    if (placements.best(tunnel, held.poll.presented)?.shard !== asked)
      this.#register(held, held.poll.presented);
  }

  /** Answers 409 with the token of `placement` where R4 and R24 allow it; `false` = serve the poll. */
  #correct(held: HeldPoll, placement: KnownPlacement): boolean {
    const { pollingTokens, metrics, timeline, logger } = this.#context;
    const { poll } = held;
    if (this.#policy.decide(poll, placement) === "serve") return false;
    const token = sealPollingToken(pollingTokens, poll.tunnel, placement);
    if (token === undefined || !this.#withdrawn(held, "moved")) return false;
    const headers = { ...NO_STORE, ...JSON_TYPE, [HEADER.shardToken]: token };
    poll.exchange.reply(409, headers, encodeCorrectionBody(placement.revision));
    metrics.corrections.inc("corrected");
    timeline.note(poll.tunnel, "corrected", `instance ${poll.instance} to revision ${placement.revision}`);
    logger.info("poll-corrected", {
      tunnel: poll.tunnel,
      instance: poll.instance,
      revision: placement.revision,
    });
    return true;
  }

  #write(held: HeldPoll, claimant: Claimant, claims: Claims, shard: ShardPort): void {
    const { poll } = held;
    const granted = claims.granted.map(({ callId }) => callId);
    if (granted.length === 0) return this.#goOn(held, shard, offerEnd(claims.refused));
    const headers = { ...NO_STORE, ...JSON_TYPE };
    const outcome = poll.exchange.isGone
      ? "not-written"
      : poll.exchange.reply(200, headers, encodeCommands(claims.granted));
    if (outcome === "written") this.#policy.served(poll);
    const { metrics } = this.#context;
    if (outcome === "written") metrics.commandsHandedOut.inc(granted.length);
    else metrics.commandsNotWritten.inc(granted.length);
    for (const { callId, port } of claims.granted) port.settleClaim(callId, claimant, outcome);
    this.#remove(held, outcome === "written" ? "commands" : "agent_gone");
    const way = outcome === "written" ? { written: granted } : { returned: granted };
    shard.offerEnded(poll.tunnel, poll.pollId, offerEnd({ ...claims.refused, ...way }));
  }

  /** Nothing could be claimed: the poll waits on, unless its time is over. */
  #goOn(held: HeldPoll, shard: ShardPort, end: OfferEnd): void {
    const { poll, state } = held;
    const isOver = state.kind === "claiming" && state.isOver;
    held.state = { kind: "parked" };
    shard.offerEnded(poll.tunnel, poll.pollId, end);
    if (poll.exchange.isGone) this.#remove(held, "agent_gone");
    else if (isOver) this.#answerEmpty(held, "empty");
    else if (this.#context.isLeaving()) this.#answerEmpty(held, "draining");
    else this.#register(held, undefined);
  }

  #answerEmpty(held: HeldPoll, outcome: PollOutcome): void {
    if (held.state.kind === "claiming") {
      held.state.isOver = true;
      return;
    }
    if (!this.#withdrawn(held, outcome)) return;
    if (outcome === "empty") this.#policy.served(held.poll);
    held.poll.exchange.reply(204, NO_STORE);
  }

  #refuse(held: HeldPoll, outcome: PollOutcome, error: ProtocolError): void {
    const { state, poll } = held;
    if (state.kind === "claiming" || !this.#withdrawn(held, outcome)) return;
    if (error.retryAfterS !== undefined && state.kind === "registered") {
      state.port.noteToldToWait(poll.tunnel, poll.instance, error.retryAfterS * 1000);
    }
    replyError(poll.exchange, error);
  }

  /** The agent hung up. A hand-out under way finds out by itself. */
  #left(held: HeldPoll): void {
    if (held.state.kind !== "claiming") this.#withdrawn(held, "agent_gone");
  }

  /** Forgets a poll here and at its shard; `false` if it had ended before. */
  #withdrawn(held: HeldPoll, outcome: PollOutcome): boolean {
    if (!this.#remove(held, outcome)) return false;
    if (held.state.kind === "registered") held.state.port.withdrawPoll(held.poll.tunnel, held.poll.pollId);
    return true;
  }

  #remove(held: HeldPoll, outcome: PollOutcome): boolean {
    const { pollId, tunnel } = held.poll;
    if (!this.#polls.delete(pollId)) return false;
    this.#byTunnel.remove(tunnel, held);
    const { runtime, metrics, logger } = this.#context;
    runtime.cancel(held.holdTimer);
    metrics.pollsWaiting.set(this.#polls.size);
    metrics.pollsEnded.inc(outcome);
    if (logger.isDebug) logger.debug("poll-ended", { pollId, tunnel, outcome });
    return true;
  }
}

function nodeDraining(): ProtocolError {
  return new ProtocolError("node_draining", { retryAfterS: RETRY_AFTER_S });
}

function tooManyPolls(): ProtocolError {
  return new ProtocolError("rate_limit_exceeded", {
    message: "too many polls wait on this tunnel",
    retryAfterS: RETRY_AFTER_S,
  });
}
