// Messages about homes to a shard of this node, as calls of its HomeShardPort.
//
// Spec: docs/protocol/peer-link.md. The entry a message is of is the sender's incarnation, never a field: a node speaks
// for itself only.

import { LINK_DATA_BYTES_MAX, NOW_BYTES_MAX } from "@moor/protocol";
import { encodeHomeStatus, encodeNow, readBoxAnswer } from "./link-codec.ts";
import type { HomeShardPort, RegisteredLink, SubmittedCommand } from "./link-ports.ts";
import type { EntryId } from "./peer-link.ts";
import { MalformedHead, read } from "./peer-messages.ts";
import type { PeerMessage } from "./transport/peer-network.ts";

/** What handlers may use beside the shard. */
export interface HomeMessageContext {
  readonly sender: EntryId;
  /** Answers a question. */
  readonly reply: (message: PeerMessage) => void;
}

type HomeShardHandler = (shard: HomeShardPort, message: PeerMessage, context: HomeMessageContext) => void;

/** One handler per message about homes to a shard. */
export const HOME_SHARD_MESSAGES: Readonly<Record<string, HomeShardHandler>> = {
  "register-link": (shard, message, { sender }) => shard.registerLink(readLink(message, sender)),
  "withdraw-link": (shard, { head }) =>
    shard.withdrawLink(read.home(head), read.link(head), read.optionalNumber(head, "backWithinMs")),
  "submit-command": (shard, message, { sender }) => shard.submitCommand(readSubmitted(message, sender)),
  "withdraw-command": (shard, { head }) => shard.withdrawCommand(read.home(head), read.submission(head)),
  "command-settled": (shard, { head }) => {
    const outcome = read.text(head, "outcome");
    if (outcome !== "written" && outcome !== "not-written") throw new MalformedHead("outcome");
    shard.commandSettled(read.home(head), read.link(head), read.command(head), outcome);
  },
  "box-answered": (shard, message) => {
    const { head } = message;
    shard.boxAnswered(read.home(head), read.link(head), read.command(head), readBoxAnswer(message));
  },
  "box-event": (shard, message) =>
    shard.boxEvent(
      read.home(message.head),
      read.link(message.head),
      read.payloadText(message, LINK_DATA_BYTES_MAX),
    ),
  "box-now": (shard, message) =>
    shard.boxNow(read.home(message.head), read.link(message.head), read.payloadText(message, NOW_BYTES_MAX)),
  "read-now": (shard, { head }, { reply }) =>
    shard.readNow(read.home(head), read.placement(head), (outcome) => reply(encodeNow(outcome))),
  "describe-home": (shard, { head }, { reply }) =>
    shard.describeHome(read.home(head), (status) => reply({ head: encodeHomeStatus(status) })),
};

function readLink({ head }: PeerMessage, entry: EntryId): RegisteredLink {
  const role = read.text(head, "role");
  const app = read.optionalApp(head);
  if (role !== "box" && (role !== "app" || app === undefined)) throw new MalformedHead("role");
  return {
    linkId: read.link(head),
    entry,
    home: read.home(head),
    role,
    app,
    isFollowing: read.flag(head, "isFollowing"),
    credential: read.text(head, "credential"),
    seenSeq: read.optionalNumber(head, "seenSeq"),
    generation: readGeneration(read.optionalNumber(head, "generation")),
    placement: read.placement(head),
  };
}

function readGeneration(generation: number | undefined): number | undefined {
  if (generation !== undefined && (!Number.isSafeInteger(generation) || generation < 0)) {
    throw new MalformedHead("generation");
  }
  return generation;
}

function readSubmitted(message: PeerMessage, entry: EntryId): SubmittedCommand {
  const { head } = message;
  return {
    submission: read.submission(head),
    entry,
    home: read.home(head),
    id: read.command(head),
    app: read.optionalApp(head),
    remainingMs: read.number(head, "remainingMs"),
    data: read.payloadText(message, LINK_DATA_BYTES_MAX),
    placement: read.placement(head),
    isAgain: read.flag(head, "isAgain"),
  };
}
