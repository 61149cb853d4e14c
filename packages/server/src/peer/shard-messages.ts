// Messages to a shard of this node, as calls of its ShardPort.
//
// Spec: docs/protocol/peer-link.md. The entry a message is of is the sender's incarnation, never a field: a node speaks
// for itself only.

import { parseChannelName, type ChannelName } from "@moor/protocol";
import type { EntryId, ShardPort } from "./peer-link.ts";
import { MalformedHead, read, type RawHead } from "./peer-messages.ts";

type ShardHandler = (shard: ShardPort, head: RawHead, sender: EntryId) => void;

/** One handler per message to a shard. */
export const SHARD_MESSAGES: Readonly<Record<string, ShardHandler>> = {
  submit: (shard, head, sender) =>
    shard.submitCall({
      callId: read.call(head),
      entry: sender,
      tunnel: read.tunnel(head),
      channel: read.channel(head),
      payloadBytes: read.number(head, "bytes"),
      remainingMs: read.number(head, "remainingMs"),
      pinnedTo: read.optionalInstance(head, "pinnedTo"),
      placement: read.placement(head),
    }),
  "withdraw-call": (shard, head) => shard.withdrawCall(read.tunnel(head), read.call(head)),
  "end-call": (shard, head) => shard.endCall(read.tunnel(head), read.call(head)),
  "register-poll": (shard, head, sender) =>
    shard.registerPoll({
      pollId: read.poll(head),
      entry: sender,
      tunnel: read.tunnel(head),
      keyId: read.text(head, "key"),
      channels: new Set(read.texts(head, "channels").map(channelOf)),
      limit: read.number(head, "limit"),
      instance: read.instance(head),
      placement: read.placement(head),
    }),
  "withdraw-poll": (shard, head) => shard.withdrawPoll(read.tunnel(head), read.poll(head)),
  "offer-ended": (shard, head) =>
    shard.offerEnded(read.tunnel(head), read.poll(head), {
      written: read.calls(head, "written"),
      returned: read.calls(head, "returned"),
      blocked: read.calls(head, "blocked"),
      gone: read.calls(head, "gone"),
    }),
  activity: (shard, head) => shard.noteActivity(read.tunnel(head), read.instance(head)),
  "told-to-wait": (shard, head) =>
    shard.noteToldToWait(read.tunnel(head), read.instance(head), read.number(head, "waitMs")),
};

function channelOf(text: string): ChannelName {
  const channel = parseChannelName(text);
  if (channel === undefined) throw new MalformedHead("channels");
  return channel;
}
