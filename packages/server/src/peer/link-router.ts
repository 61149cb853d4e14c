// Joins what holds links and what owns homes, of this node and of the others: ports out, messages in.
//
// Spec: docs/protocol/peer-link.md; link-ports.ts.
// I1  A port is one object for as long as it means the same shard or entry, so that ports can be compared.
// I2  A node of protocol version 1 knows nothing of links: its shards are out of reach for them.

import type { ShardId } from "../directory/directory.ts";
import { PEER_ANSWER_WAIT_MS } from "../server-limits.ts";
import { foreignHomeShard } from "./foreign-home-shard.ts";
import { HOME_SHARD_MESSAGES } from "./home-shard-messages.ts";
import { LINK_ENTRY_MESSAGES } from "./link-entry-messages.ts";
import type { HomeShardPort, LinkEntry, LinkEntryPort } from "./link-ports.ts";
import type { EntryId } from "./peer-link.ts";
import { read } from "./peer-messages.ts";
import type { PeerOutbox } from "./peer-outbox.ts";
import type { PeerRequests } from "./peer-requests.ts";
import { RemoteHomeShard } from "./remote-home-shard.ts";
import { RemoteLinkEntry } from "./remote-link-entry.ts";
import type { Peer, PeerMessage } from "./transport/peer-network.ts";
import { LINK_PLANE_VERSION } from "./transport/transport-limits.ts";

export interface LinkRouterOptions {
  readonly self: EntryId;
  readonly homes: ReadonlyMap<ShardId, HomeShardPort>;
  readonly links: () => LinkEntry;
  /** The node that runs a shard, while there is a link to it. */
  readonly peerOfShard: (shard: ShardId) => Peer | undefined;
  /** The process that runs a shard, or ran it when it was last in reach. */
  readonly incarnationOfShard: (shard: ShardId) => EntryId | undefined;
  /** Whether an entry may be alive: it was seen, and no later incarnation of its node was. */
  readonly mayLive: (entry: EntryId) => boolean;
  readonly outbox: PeerOutbox;
  readonly requests: PeerRequests;
}

export class LinkRouter {
  readonly #options: LinkRouterOptions;
  readonly #shards = new Map<ShardId, RemoteHomeShard>();
  readonly #entries = new Map<EntryId, RemoteLinkEntry>();

  constructor(options: LinkRouterOptions) {
    this.#options = options;
  }

  /** The way to a shard; `undefined` while its node is not in reach. */
  homeShardPort(shard: ShardId): HomeShardPort | undefined {
    const own = this.#options.homes.get(shard);
    if (own !== undefined) return own;
    return this.#peerOf(shard) === undefined ? undefined : this.#remoteShard(shard);
  }

  /** The way to an entry, also while it is out of reach; `undefined` once it is gone for good. */
  linkEntryPort(entry: EntryId): LinkEntryPort | undefined {
    const { self, links, mayLive } = this.#options;
    if (entry === self) return links().port;
    return mayLive(entry) ? this.#remoteEntry(entry) : undefined;
  }

  /** Takes a message about links; `false` if it is about something else. */
  dispatch(peer: Peer, t: string, message: PeerMessage): boolean {
    const toShard = HOME_SHARD_MESSAGES[t];
    if (toShard !== undefined) {
      const sender = peer.incarnation as EntryId;
      const id = read.shard(message.head);
      const shard = this.#options.homes.get(id) ?? foreignHomeShard(id, () => this.#remoteEntry(sender));
      const { n } = message.head;
      const reply = (said: PeerMessage) => void peer.send({ ...said, head: { ...said.head, n } });
      toShard(shard, message, { sender, reply });
      return true;
    }
    const toEntry = LINK_ENTRY_MESSAGES[t];
    if (toEntry === undefined) return false;
    const shard = (id: ShardId): HomeShardPort => this.#options.homes.get(id) ?? this.#remoteShard(id);
    toEntry({ entry: this.#options.links().port, shard }, message);
    return true;
  }

  /** An incarnation ended: nothing of it will ever come. */
  forget(entry: EntryId): void {
    this.#entries.delete(entry);
  }

  #peerOf(shard: ShardId): Peer | undefined {
    const peer = this.#options.peerOfShard(shard);
    return peer === undefined || peer.version < LINK_PLANE_VERSION ? undefined : peer;
  }

  #remoteShard(shard: ShardId): RemoteHomeShard {
    let remote = this.#shards.get(shard);
    if (remote === undefined) {
      const { links, outbox, requests, incarnationOfShard } = this.#options;
      remote = new RemoteHomeShard({
        shard,
        entry: () => links().port,
        send: (message) => {
          const peer = this.#peerOf(shard);
          return peer !== undefined && outbox.trySend(peer.incarnation, message);
        },
        sendSurely: (message) => {
          const incarnation = incarnationOfShard(shard);
          if (incarnation !== undefined) outbox.send(incarnation, message);
        },
        ask: (head, onReply) => {
          const peer = this.#peerOf(shard);
          if (peer === undefined) return onReply(undefined);
          requests.ask(peer, { head }, PEER_ANSWER_WAIT_MS, onReply);
        },
      });
      this.#shards.set(shard, remote);
    }
    return remote;
  }

  #remoteEntry(entry: EntryId): RemoteLinkEntry {
    let remote = this.#entries.get(entry);
    if (remote === undefined) {
      const { outbox } = this.#options;
      remote = new RemoteLinkEntry({
        entry,
        send: (message) => outbox.trySend(entry, message),
        sendSurely: (message) => outbox.send(entry, message),
      });
      this.#entries.set(entry, remote);
    }
    return remote;
  }
}
