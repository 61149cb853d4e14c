// Messages to the entry of this node, as calls of its EntryPort.
//
// Spec: docs/protocol/peer-link.md.

import type { ShardId } from "../directory/directory.ts";
import type { CallId, CallRefusal, EntryId, EntryPort, PollEnding, ShardPort } from "./peer-link.ts";
import { MalformedHead, read, type RawHead } from "./peer-messages.ts";
import { claimReply, readClaimant } from "./remote-entry.ts";
import type { PeerMessage } from "./transport/peer-network.ts";

/** What handlers may use of their node. */
export interface EntryMessageContext {
  readonly entry: EntryPort;
  /** The way back to a shard of the sender. */
  readonly shard: (shard: ShardId) => ShardPort;
  readonly reply: (message: PeerMessage) => void;
}

type EntryHandler = (context: EntryMessageContext, head: RawHead) => void;

/** One handler per message to an entry. */
export const ENTRY_MESSAGES: Readonly<Record<string, EntryHandler>> = {
  "refuse-call": ({ entry }, head) => entry.refuseCall(read.call(head), readRefusal(head)),
  offer: ({ entry, shard }, head) => {
    const offer = { pollId: read.poll(head), tunnel: read.tunnel(head), calls: readOffered(head) };
    entry.offerCalls(offer, shard(read.shard(head)));
  },
  "end-poll": ({ entry }, head) => entry.endPoll(read.poll(head), readEnding(head)),
  claim: ({ entry, reply }, head) =>
    entry.claimCall(read.call(head), readClaimant(head), (outcome) => reply(claimReply(head, outcome))),
  settle: ({ entry }, head) => {
    const outcome = read.text(head, "outcome");
    if (outcome !== "written" && outcome !== "not-written") throw new MalformedHead("outcome");
    entry.settleClaim(read.call(head), readClaimant(head), outcome);
  },
};

const REFUSALS = [
  "tunnel_client_not_seen",
  "tunnel_client_not_connected",
  "tunnel_queue_full",
  "session_not_found",
  "tunnel_not_found",
  "tunnel_transport_unavailable",
] as const;

function readRefusal(head: RawHead): CallRefusal {
  if (read.text(head, "why") === "not-owner") {
    return { kind: "not-owner", placement: read.optionalPlacement(head) };
  }
  const code = REFUSALS.find((known) => known === head["code"]);
  return { kind: "refused", code: code ?? "tunnel_transport_unavailable" };
}

function readEnding(head: RawHead): PollEnding {
  switch (read.text(head, "why")) {
    case "too-many":
      return { kind: "too-many" };
    case "revoked":
      return { kind: "revoked" };
    default:
      return { kind: "not-owner", placement: read.optionalPlacement(head) };
  }
}

function readOffered(head: RawHead): readonly { readonly callId: CallId; readonly entry: EntryId }[] {
  return read.list(head, "calls").map((item) => {
    if (!Array.isArray(item) || typeof item[0] !== "string" || typeof item[1] !== "string") {
      throw new MalformedHead("calls");
    }
    return { callId: item[0] as CallId, entry: item[1] as EntryId };
  });
}
