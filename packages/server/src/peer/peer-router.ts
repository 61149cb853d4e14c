// Joins a node's own entry and shards with those of the other nodes: ports out, messages in, links up and down.
//
// Spec: docs/protocol/peer-link.md; design "Shape".
// I1  A port is one object for as long as it means the same shard or entry, so that ports can be compared.
// I2  A link that goes down takes with it what the other node's entry had at our shards, and parks what ours had at its.
// I3  A malformed message costs its sender that message, never this process.

import type { Logger, Runtime } from "@moor/runtime";
import type { ShardId } from "../directory/directory.ts";
import type { AnswerOutcome, AnswerRelay, ArrivedAnswer } from "../entry/answer-relay.ts";
import type { Entry } from "../entry/entry.ts";
import { CLAIM_WAIT_MS, PEER_ANSWER_WAIT_MS } from "../server-limits.ts";
import type { HomeTable } from "../shard/home/home-table.ts";
import type { Shard } from "../shard/shard.ts";
import { encodeAnswer, readAnswer, readAnswerOutcome } from "./answer-message.ts";
import { ENTRY_MESSAGES } from "./entry-messages.ts";
import type { HomeShardPort, LinkEntry, LinkEntryPort } from "./link-ports.ts";
import { LinkRouter } from "./link-router.ts";
import type { EntryId, EntryPort, ShardPort } from "./peer-link.ts";
import { MalformedHead, read, type RawHead } from "./peer-messages.ts";
import { PeerOutbox } from "./peer-outbox.ts";
import { PeerRequests, type Reply } from "./peer-requests.ts";
import { readClaimant, RemoteEntry } from "./remote-entry.ts";
import { RemoteShard } from "./remote-shard.ts";
import { SHARD_MESSAGES } from "./shard-messages.ts";
import type { Topology } from "./topology.ts";
import type { Peer, PeerMessage, PeerNetwork } from "./transport/peer-network.ts";

/** Handles a message that is about neither entry nor shards; `reply` answers a question. */
export type NodeMessageHandler = (peer: Peer, message: PeerMessage, reply: (head: RawHead) => void) => void;

export interface PeerRouterOptions {
  readonly network: PeerNetwork;
  readonly self: EntryId;
  readonly topology: Topology;
  readonly entry: () => Entry;
  readonly shards: ReadonlyMap<ShardId, Shard>;
  /** The homes of the same shards. */
  readonly homes: ReadonlyMap<ShardId, HomeTable>;
  /** The part of this node that holds links. */
  readonly links: () => LinkEntry;
  /** Whether a node that there should be a link to is out of reach: an incarnation nobody knows may be its. */
  readonly isAnyoneAway: () => boolean;
  /** Whether this node knows that a key was revoked: the entry of a poll may not have heard of it yet. Spec T2. */
  readonly isKeyRevoked: (keyId: string) => boolean;
  /** Further messages by name: placement pushes, look-ups, timelines. */
  readonly handlers: Readonly<Record<string, NodeMessageHandler>>;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

export class PeerRouter implements AnswerRelay {
  readonly #options: PeerRouterOptions;
  readonly #requests: PeerRequests;
  readonly #outbox: PeerOutbox;
  readonly #links: LinkRouter;
  readonly #remoteShards = new Map<ShardId, RemoteShard>();
  readonly #remoteEntries = new Map<EntryId, RemoteEntry>();
  readonly #peersByEntry = new Map<string, Peer>();
  /** Last incarnation seen of each node. */
  readonly #incarnations = new Map<string, EntryId>();
  /** The same, by itself. */
  readonly #lastSeen = new Set<EntryId>();

  constructor(options: PeerRouterOptions) {
    this.#options = options;
    this.#requests = new PeerRequests(options.runtime);
    this.#outbox = new PeerOutbox(options.runtime, (incarnation) => this.#peersByEntry.get(incarnation));
    this.#links = this.#createLinkRouter();
    options.network.onUp((peer) => this.#up(peer));
    options.network.onDown((peer) => this.#down(peer));
    options.network.onMessage((peer, message) => this.#receive(peer, message));
  }

  /** The way to a shard; `undefined` while its node is not in reach. */
  shardPort(shard: ShardId): ShardPort | undefined {
    const own = this.#options.shards.get(shard);
    if (own !== undefined) return own;
    return this.#peerOfShard(shard) === undefined ? undefined : this.#remoteShard(shard);
  }

  /** The way to an entry; `undefined` while its node is not in reach. */
  entryPort(entry: EntryId): EntryPort | undefined {
    if (entry === this.#options.self) return this.#options.entry().port;
    return this.#peersByEntry.has(entry) ? this.#remoteEntry(entry) : undefined;
  }

  /** The way to the homes of a shard; `undefined` while its node is not in reach. */
  homeShardPort(shard: ShardId): HomeShardPort | undefined {
    return this.#links.homeShardPort(shard);
  }

  /** The way to what an entry holds of links, also while it is out of reach; `undefined` once it is gone for good. */
  linkEntryPort(entry: EntryId): LinkEntryPort | undefined {
    return this.#links.linkEntryPort(entry);
  }

  async deliver(entry: EntryId, answer: ArrivedAnswer): Promise<AnswerOutcome> {
    const peer = this.#peersByEntry.get(entry);
    if (peer === undefined) return this.#mayReturn(entry) ? "unavailable" : "not-pending";
    const reply = await this.#requests.request(peer, encodeAnswer(answer), PEER_ANSWER_WAIT_MS);
    return reply === undefined ? "unavailable" : readAnswerOutcome(reply.head);
  }

  /** Asks the node `nodeId`; `undefined` when there is no answer in time. */
  async ask(nodeId: string, head: RawHead, waitMs: number = PEER_ANSWER_WAIT_MS): Promise<Reply> {
    const peer = this.#options.network.peer(nodeId);
    return peer === undefined ? undefined : this.#requests.request(peer, { head }, waitMs);
  }

  /** Tells every node in reach. */
  broadcast(head: RawHead): void {
    for (const peer of this.#options.network.peers()) this.#outbox.send(peer.incarnation, { head });
  }

  /** Shards are run by other nodes than before: what waits for them goes there. */
  shardsMoved(shards: ReadonlySet<ShardId>): void {
    this.#shardsChanged(shards);
  }

  close(): void {
    this.#outbox.close();
  }

  #up(peer: Peer): void {
    const entry = peer.incarnation as EntryId;
    const before = this.#incarnations.get(peer.nodeId);
    if (before !== undefined && before !== entry) this.#forget(before);
    this.#incarnations.set(peer.nodeId, entry);
    this.#lastSeen.add(entry);
    this.#peersByEntry.set(entry, peer);
    this.#outbox.flush(entry);
    this.#shardsChanged(this.#options.topology.shardsOf(peer.nodeId));
  }

  #down(peer: Peer): void {
    const entry = peer.incarnation as EntryId;
    if (this.#peersByEntry.get(entry) === peer) this.#peersByEntry.delete(entry);
    this.#requests.peerDown(peer);
    for (const shard of this.#options.shards.values()) shard.dropEntry(entry);
    for (const homes of this.#options.homes.values()) homes.entryAway(entry);
    this.#options.entry().entryLost(entry);
    this.#shardsChanged(this.#options.topology.shardsOf(peer.nodeId));
  }

  #shardsChanged(shards: ReadonlySet<ShardId>): void {
    this.#options.entry().shardsChanged(shards);
    this.#options.links().shardsChanged(shards);
  }

  /** An incarnation ended: nothing of it will ever come. */
  #forget(entry: EntryId): void {
    this.#lastSeen.delete(entry);
    this.#outbox.forget(entry);
    this.#remoteEntries.delete(entry);
    for (const homes of this.#options.homes.values()) homes.entryGone(entry);
    this.#links.forget(entry);
  }

  /** Whether an entry that no link leads to now may be alive: it was seen last of its node, or is of one never met. */
  #mayReturn(entry: EntryId): boolean {
    return this.#lastSeen.has(entry) || this.#options.isAnyoneAway();
  }

  #receive(peer: Peer, message: PeerMessage): void {
    try {
      this.#dispatch(peer, message);
    } catch (error) {
      if (!(error instanceof MalformedHead)) throw error;
      const t = String(message.head["t"]).slice(0, 40);
      this.#options.logger.warn("peer-message-ignored", {
        peer: peer.nodeId,
        message: t,
        field: error.field,
      });
    }
  }

  #dispatch(peer: Peer, message: PeerMessage): void {
    const { head } = message;
    const t = read.text(head, "t");
    if (t.endsWith("-reply")) {
      if (!this.#requests.take(peer, head, message)) this.#handleLateReply(peer, t, head);
      return;
    }
    const toShard = SHARD_MESSAGES[t];
    if (toShard !== undefined) {
      const shard = this.#options.shards.get(read.shard(head));
      if (shard === undefined) return this.#refuseForeignShard(peer, t, head);
      if (t === "register-poll" && this.#options.isKeyRevoked(read.text(head, "key"))) {
        return this.#remoteEntry(peer.incarnation as EntryId).endPoll(read.poll(head), { kind: "revoked" });
      }
      return toShard(shard, head, peer.incarnation as EntryId);
    }
    const toEntry = ENTRY_MESSAGES[t];
    if (toEntry !== undefined) {
      const entry = this.#options.entry().port;
      const shard = (id: ShardId): ShardPort => this.#options.shards.get(id) ?? this.#remoteShard(id);
      return toEntry({ entry, shard, reply: (reply) => void peer.send(reply) }, head);
    }
    if (this.#links.dispatch(peer, t, message)) return;
    if (t === "answer") {
      const outcome = this.#options.entry().takeAnswer(readAnswer(message));
      peer.send({ head: { t: "answer-reply", n: head["n"], outcome } });
      return;
    }
    this.#options.handlers[t]?.(
      peer,
      message,
      (reply) => void peer.send({ head: { ...reply, n: head["n"] } }),
    );
  }

  /** A grant that came too late was not used: its call must be claimable again. */
  #handleLateReply(peer: Peer, t: string, head: RawHead): void {
    if (t !== "claim-reply" || head["outcome"] !== "granted") return;
    this.#remoteEntry(peer.incarnation as EntryId).settleClaim(
      read.call(head),
      readClaimant(head),
      "not-written",
    );
  }

  /** The sender takes us for the node of a shard that we do not run. */
  #refuseForeignShard(peer: Peer, t: string, head: RawHead): void {
    const entry = this.#remoteEntry(peer.incarnation as EntryId);
    const notOwner = { kind: "not-owner", placement: undefined } as const;
    if (t === "submit") entry.refuseCall(read.call(head), notOwner);
    if (t === "register-poll") entry.endPoll(read.poll(head), notOwner);
  }

  #peerOfShard(shard: ShardId): Peer | undefined {
    const node = this.#options.topology.nodeOf(shard);
    return node === undefined ? undefined : this.#options.network.peer(node);
  }

  #createLinkRouter(): LinkRouter {
    const { self, homes, links, topology } = this.#options;
    return new LinkRouter({
      self,
      homes,
      links,
      peerOfShard: (shard) => this.#peerOfShard(shard),
      incarnationOfShard: (shard) => {
        const node = topology.nodeOf(shard);
        return node === undefined ? undefined : this.#incarnations.get(node);
      },
      mayLive: (entry) => this.#lastSeen.has(entry),
      outbox: this.#outbox,
      requests: this.#requests,
    });
  }

  #remoteShard(shard: ShardId): RemoteShard {
    let remote = this.#remoteShards.get(shard);
    if (remote === undefined) {
      remote = new RemoteShard({
        shard,
        entry: () => this.#options.entry().port,
        send: (head) => this.#peerOfShard(shard)?.send({ head }) ?? false,
        sendSurely: (head) => {
          const peer = this.#peerOfShard(shard);
          if (peer !== undefined) this.#outbox.send(peer.incarnation, { head });
        },
      });
      this.#remoteShards.set(shard, remote);
    }
    return remote;
  }

  #remoteEntry(entry: EntryId): RemoteEntry {
    let remote = this.#remoteEntries.get(entry);
    if (remote === undefined) {
      remote = new RemoteEntry({
        entry,
        send: (head) => this.#peersByEntry.get(entry)?.send({ head }) ?? false,
        sendSurely: (head) => this.#outbox.send(entry, { head }),
        ask: (head, onReply) => {
          const peer = this.#peersByEntry.get(entry);
          if (peer === undefined) return onReply(undefined);
          this.#requests.ask(peer, { head }, CLAIM_WAIT_MS, onReply);
        },
      });
      this.#remoteEntries.set(entry, remote);
    }
    return remote;
  }
}
