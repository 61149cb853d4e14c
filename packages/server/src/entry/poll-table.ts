// Every poll this entry holds: from registration to its one answer.
//
// Spec: T4, T2 (revocation reaches waiting polls), T12.
// I1  A poll is answered once: 200 with commands, 204, or an error.
// I2  A leaving node holds no poll, but hands out what is queued: those calls can end nowhere else.
// I3  The answer to a hand-out is written before "written" is reported; a poll known to be gone reports "not-written".

import { ProtocolError, type InstanceId, type TunnelId } from "@moor/protocol";
import type { TimerHandle } from "@moor/runtime";
import type { Placement } from "../directory/directory.ts";
import { JSON_TYPE, NO_STORE, type HttpExchange } from "../http/http-exchange.ts";
import { replyError } from "../http/reply-error.ts";
import type { PollOutcome } from "../operator/metrics.ts";
import type { EntryPort, HandedOutCommand, PollId, ShardPort } from "../peer/peer-link.ts";
import { OWNER_HOPS_MAX, RETRY_AFTER_S } from "../server-limits.ts";
import { encodeCommands } from "./command-encoding.ts";
import type { EntryContext } from "./entry-context.ts";
import type { PollQuery } from "./poll-query.ts";

export interface HeldPoll {
  readonly pollId: PollId;
  readonly tunnel: TunnelId;
  readonly keyId: string;
  readonly instance: InstanceId;
  readonly exchange: HttpExchange;
  readonly query: PollQuery;
  hops: number;
  port: ShardPort | undefined;
  holdTimer: TimerHandle | undefined;
}

export class PollTable {
  readonly #context: EntryContext;
  readonly #polls = new Map<PollId, HeldPoll>();

  constructor(context: EntryContext) {
    this.#context = context;
  }

  get size(): number {
    return this.#polls.size;
  }

  /** Takes a poll on and registers it with the tunnel's owner. */
  hold(poll: HeldPoll): void {
    this.#polls.set(poll.pollId, poll);
    this.#context.metrics.pollsWaiting.set(this.#polls.size);
    poll.exchange.onGone(() => this.#withdraw(poll, "agent_gone"));
    if (poll.exchange.isGone) return this.#withdraw(poll, "agent_gone");
    this.#register(poll, this.#context.replica.tunnel(poll.tunnel)?.placement);
    if (!this.#polls.has(poll.pollId)) return;
    if (this.#context.isLeaving()) return this.#refuse(poll, "draining", nodeDraining());
    poll.holdTimer = this.#context.runtime.schedule(poll.query.holdMs, () =>
      this.#answerEmpty(poll, "empty"),
    );
  }

  /** First and second phase of a hand-out (I3). */
  handOut(pollId: PollId, commands: readonly HandedOutCommand[], shard: ShardPort): void {
    const poll = this.#polls.get(pollId);
    if (poll === undefined) return; // Its withdrawal is on the way to the shard, or was the cause of this.
    this.#remove(poll, "commands");
    const headers = { ...NO_STORE, ...JSON_TYPE };
    const outcome = poll.exchange.isGone
      ? "not-written"
      : poll.exchange.reply(200, headers, encodeCommands(commands));
    const { metrics } = this.#context;
    if (outcome === "written") metrics.commandsHandedOut.inc(commands.length);
    else metrics.commandsNotWritten.inc(commands.length);
    shard.handOutEnded(poll.tunnel, pollId, outcome);
  }

  /** The shard lets go of a poll. */
  end(pollId: PollId, reason: Parameters<EntryPort["endPoll"]>[1]): void {
    const poll = this.#polls.get(pollId);
    if (poll === undefined) return;
    if (reason.kind === "too-many") return this.#refuse(poll, "refused", tooManyPolls());
    const known = this.#context.replica.tunnel(poll.tunnel)?.placement;
    if (known === undefined) return this.#refuse(poll, "revoked", new ProtocolError("unauthorized"));
    poll.hops += 1;
    if (poll.hops > OWNER_HOPS_MAX) return this.#answerEmpty(poll, "moved");
    const isNewer = reason.placement !== undefined && reason.placement.revision > known.revision;
    this.#register(poll, isNewer ? reason.placement : known);
  }

  /** A key stopped working: its waiting polls end. */
  keyRevoked(keyId: string): void {
    for (const poll of this.#polls.values()) {
      if (poll.keyId === keyId) this.#refuse(poll, "revoked", new ProtocolError("unauthorized"));
    }
  }

  /** Ends every poll with 204, because this node is leaving. */
  release(): void {
    for (const poll of this.#polls.values()) this.#answerEmpty(poll, "draining");
  }

  #register(poll: HeldPoll, placement: Placement | undefined): void {
    const port = placement === undefined ? undefined : this.#context.shardPort(placement.shard);
    if (placement === undefined || port === undefined) {
      const retryAfterS = RETRY_AFTER_S;
      return this.#refuse(poll, "failed", new ProtocolError("tunnel_transport_unavailable", { retryAfterS }));
    }
    poll.port = port;
    const { pollId, tunnel, instance, query } = poll;
    const { channels, limit } = query;
    port.registerPoll({ pollId, entry: this.#context.entry, tunnel, channels, limit, instance, placement });
  }

  #answerEmpty(poll: HeldPoll, outcome: PollOutcome): void {
    if (!this.#withdrawn(poll, outcome)) return;
    poll.exchange.reply(204, NO_STORE);
  }

  #refuse(poll: HeldPoll, outcome: PollOutcome, error: ProtocolError): void {
    if (!this.#withdrawn(poll, outcome)) return;
    if (error.retryAfterS !== undefined) {
      poll.port?.noteToldToWait(poll.tunnel, poll.instance, error.retryAfterS * 1000);
    }
    replyError(poll.exchange, error);
  }

  #withdraw(poll: HeldPoll, outcome: PollOutcome): void {
    this.#withdrawn(poll, outcome);
  }

  /** Forgets a poll here and at its shard; `false` if it had ended before. */
  #withdrawn(poll: HeldPoll, outcome: PollOutcome): boolean {
    if (!this.#remove(poll, outcome)) return false;
    poll.port?.withdrawPoll(poll.tunnel, poll.pollId);
    return true;
  }

  #remove(poll: HeldPoll, outcome: PollOutcome): boolean {
    if (!this.#polls.delete(poll.pollId)) return false;
    const { runtime, metrics, logger } = this.#context;
    runtime.cancel(poll.holdTimer);
    metrics.pollsWaiting.set(this.#polls.size);
    metrics.pollsEnded.inc(outcome);
    if (logger.isDebug) logger.debug("poll-ended", { pollId: poll.pollId, tunnel: poll.tunnel, outcome });
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
