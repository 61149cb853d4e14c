// The part of a node that holds client sockets: callers' calls and agents' polls.
//
// Design "Shape": the entry keeps the caller's socket, the body and the deadline; shards only match.
// As an EntryPort it is what shards and other entries, local or remote, talk to.

import type { TunnelId } from "@moor/protocol";
import type { ShardId } from "../directory/directory.ts";
import type { HttpExchange } from "../http/http-exchange.ts";
import type { EntryId, EntryPort } from "../peer/peer-link.ts";
import type { AnswerOutcome, ArrivedAnswer } from "./answer-relay.ts";
import { CallTable } from "./call-table.ts";
import type { EntryContext } from "./entry-context.ts";
import { PollTable } from "./poll-table.ts";
import { handlePublicRequest } from "./public-routes.ts";
import { takeAnswer } from "./take-answer.ts";

export class Entry {
  readonly calls: CallTable;
  readonly polls: PollTable;
  /** What shards and other entries talk to. */
  readonly port: EntryPort;
  readonly #context: EntryContext;

  constructor(context: EntryContext) {
    this.#context = context;
    this.calls = new CallTable(context);
    this.polls = new PollTable(context);
    const { calls, polls } = this;
    this.port = {
      entry: context.entry,
      refuseCall: (callId, refusal) => calls.refuse(callId, refusal),
      offerCalls: (offer, shard) => polls.offer(offer, shard),
      endPoll: (pollId, ending) => polls.end(pollId, ending),
      claimCall: (callId, claimant, answer) => answer(calls.claim(callId, claimant)),
      settleClaim: (callId, claimant, outcome) => calls.settle(callId, claimant, outcome),
    };
  }

  /** Serves one request of the public listener. */
  handle(exchange: HttpExchange, isReady: () => boolean): Promise<void> {
    const { calls, polls } = this;
    return handlePublicRequest({ context: this.#context, calls, polls }, isReady, exchange);
  }

  /** Takes an answer that arrived at another node. */
  takeAnswer(answer: ArrivedAnswer): Exclude<AnswerOutcome, "unavailable"> {
    return takeAnswer({ context: this.#context, calls: this.calls }, answer);
  }

  /** A key stopped working. */
  keyRevoked(keyId: string): void {
    this.polls.keyRevoked(keyId);
  }

  /** A tunnel is gone. */
  tunnelDeleted(tunnel: TunnelId): void {
    this.calls.tunnelDeleted(tunnel);
    this.polls.tunnelDeleted(tunnel);
  }

  /** Shards came within reach or went out of it: what waits for them goes there again, or is parked. */
  shardsChanged(shards: ReadonlySet<ShardId>): void {
    this.calls.shardsChanged(shards);
    this.polls.shardsChanged(shards);
  }

  /** A tunnel was placed elsewhere: what is not with its new owner yet goes there. */
  placementChanged(tunnel: TunnelId): void {
    this.polls.placementChanged(tunnel);
    this.calls.placementChanged(tunnel);
  }

  /** Another entry is gone for good. */
  entryLost(entry: EntryId): void {
    this.calls.claimantLost(entry);
  }

  /** Lets waiting polls go, waits for the calls held, then ends what is left. Milliseconds. */
  async drain(graceMs: number): Promise<void> {
    this.polls.release();
    await this.calls.drain(graceMs);
  }
}
