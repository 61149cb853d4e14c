// A node that is an entry only and has no directory: an edge in another trust zone, or too small for a replica.
//
// Spec: R24; design "Shape" (bootstrap). It serves as soon as a peer told it the topology.

import { ConfigError } from "@moor/runtime";
import { bootstrapKnowledge } from "./bootstrap-knowledge.ts";
import { handleLinkRoute } from "./entry/link/link-routes.ts";
import { NodeCore } from "./node-core.ts";
import { NodeNetwork } from "./node-network.ts";
import type { NodeOptions } from "./node-options.ts";
import type { MoorNode } from "./node.ts";
import { createMetrics, type Metrics } from "./operator/metrics.ts";
import type { EntryId } from "./peer/peer-link.ts";
import { HeardTopology, readTopology } from "./peer/topology-message.ts";
import { openPublicListener, publicEndpoint, type PublicListener } from "./public-listener.ts";
import { CLOSE_GRACE_MS } from "./server-limits.ts";

/** Residency of a configuration that names none. */
const RESIDENCY_DEFAULT = "global";

/** Starts a bootstrap entry. Throws ConfigError without peers to ask. */
export async function startBootstrapNode(options: NodeOptions, incarnation: EntryId): Promise<MoorNode> {
  const { internal, node } = options;
  if (internal === undefined || (internal.peers ?? []).length === 0) {
    throw new ConfigError("internal.peers", "none", "at least one node to ask, {id, url}");
  }
  if (options.takeOver !== undefined) {
    throw new ConfigError(
      "--take-over",
      "a bootstrap entry",
      "a node with a data directory; run a second entry beside it",
    );
  }
  if (node.shards.length > 0)
    throw new ConfigError("shards", "some", "none: a bootstrap entry owns no tenants");
  const bootstrap = new BootstrapNode(options, incarnation, internal);
  try {
    await bootstrap.start();
  } catch (error) {
    await bootstrap.close(0);
    throw error;
  }
  return {
    id: node.id,
    endpoint: bootstrap.endpoint,
    operatorUrl: "",
    internalUrl: bootstrap.internalUrl,
    dataDir: options.dataDir,
    replaced: new Promise(() => {}),
    ordered: new Promise(() => {}),
    close: ({ graceMs = CLOSE_GRACE_MS } = {}) => bootstrap.close(graceMs),
  };
}

class BootstrapNode {
  internalUrl = "";
  readonly #options: NodeOptions;
  readonly #metrics: Metrics = createMetrics();
  readonly #topology: HeardTopology;
  readonly #network: NodeNetwork;
  readonly #core: NodeCore;
  #listener: PublicListener | undefined;
  #isReady = false;
  #isLeaving = false;
  #closing: Promise<void> | undefined;

  constructor(options: NodeOptions, incarnation: EntryId, internal: NonNullable<NodeOptions["internal"]>) {
    const { node, runtime, logger, residency = RESIDENCY_DEFAULT } = options;
    this.#options = options;
    this.#topology = new HeardTopology(residency);
    this.#network = new NodeNetwork({
      internal,
      nodeId: node.id,
      incarnation,
      residency,
      countEnd: (end) => this.#metrics.peerLinkEnds.inc(end),
      runtime,
      logger,
    });
    this.#core = new NodeCore({
      nodeId: node.id,
      incarnation,
      shards: [],
      knowledge: bootstrapKnowledge(this.#topology, () => this.#network.reachable(), runtime),
      network: this.#network.network,
      isAnyoneAway: () => this.#network.isAnyoneAway(),
      handlers: { topology: (_peer, { head }) => this.#hear(head) },
      metrics: this.#metrics,
      settings: {
        corsOrigins: options.corsOrigins ?? [],
        isOpenAccessForced: options.isOpenAccessForced ?? false,
      },
      isLeaving: () => this.#isLeaving,
      runtime,
      logger,
    });
    this.#network.network.onUp((peer) => void peer.send({ head: { t: "want-topology" } }));
  }

  get endpoint(): string {
    return publicEndpoint(this.#options, this.#listener);
  }

  async start(): Promise<void> {
    this.internalUrl = await this.#network.listen();
    this.#network.setNodes([]);
    this.#listener = await openPublicListener(this.#options);
    this.#listener.admit({
      isLeaving: () => this.#isLeaving,
      // Without a replica there is nothing to verify boxes and apps with.
      handle: (exchange) =>
        handleLinkRoute(undefined, exchange) ?? this.#core.entry.handle(exchange, () => this.#isReady),
    });
    const { node, logger } = this.#options;
    logger.info("node-ready", { node: node.id, endpoint: this.endpoint, mode: "bootstrap" });
  }

  close(graceMs: number): Promise<void> {
    this.#closing ??= this.#leave(graceMs);
    return this.#closing;
  }

  /** A peer says who runs what: from the first word on this entry can serve. */
  #hear(head: Parameters<typeof readTopology>[0]): void {
    if (!this.#topology.hear(readTopology(head))) return;
    this.#network.setNodes(this.#topology.nodes());
    this.#isReady = !this.#isLeaving;
    this.#core.reach.shardsMoved(new Set(this.#topology.liveShards()));
  }

  async #leave(graceMs: number): Promise<void> {
    this.#isReady = false;
    this.#isLeaving = true;
    await this.#core.entry.drain(graceMs);
    await this.#listener?.close();
    this.#core.close();
    await this.#network.network.close();
    this.#options.logger.info("node-stopped");
  }
}
