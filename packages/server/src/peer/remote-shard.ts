// A shard of another node, as this node's entry talks to it.
//
// Spec: docs/protocol/peer-link.md. What is lost with a link is soft: the entry submits and registers again when the
// shard comes within reach, and the claims keep calls single.

import type { InstanceId, TunnelId } from "@moor/protocol";
import type { ShardId } from "../directory/directory.ts";
import type {
  CallId,
  EntryPort,
  OfferEnd,
  PollId,
  RegisteredPoll,
  ShardPort,
  SubmittedCall,
} from "./peer-link.ts";
import { encodePlacement, type RawHead } from "./peer-messages.ts";

export interface RemoteShardOptions {
  readonly shard: ShardId;
  /** This node's entry, which hears of refusals. */
  readonly entry: () => EntryPort;
  /** Sends to the node that runs the shard; `false` = not possible now. */
  readonly send: (head: RawHead) => boolean;
  /** Sends what must arrive while that node lives. */
  readonly sendSurely: (head: RawHead) => void;
}

export class RemoteShard implements ShardPort {
  readonly shard: ShardId;
  readonly #options: RemoteShardOptions;

  constructor(options: RemoteShardOptions) {
    this.shard = options.shard;
    this.#options = options;
  }

  submitCall(call: SubmittedCall): void {
    const { callId, tunnel, channel, payloadBytes, remainingMs, pinnedTo, placement } = call;
    const isSent = this.#send("submit", {
      call: callId,
      tunnel,
      channel,
      bytes: payloadBytes,
      remainingMs,
      ...(pinnedTo === undefined ? {} : { pinnedTo }),
      placement: encodePlacement(placement),
    });
    if (isSent) return;
    this.#options.entry().refuseCall(callId, { kind: "refused", code: "tunnel_transport_unavailable" });
  }

  withdrawCall(tunnel: TunnelId, callId: CallId): void {
    this.#send("withdraw-call", { tunnel, call: callId });
  }

  endCall(tunnel: TunnelId, callId: CallId): void {
    this.#send("end-call", { tunnel, call: callId });
  }

  registerPoll(poll: RegisteredPoll): void {
    const { pollId, tunnel, keyId, channels, limit, instance, placement } = poll;
    const isSent = this.#send("register-poll", {
      poll: pollId,
      tunnel,
      key: keyId,
      channels: [...channels],
      limit,
      instance,
      placement: encodePlacement(placement),
    });
    if (!isSent) this.#options.entry().endPoll(pollId, { kind: "too-many" });
  }

  withdrawPoll(tunnel: TunnelId, pollId: PollId): void {
    this.#send("withdraw-poll", { tunnel, poll: pollId });
  }

  offerEnded(tunnel: TunnelId, pollId: PollId, end: OfferEnd): void {
    this.#options.sendSurely({ t: "offer-ended", shard: this.shard, tunnel, poll: pollId, ...end });
  }

  noteActivity(tunnel: TunnelId, instance: InstanceId): void {
    this.#send("activity", { tunnel, instance });
  }

  noteToldToWait(tunnel: TunnelId, instance: InstanceId, waitMs: number): void {
    this.#send("told-to-wait", { tunnel, instance, waitMs });
  }

  #send(t: string, fields: RawHead): boolean {
    return this.#options.send({ t, shard: this.shard, ...fields });
  }
}
