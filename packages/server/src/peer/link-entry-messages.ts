// Messages about links to the entry of this node, as calls of its LinkEntryPort.
//
// Spec: docs/protocol/peer-link.md.

import { LINK_DATA_BYTES_MAX } from "@moor/protocol";
import type { ShardId } from "../directory/directory.ts";
import { readCommandEnding, readLinkEnding, readLinkRefusal, readPresence } from "./link-codec.ts";
import type { HomeShardPort, LinkEntryPort } from "./link-ports.ts";
import { read } from "./peer-messages.ts";
import type { PeerMessage } from "./transport/peer-network.ts";

/** What handlers may use of their node. */
export interface LinkMessageContext {
  readonly entry: LinkEntryPort;
  /** The way back to a shard of the sender. */
  readonly shard: (shard: ShardId) => HomeShardPort;
}

type LinkEntryHandler = (context: LinkMessageContext, message: PeerMessage) => void;

/** One handler per message about links to an entry. */
export const LINK_ENTRY_MESSAGES: Readonly<Record<string, LinkEntryHandler>> = {
  "link-accepted": ({ entry, shard }, { head }) => {
    const generation = read.optionalNumber(head, "generation");
    entry.linkAccepted(
      read.link(head),
      { generation, presence: readPresence(head) },
      shard(read.shard(head)),
    );
  },
  "link-refused": ({ entry, shard }, { head }) =>
    entry.linkRefused(read.link(head), readLinkRefusal(head), shard(read.shard(head))),
  "deliver-command": ({ entry, shard }, message) => {
    const { head } = message;
    const command = {
      linkId: read.link(head),
      home: read.home(head),
      id: read.command(head),
      app: read.optionalApp(head),
      remainingMs: read.number(head, "remainingMs"),
      data: read.payloadText(message, LINK_DATA_BYTES_MAX),
    };
    entry.deliverCommand(command, shard(read.shard(head)));
  },
  "command-written": ({ entry }, { head }) => entry.commandWritten(read.submission(head)),
  "command-ended": ({ entry }, message) =>
    entry.commandEnded(read.submission(message.head), readCommandEnding(message)),
  "link-event": ({ entry }, message) =>
    entry.sendEvent(read.links(message.head), read.payloadText(message, LINK_DATA_BYTES_MAX)),
  "link-presence": ({ entry, shard }, { head }) =>
    entry.sendPresence(read.links(head), readPresence(head), shard(read.shard(head))),
  "close-link": ({ entry, shard }, { head }) =>
    entry.closeLink(read.link(head), readLinkEnding(head), shard(read.shard(head))),
};
