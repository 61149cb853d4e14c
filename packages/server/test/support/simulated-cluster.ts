// Several nodes on virtual time: cores as in production, joined by the real peer links over a simulated network, each
// with a view of the directory of its own.

import { createSilentLogger } from "@moor/runtime";
import { VirtualRuntime } from "@moor/testkit";
import { bootstrapKnowledge } from "../../src/bootstrap-knowledge.ts";
import type { NodeRecord, ShardId, ShardRecord, TunnelRecord } from "../../src/directory/directory.ts";
import { createPlacementKnowledge, replicaPlacements } from "../../src/entry/placement-knowledge.ts";
import { replicaTenants } from "../../src/entry/tenant-directory.ts";
import { applyChange } from "../../src/moves/apply-change.ts";
import { encodePlacements } from "../../src/moves/placement-message.ts";
import { NodeCore, type NodeKnowledge } from "../../src/node-core.ts";
import { createMetrics } from "../../src/operator/metrics.ts";
import { answerFacts } from "../../src/peer/facts-message.ts";
import type { LinkEntry } from "../../src/peer/link-ports.ts";
import type { EntryId } from "../../src/peer/peer-link.ts";
import { encodeTopology, HeardTopology, readTopology } from "../../src/peer/topology-message.ts";
import { replicaTopology } from "../../src/peer/topology.ts";
import { createPeerNetwork } from "../../src/peer/transport/create-peer-network.ts";
import type { Peer, PeerNetwork } from "../../src/peer/transport/peer-network.ts";
import { FakeExchange, type FakeRequest } from "./fake-exchange.ts";
import { FakeReplica } from "./fake-replica.ts";
import { LaggingReplica } from "./lagging-replica.ts";
import { SimulatedNetwork } from "./simulated-network.ts";

/** A node of the cluster: shards it runs, or a bootstrap entry. */
export interface ClusterNodeSpec {
  readonly id: string;
  readonly shards: readonly string[];
  readonly isBootstrap?: boolean;
  /** Versions of the peer link it speaks. Default: all that this build does. */
  readonly versions?: readonly number[];
}

export interface SimulatedClusterOptions {
  readonly seed?: number;
  readonly nodes: readonly ClusterNodeSpec[];
  readonly isCorrecting?: boolean;
  /** Makes what holds links at a node with a replica. Revisions are then times, as generations need. */
  readonly createLinks?: (
    core: NodeCore,
    node: ClusterNode,
    replica: LaggingReplica,
    cluster: SimulatedCluster,
  ) => LinkEntry;
}

/** One running incarnation of a node. */
export class ClusterNode {
  readonly spec: ClusterNodeSpec;
  readonly incarnation: EntryId;
  readonly knowledge: NodeKnowledge;
  readonly core: NodeCore;
  readonly network: PeerNetwork;
  readonly replica: LaggingReplica | undefined;
  /** Requests whose answers this process would write. */
  readonly exchanges = new Set<FakeExchange>();

  constructor(cluster: SimulatedCluster, spec: ClusterNodeSpec, incarnation: EntryId) {
    const { runtime } = cluster;
    const logger = createSilentLogger();
    this.spec = spec;
    this.incarnation = incarnation;
    this.network = createPeerNetwork({
      self: { nodeId: spec.id, incarnation },
      residency: "global",
      transport: cluster.network.transport(spec.id),
      ...(spec.versions === undefined ? {} : { versions: spec.versions }),
      runtime,
      logger,
    });
    const topology = new HeardTopology("global");
    this.replica = spec.isBootstrap === true ? undefined : new LaggingReplica(runtime, cluster.truth);
    this.replica?.readAll();
    const knowledge =
      this.replica === undefined
        ? bootstrapKnowledge(topology, () => this.network.peers().map((peer) => peer.nodeId), runtime)
        : replicaKnowledge(this.replica, cluster.truth);
    this.knowledge = knowledge;
    const { replica: shown } = this;
    const { createLinks } = cluster;
    const startRevision = cluster.truth.takeRevision();
    this.core = new NodeCore({
      nodeId: spec.id,
      incarnation,
      shards: spec.shards as readonly ShardId[],
      knowledge,
      network: this.network,
      isAnyoneAway: () =>
        cluster.truth.nodeRecords.some(({ id }) => id !== spec.id && this.network.peer(id) === undefined),
      handlers: {
        facts: (_peer, { head }, reply) => {
          if (this.replica !== undefined) reply(answerFacts(head, this.replica, knowledge.placements));
        },
        "want-topology": (peer) => this.#tellTopology(peer),
        topology: (_peer, { head }) => {
          if (topology.hear(readTopology(head))) {
            this.core.reach.shardsMoved(new Set(topology.liveShards()));
          }
        },
      },
      ...(createLinks === undefined || shown === undefined
        ? {}
        : { createLinks: (core) => createLinks(core, this, shown, cluster) }),
      startRevision: () => startRevision,
      metrics: createMetrics({ withProcess: false }),
      settings: { corsOrigins: [], isOpenAccessForced: false },
      isLeaving: () => false,
      runtime,
      logger,
    });
    if (this.replica === undefined) {
      this.network.onUp((peer) => void peer.send({ head: { t: "want-topology" } }));
    }
    const { replica } = this;
    replica?.onChange((change) => applyChange(change, { ...this.core.parts, replica }));
  }

  #tellTopology(peer: Peer): void {
    if (this.replica !== undefined) peer.send({ head: encodeTopology(this.replica) });
  }
}

export class SimulatedCluster {
  readonly runtime: VirtualRuntime;
  readonly network: SimulatedNetwork;
  readonly truth: FakeReplica;
  readonly createLinks: SimulatedClusterOptions["createLinks"];
  readonly #nodes = new Map<string, ClusterNode>();
  #requestCount = 0;
  #startCount = 0;

  constructor(options: SimulatedClusterOptions) {
    this.runtime = new VirtualRuntime(options.seed ?? 1);
    this.network = new SimulatedNetwork(this.runtime, { delayMs: 1, jitterMs: 3 });
    this.truth = new FakeReplica(this.runtime);
    this.truth.isCorrecting = options.isCorrecting ?? false;
    this.truth.isTimed = options.createLinks !== undefined;
    this.createLinks = options.createLinks;
    this.truth.shardRecords = options.nodes.flatMap(({ id, shards }) =>
      shards.map((shard): ShardRecord => shardRecord(shard, id)),
    );
    this.truth.nodeRecords = options.nodes.map(({ id }) => nodeRecord(id));
    for (const spec of options.nodes) this.start(spec);
  }

  /** Starts a node, or starts it anew. */
  start(spec: ClusterNodeSpec): void {
    this.#startCount += 1;
    const incarnation = this.#startCount.toString(16).padStart(16, "0") as EntryId;
    const node = new ClusterNode(this, spec, incarnation);
    this.#nodes.set(spec.id, node);
    void node.network.listen(spec.id, 1);
    node.network.setNodes(
      this.truth.nodeRecords
        .filter(({ id }) => id !== spec.id)
        .map(({ id }) => ({ id, internalUrl: `tcp://${id}:1` })),
    );
  }

  /** SIGKILL: nothing of the process is left, and its clients see their connections end. */
  crash(id: string): ClusterNodeSpec {
    const node = this.node(id);
    this.network.crash(id);
    void node.network.close();
    node.core.close();
    node.replica?.close();
    for (const exchange of node.exchanges) exchange.isGone = true;
    node.exchanges.clear();
    this.#nodes.delete(id);
    return node.spec;
  }

  node(id: string): ClusterNode {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new Error(`node ${id} is not running`);
    return node;
  }

  isRunning(id: string): boolean {
    return this.#nodes.has(id);
  }

  /** Sends a request to a node's public listener. */
  async send(id: string, request: FakeRequest): Promise<FakeExchange> {
    this.#requestCount += 1;
    const exchange = new FakeExchange(request, `req_${this.#requestCount}`);
    const node = this.node(id);
    node.exchanges.add(exchange);
    void node.core.entry.handle(exchange, () => true);
    await this.advance(0);
    return exchange;
  }

  /** A tunnel on `shard` with its keys, known to every node whose feed is not cut. */
  async tunnel(shard: string, fields: Partial<TunnelRecord> = {}) {
    const made = this.truth.addTunnel({ ...fields });
    this.truth.move(made.id, shard);
    const agent = this.truth.addKey("agent", made.id);
    const connector = this.truth.addKey("connector", made.id);
    await this.advance(0);
    const tunnel = this.truth.tunnel(made.id);
    if (tunnel === undefined) throw new Error("no tunnel");
    return { tunnel, agentKey: agent.text, agentKeyId: agent.id, connectorKey: connector.text };
  }

  /** A move as the mover makes it at node `at`: committed, applied there, pushed to the others in reach. */
  move(at: string, tenant: string, shard: string): void {
    this.truth.move(tenant, shard);
    const record = this.truth.tunnel(tenant) ?? this.truth.home(tenant);
    if (record === undefined || !this.isRunning(at)) return;
    const { core } = this.node(at);
    const news = { tenant: record.id, placement: record.placement };
    core.applyNews(news);
    core.reach.broadcast(encodePlacements([news]));
  }

  advance(byMs: number): Promise<void> {
    return this.runtime.advanceAsync(byMs);
  }
}

function replicaKnowledge(replica: LaggingReplica, truth: FakeReplica): NodeKnowledge {
  return {
    tenants: () => replicaTenants(replica),
    placements: createPlacementKnowledge(replicaPlacements(replica)),
    topology: replicaTopology(replica),
    ring: replica,
    isCorrecting: () => false,
    wasSeen: (tunnel) => replica.tunnel(tunnel)?.isSeen,
    noteSeen: (tunnel) => truth.markSeen(tunnel),
    isKeyRevoked: (keyId) => replica.key(keyId)?.isRevoked ?? false,
    isBoxKeyReplaced: () => false,
  };
}

function shardRecord(shard: string, node: string): ShardRecord {
  return {
    id: shard as ShardId,
    node,
    publicHost: `${shard}.moor.localhost`,
    state: "live",
    leaseCounter: 1,
  };
}

function nodeRecord(id: string): NodeRecord {
  return {
    id,
    incarnation: "0",
    internalUrl: `tcp://${id}:1`,
    roles: ["entry", "shard"],
    version: "0.1.0",
    state: "live",
    startRevision: 1,
  };
}
