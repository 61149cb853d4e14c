// The parts of a node that hold calls, polls and links, joined: entry, shards, knowledge and the way to other nodes.
//
// Design "Shape": shards and the entry know each other only through ports, so that either may be elsewhere.
// Everything that touches sockets, files or the directory is given from outside.

import type { HomeId, TunnelId } from "@moor/protocol";
import type { Logger, Runtime } from "@moor/runtime";
import type { ShardId } from "./directory/directory.ts";
import { NO_LINK_WATCH, type LinkWatch } from "./drains/link-drain-port.ts";
import { ByteBudget } from "./entry/byte-budget.ts";
import type { EntrySettings } from "./entry/entry-context.ts";
import { Entry } from "./entry/entry.ts";
import type { PlacementKnowledge } from "./entry/placement-knowledge.ts";
import type { TenantDirectory } from "./entry/tenant-directory.ts";
import { applyPush, type ChangedParts } from "./moves/apply-change.ts";
import { readPlacements, type PlacementNews } from "./moves/placement-message.ts";
import { createTimeline, type Timeline } from "./moves/timeline.ts";
import { ownReach, type NodeReach } from "./node-reach.ts";
import type { Metrics } from "./operator/metrics.ts";
import type { HomeStatus, LinkEntry } from "./peer/link-ports.ts";
import { noLinks } from "./peer/no-links.ts";
import type { EntryId } from "./peer/peer-link.ts";
import { PeerRouter, type NodeMessageHandler } from "./peer/peer-router.ts";
import type { Topology } from "./peer/topology.ts";
import type { PeerNetwork } from "./peer/transport/peer-network.ts";
import { NODE_BODY_BYTES_MAX, NODE_HOME_BYTES_MAX, PRESENCE_HOLD_MS } from "./server-limits.ts";
import { HomeTable } from "./shard/home/home-table.ts";
import { Shard } from "./shard/shard.ts";
import { createCommandTokens } from "./tokens/command-token.ts";
import { createTokenSealer, type KeyRing } from "./tokens/token-sealer.ts";

/** Revisions are the directory's time in microseconds. Spec R22. */
const MICROSECONDS_PER_MS = 1_000;

/** What a node knows of tenants and of its residency, from a replica or from its peers. */
export interface NodeKnowledge {
  readonly tenants: (reach: () => NodeReach) => TenantDirectory;
  readonly placements: PlacementKnowledge;
  readonly topology: Topology;
  readonly ring: KeyRing;
  readonly isCorrecting: () => boolean;
  /** Whether the directory knows that an agent polled a tunnel once; `undefined` = not known here. */
  readonly wasSeen: (tunnel: TunnelId) => boolean | undefined;
  readonly noteSeen: (tunnel: TunnelId) => void;
  readonly isKeyRevoked: (keyId: string) => boolean;
  /** Whether this key is not a home's box key any more, for a node that saw it as such up to change `seenSeq`. */
  readonly isBoxKeyReplaced: (home: HomeId, key: string, seenSeq: number) => boolean;
}

export interface NodeCoreOptions {
  readonly nodeId: string;
  /** New at each start: 16 hex characters. */
  readonly incarnation: EntryId;
  readonly shards: readonly ShardId[];
  readonly knowledge: NodeKnowledge;
  /** Links to other nodes; absent for a node without peers. */
  readonly network?: PeerNetwork | undefined;
  /** Whether a node that there should be a link to is out of reach. Default: nobody is. */
  readonly isAnyoneAway?: () => boolean;
  /** Messages beyond calls, polls, placements and timelines. */
  readonly handlers?: Readonly<Record<string, NodeMessageHandler>>;
  /** Hears of every link that is verified. Default: nobody does. */
  readonly linkWatch?: LinkWatch;
  /** Makes the part that holds links. Default: one that holds none. */
  readonly createLinks?: (core: NodeCore) => LinkEntry;
  /** Directory time at which this process registered, in microseconds. Default: the wall clock's. Spec L23. */
  readonly startRevision?: () => number;
  /** How long boxes are waited for after the start of this process. Milliseconds, default PRESENCE_HOLD_MS. Spec L31. */
  readonly startHoldMs?: number;
  readonly metrics: Metrics;
  readonly settings: EntrySettings;
  readonly isLeaving: () => boolean;
  readonly bodyBytesMax?: number;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

export class NodeCore {
  readonly entry: Entry;
  readonly shards: ReadonlyMap<ShardId, Shard>;
  /** The homes of the same shards. */
  readonly homes: ReadonlyMap<ShardId, HomeTable>;
  /** The part that holds links. */
  readonly links: LinkEntry;
  readonly reach: NodeReach;
  readonly timeline: Timeline;
  /** Bodies of calls and answers in memory. */
  readonly bodies: ByteBudget;
  readonly parts: ChangedParts;
  readonly #options: NodeCoreOptions;

  constructor(options: NodeCoreOptions) {
    this.#options = options;
    this.timeline = createTimeline(options.runtime);
    this.bodies = new ByteBudget(options.bodyBytesMax ?? NODE_BODY_BYTES_MAX);
    this.shards = new Map(options.shards.map((id) => [id, this.#createShard(id)]));
    this.homes = this.#createHomes();
    this.reach = this.#createReach();
    this.entry = this.#createEntry();
    this.links = options.createLinks?.(this) ?? noLinks(options.incarnation);
    this.parts = {
      placements: options.knowledge.placements,
      shards: [...this.shards.values()],
      homes: [...this.homes.values()],
      entry: this.entry,
      links: this.links,
    };
  }

  /** Takes in placements that are newer than what this node knows. */
  applyNews(news: PlacementNews): void {
    applyPush(news.tenant, news.placement, this.parts);
  }

  /** Asks the owner of a home how its links are now; undefined when that is out of reach. */
  homeStatus(home: HomeId): Promise<HomeStatus | undefined> {
    const shard = this.#options.knowledge.placements.best(home)?.shard;
    const port = shard === undefined ? undefined : this.reach.homeShardPort(shard);
    return new Promise((resolve) => {
      if (port === undefined) resolve(undefined);
      else port.describeHome(home, resolve);
    });
  }

  close(): void {
    for (const shard of this.shards.values()) shard.close();
    for (const homes of this.homes.values()) homes.close();
    this.reach.close();
  }

  #createShard(id: ShardId): Shard {
    const { knowledge, runtime, logger } = this.#options;
    return new Shard({
      id,
      placements: knowledge.placements,
      wasSeen: knowledge.wasSeen,
      noteSeen: knowledge.noteSeen,
      entries: (entry) => this.reach.entryPort(entry),
      timeline: this.timeline,
      runtime,
      logger,
    });
  }

  #createHomes(): ReadonlyMap<ShardId, HomeTable> {
    const { shards, incarnation, knowledge, linkWatch, metrics, runtime, logger } = this.#options;
    const { startHoldMs = PRESENCE_HOLD_MS, startRevision } = this.#options;
    const budget = new ByteBudget(NODE_HOME_BYTES_MAX);
    const createTable = (id: ShardId) =>
      new HomeTable({
        id,
        placements: knowledge.placements,
        entries: (entry) => this.reach.linkEntryPort(entry),
        isKeyRevoked: knowledge.isKeyRevoked,
        isBoxKeyReplaced: knowledge.isBoxKeyReplaced,
        startRevision: startRevision ?? (() => runtime.wallMs() * MICROSECONDS_PER_MS),
        startHoldMs,
        budget,
        self: incarnation,
        linkWatch: linkWatch ?? NO_LINK_WATCH,
        metrics,
        timeline: this.timeline,
        runtime,
        logger,
      });
    return new Map(shards.map((id) => [id, createTable(id)]));
  }

  #createReach(): NodeReach {
    const { network, incarnation, knowledge, handlers, runtime, logger } = this.#options;
    const entry = () => this.entry;
    const links = () => this.links;
    const { shards, homes } = this;
    if (network === undefined) return ownReach({ self: incarnation, entry, links, shards, homes });
    return new PeerRouter({
      network,
      self: incarnation,
      topology: knowledge.topology,
      entry,
      links,
      shards,
      homes,
      isAnyoneAway: this.#options.isAnyoneAway ?? (() => false),
      isKeyRevoked: knowledge.isKeyRevoked,
      handlers: {
        placements: (_peer, { head }, reply) => {
          for (const news of readPlacements(head)) this.applyNews(news);
          reply({ t: "placements-reply" });
        },
        timeline: (_peer, { head }, reply) =>
          reply({ t: "timeline-reply", events: this.timeline.of(String(head["tenant"])) }),
        ...handlers,
      },
      runtime,
      logger,
    });
  }

  #createEntry(): Entry {
    const { incarnation, knowledge, runtime, logger, metrics, settings, isLeaving } = this.#options;
    const { placements, ring, isCorrecting } = knowledge;
    return new Entry({
      entry: incarnation,
      runtime,
      logger,
      metrics,
      tenants: knowledge.tenants(() => this.reach),
      placements,
      shardPort: (shard) => this.reach.shardPort(shard),
      entryPort: (entry) => this.reach.entryPort(entry),
      answers: { deliver: (entry, answer) => this.reach.deliver(entry, answer) },
      commandTokens: createCommandTokens(incarnation, runtime),
      pollingTokens: createTokenSealer("poll", ring, runtime),
      sessionTokens: createTokenSealer("session", ring, runtime),
      isCorrecting,
      bodies: this.bodies,
      timeline: this.timeline,
      settings,
      isLeaving,
    });
  }
}
