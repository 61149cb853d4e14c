// The link plane of a node with a directory: its table of links, its upgrades, its routes.
//
// Spec: L1–L3, L21–L25, L28. Design: "Links"; docs/adr/0010-links-at-the-entry.md.

import type { Directory, Replica } from "./directory/directory.ts";
import type { LinkWatch } from "./drains/link-drain-port.ts";
import { parseProxies } from "./entry/client-address.ts";
import { HomeSightings } from "./entry/home-sightings.ts";
import { createHelloSigner } from "./entry/link/hello-signer.ts";
import { LinkHosts } from "./entry/link/link-hosts.ts";
import { BUCKET_KEYS_MAX, ENROLMENTS, HOME_ONE_SHOTS, PING_INTERVAL_MS } from "./entry/link/link-limits.ts";
import { createLinkListener } from "./entry/link/link-listener.ts";
import { handleLinkRoute, type LinkRoutes } from "./entry/link/link-routes.ts";
import { LinkTable } from "./entry/link/link-table.ts";
import { verifySignature } from "./entry/link/proof-verifier.ts";
import { RateBuckets } from "./entry/link/rate-buckets.ts";
import {
  deriveUnknownHomeKey,
  replicaHomePlacements,
  replicaIdentities,
} from "./entry/link/replica-links.ts";
import type { HttpExchange } from "./http/http-exchange.ts";
import type { UpgradeHandler } from "./http/http-listener.ts";
import type { NodeCore, NodeKnowledge } from "./node-core.ts";
import type { NodeOptions } from "./node-options.ts";
import type { Metrics } from "./operator/metrics.ts";
import type { EntryId } from "./peer/peer-link.ts";

export interface NodeLinksOptions {
  readonly options: NodeOptions;
  readonly incarnation: EntryId;
  readonly directory: Directory;
  readonly replica: Replica;
  readonly knowledge: Pick<NodeKnowledge, "placements">;
  readonly core: Pick<NodeCore, "reach">;
  /** 32 bytes that every node of the residency has. */
  readonly nodeSecret: Uint8Array;
  readonly watch: LinkWatch;
  /** Whether only this machine reaches the public listener. Asked once that is bound. */
  readonly isLoopbackListener: () => boolean;
  /** Over how many milliseconds clients are asked to come back, should this node end. Spec L24, L28. */
  readonly spreadMs: () => number;
  readonly metrics: Metrics;
}

export class NodeLinks {
  readonly table: LinkTable;
  /** What the public listener hands upgrades to. */
  readonly upgrades: UpgradeHandler;
  readonly #hosts: LinkHosts;
  readonly #routes: LinkRoutes;
  readonly #sightings: HomeSightings;

  constructor(given: NodeLinksOptions) {
    const { options, directory, replica } = given;
    const { runtime, logger } = options;
    this.#hosts = new LinkHosts({
      base: options.baseHost,
      shards: () => replica.shards(),
      defaultShard: () => replica.defaultShard(),
    });
    this.#sightings = new HomeSightings({ directory, replica, runtime, logger });
    this.table = this.#createTable(given);
    const proxies = parseProxies(options.trustedProxies ?? []);
    if (proxies === undefined)
      throw new Error("invariant broken: C2 the schema takes no proxy that is no address");
    const { table } = this;
    const { isLoopbackListener } = given;
    this.upgrades = createLinkListener({ table, isLoopbackListener, proxies, runtime });
    const { context } = table;
    this.#routes = {
      table,
      requests: { context, allowances: new RateBuckets(HOME_ONE_SHOTS, BUCKET_KEYS_MAX) },
      enrolments: { context, directory, proxies, allowances: new RateBuckets(ENROLMENTS, BUCKET_KEYS_MAX) },
    };
  }

  /** Serves a request of the link plane; undefined when its path is none of it. */
  handle(exchange: HttpExchange): Promise<void> | undefined {
    return handleLinkRoute(this.#routes, exchange);
  }

  /** Shards, or the default one, changed. */
  hostsChanged(): void {
    this.#hosts.changed();
  }

  /** Ends what is left. */
  async close(): Promise<void> {
    this.table.destroyAll();
    this.table.close();
    await this.#sightings.close();
  }

  #createTable({ options, incarnation, replica, knowledge, core, ...given }: NodeLinksOptions): LinkTable {
    const { runtime, logger } = options;
    const { placements } = knowledge;
    const unknownHomeKey = deriveUnknownHomeKey(given.nodeSecret, replica.residency());
    return new LinkTable({
      entry: incarnation,
      runtime,
      logger,
      metrics: given.metrics.linkPlane,
      hosts: this.#hosts,
      identities: replicaIdentities(replica),
      placements: replicaHomePlacements(replica, placements, unknownHomeKey),
      sightings: this.#sightings,
      signer: createHelloSigner(() => replica.serviceKeys()),
      verify: verifySignature,
      shardPort: (shard) => core.reach.homeShardPort(shard),
      catchUp: (waitMs) => replica.catchUp(waitMs),
      watch: given.watch,
      spreadMs: given.spreadMs,
      pingMs: options.linkPingMs ?? PING_INTERVAL_MS,
    });
  }
}
