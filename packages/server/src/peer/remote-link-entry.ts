// The entry of another node, as this node's shards talk to it about links and commands.
//
// Spec: docs/protocol/peer-link.md. Everything but events is kept until the other process took it; a command that cannot
// be sent to it now is not written.

import {
  encodeCommandEnding,
  encodeLinkEnding,
  encodeLinkRefusal,
  encodePresence,
  withText,
} from "./link-codec.ts";
import type {
  CommandEnding,
  DeliveredCommand,
  HomeShardPort,
  LinkEnding,
  LinkEntryPort,
  LinkId,
  LinkRefusal,
  Presence,
  SubmissionId,
} from "./link-ports.ts";
import type { EntryId } from "./peer-link.ts";
import type { PeerMessage } from "./transport/peer-network.ts";

export interface RemoteLinkEntryOptions {
  readonly entry: EntryId;
  /** Sends to the node now; `false` = not possible now. */
  readonly send: (message: PeerMessage) => boolean;
  /** Sends what must arrive while that node lives. */
  readonly sendSurely: (message: PeerMessage) => void;
}

export class RemoteLinkEntry implements LinkEntryPort {
  readonly entry: EntryId;
  readonly #options: RemoteLinkEntryOptions;

  constructor(options: RemoteLinkEntryOptions) {
    this.entry = options.entry;
    this.#options = options;
  }

  linkAccepted(
    linkId: LinkId,
    { generation, presence }: { readonly generation: number | undefined; readonly presence: Presence },
    { shard }: HomeShardPort,
  ): void {
    const given = generation === undefined ? {} : { generation };
    const head = { t: "link-accepted", shard, link: linkId, ...given, ...encodePresence(presence) };
    this.#options.sendSurely({ head });
  }

  linkRefused(linkId: LinkId, refusal: LinkRefusal, { shard }: HomeShardPort): void {
    const head = { t: "link-refused", shard, link: linkId, ...encodeLinkRefusal(refusal) };
    this.#options.sendSurely({ head });
  }

  deliverCommand(command: DeliveredCommand, shard: HomeShardPort): void {
    const { linkId, home, id, app, remainingMs, data } = command;
    const from = app === undefined ? {} : { app };
    const head = { t: "deliver-command", shard: shard.shard, link: linkId, home, id, ...from, remainingMs };
    if (!this.#options.send(withText(head, data))) shard.commandSettled(home, linkId, id, "not-written");
  }

  commandWritten(submission: SubmissionId): void {
    this.#options.sendSurely({ head: { t: "command-written", submission } });
  }

  commandEnded(submission: SubmissionId, ending: CommandEnding): void {
    this.#options.sendSurely(encodeCommandEnding({ t: "command-ended", submission }, ending));
  }

  sendEvent(linkIds: readonly LinkId[], data: string): void {
    this.#options.send(withText({ t: "link-event", links: linkIds }, data));
  }

  sendPresence(linkIds: readonly LinkId[], presence: Presence, { shard }: HomeShardPort): void {
    const head = { t: "link-presence", shard, links: linkIds, ...encodePresence(presence) };
    this.#options.sendSurely({ head });
  }

  closeLink(linkId: LinkId, ending: LinkEnding, { shard }: HomeShardPort): void {
    this.#options.sendSurely({ head: { t: "close-link", shard, link: linkId, ...encodeLinkEnding(ending) } });
  }
}
