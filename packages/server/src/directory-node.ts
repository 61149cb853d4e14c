// A node with a directory: entry, shards, replica, leases, jobs, moves, operator listener.
//
// Spec: T1, R22; design "Shape", "Moves". Invariants: those of node.ts.

import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { isLoopbackHost } from "@moor/protocol";
import type { Change, Directory, Replica } from "./directory/directory.ts";
import { mintMoveId } from "./directory/operations/move-operations.ts";
import { ensureNodeSecret, NODE_SECRET_FILE } from "./directory/node-secret.ts";
import { openDirectory, type DirectoryLocation } from "./directory/open-directory.ts";
import type { OpenDirectory } from "./directory/sqlite-directory.ts";
import { directoryKnowledge } from "./directory-knowledge.ts";
import { askMarks, createDrainDesk } from "./drains/drain-desk.ts";
import { NO_LINKS } from "./drains/link-drain-port.ts";
import { NodeDrain, type LeaveOrder } from "./drains/node-drain.ts";
import type { SeenRecorder } from "./entry/seen-recorder.ts";
import { openLeavingListener } from "./handover/leaving-listener.ts";
import { deleteProcessFile, writeProcessFile } from "./handover/process-file.ts";
import { takePort } from "./handover/take-port.ts";
import type { HttpExchange } from "./http/http-exchange.ts";
import { LeaseRenewer } from "./liveness/lease-renewer.ts";
import { LeaseWatch } from "./liveness/lease-watch.ts";
import { NodeRegistrar } from "./liveness/node-registrar.ts";
import { StartRevision } from "./liveness/start-revision.ts";
import { applyChange } from "./moves/apply-change.ts";
import { createMover } from "./moves/create-mover.ts";
import { gatherTimeline } from "./moves/gather-timeline.ts";
import { MoveJobRunner } from "./moves/move-job-runner.ts";
import type { Mover } from "./moves/mover.ts";
import { NodeCore, type NodeKnowledge } from "./node-core.ts";
import { NodeLinks } from "./node-links.ts";
import { NodeNetwork } from "./node-network.ts";
import type { DirectoryOption, NodeOptions } from "./node-options.ts";
import type { MoorNode } from "./node.ts";
import { createMetrics, readAtScrape, readLabelsAtScrape, type Metrics } from "./operator/metrics.ts";
import { loadOperatorToken, writeOperatorFile } from "./operator/operator-file.ts";
import { createOperatorListener, type OperatorListener } from "./operator/operator-listener.ts";
import { answerFacts } from "./peer/facts-message.ts";
import type { EntryId } from "./peer/peer-link.ts";
import { encodeTopology } from "./peer/topology-message.ts";
import type { Peer } from "./peer/transport/peer-network.ts";
import {
  answerAnyway,
  listenerUrl,
  openPublicListener,
  publicEndpoint,
  turnAway,
  type PublicListener,
} from "./public-listener.ts";
import { CLOSE_GRACE_MS, PRESENCE_HOLD_MS } from "./server-limits.ts";

/** Starts a node on its directory. Throws ConfigError for what cannot be bound, opened or used. */
export async function startDirectoryNode(
  options: NodeOptions,
  directory: Exclude<DirectoryOption, { readonly kind: "none" }>,
  incarnation: EntryId,
): Promise<MoorNode> {
  const { takeOver } = options;
  const listener = takeOver === undefined ? undefined : await takePort(options, takeOver.waitMs);
  let opened: OpenDirectory | undefined;
  let node: DirectoryNode | undefined;
  try {
    opened = await openNodeDirectory(options, directory);
    // Opening the directory minted it where none is given.
    const secretFile = join(options.dataDir, NODE_SECRET_FILE);
    const nodeSecret = options.nodeSecret ?? ensureNodeSecret(secretFile, options.runtime);
    node = new DirectoryNode({ ...options, nodeSecret }, incarnation, opened, listener);
    await node.start();
  } catch (error) {
    await node?.close({ graceMs: 0 });
    if (node === undefined) await Promise.all([opened?.directory.close(), listener?.close()]);
    throw error;
  }
  return {
    id: options.node.id,
    endpoint: node.endpoint,
    operatorUrl: node.operatorUrl,
    internalUrl: node.internalUrl,
    dataDir: options.dataDir,
    replaced: node.replaced,
    ordered: node.ordered,
    close: (order = {}) => node.close({ graceMs: CLOSE_GRACE_MS, ...order }),
  };
}

function openNodeDirectory(
  options: NodeOptions,
  directory: Exclude<DirectoryOption, { readonly kind: "none" }>,
): Promise<OpenDirectory> {
  const location: DirectoryLocation = { ...directory, dir: options.dataDir };
  return openDirectory(location, {
    runtime: options.runtime,
    logger: options.logger,
    ...(options.residency === undefined ? {} : { residency: options.residency }),
    ...(options.nodeSecret === undefined ? {} : { nodeSecret: options.nodeSecret }),
    ...(options.isCorrectionsOnAtFirst === undefined
      ? {}
      : { isCorrectingAtFirst: options.isCorrectionsOnAtFirst }),
  });
}

class DirectoryNode {
  internalUrl = "";
  operatorUrl = "";
  readonly #options: NodeOptions & { readonly nodeSecret: Uint8Array };
  readonly #incarnation: EntryId;
  readonly #directory: Directory;
  readonly #replica: Replica;
  readonly #metrics: Metrics = createMetrics();
  readonly #seen: SeenRecorder;
  readonly #network: NodeNetwork | undefined;
  readonly #startRevision: StartRevision;
  readonly #core: NodeCore;
  #links: NodeLinks | undefined;
  readonly #drain: NodeDrain;
  readonly #drains: ReturnType<typeof createDrainDesk>;
  readonly #mover: Mover;
  readonly #leases: LeaseRenewer;
  readonly #leaseWatch: LeaseWatch;
  readonly #jobs: MoveJobRunner;
  readonly #wantTopology = new Set<Peer>();
  readonly #nodeOfShard = new Map<string, string>();
  #registrar: NodeRegistrar | undefined;
  #publicListener: PublicListener | undefined;
  #operatorListener: OperatorListener | undefined;
  #stopListening: (() => void) | undefined;
  #isReady = false;
  #isLeaving = false;
  #isGone = false;
  #closing: Promise<void> | undefined;
  readonly #replaced = Promise.withResolvers<void>();

  /** @param listener the public listener where it is there already; the node closes it */
  constructor(
    options: NodeOptions & { readonly nodeSecret: Uint8Array },
    incarnation: EntryId,
    { directory, replica }: OpenDirectory,
    listener: PublicListener | undefined,
  ) {
    const { node, runtime, logger, internal } = options;
    this.#publicListener = listener;
    this.#options = options;
    this.#incarnation = incarnation;
    this.#directory = directory;
    this.#replica = replica;
    const { knowledge, seen } = directoryKnowledge(directory, replica, { runtime, logger });
    this.#seen = seen;
    const residency = replica.residency();
    this.#network =
      internal === undefined
        ? undefined
        : new NodeNetwork({
            internal,
            nodeId: node.id,
            incarnation,
            residency,
            countEnd: (end) => this.#metrics.peerLinkEnds.inc(end),
            runtime,
            logger,
          });
    this.#drain = this.#createDrain();
    this.#drains = createDrainDesk({
      selfNode: node.id,
      drain: this.#drain,
      nodeOf: (shard) => replica.shard(shard)?.node,
      ask: (nodeId, head) => this.#core.reach.ask(nodeId, head),
      logger,
    });
    const lastStart = replica.nodes().find(({ id }) => id === node.id)?.startRevision ?? 0;
    this.#startRevision = new StartRevision(lastStart, runtime);
    this.#core = this.#createCore(knowledge);
    this.#mover = createMover({
      directory,
      topology: knowledge.topology,
      selfNode: node.id,
      apply: (news) => this.#core.applyNews(news),
      ask: (nodeId, head, waitMs) => this.#core.reach.ask(nodeId, head, waitMs),
      broadcast: (head) => this.#core.reach.broadcast(head),
      mintMoveId: () => mintMoveId(runtime),
      runtime,
      logger,
    });
    const identity = { node: node.id, incarnation, runtime, logger };
    const shards = node.shards.map(({ id }) => id);
    this.#leases = new LeaseRenewer({
      ...identity,
      directory,
      replica,
      shards,
      onReplaced: () => this.#replaced.resolve(),
    });
    this.#leaseWatch = new LeaseWatch({ replica, runtime });
    this.#jobs = new MoveJobRunner({ ...identity, directory, replica, mover: this.#mover });
  }

  get replaced(): Promise<void> {
    return this.#replaced.promise;
  }

  get ordered(): Promise<void> {
    return this.#drain.ordered;
  }

  get endpoint(): string {
    return publicEndpoint(this.#options, this.#publicListener);
  }

  async start(): Promise<void> {
    this.internalUrl = (await this.#network?.listen()) ?? "";
    this.#stopListening = this.#replica.onChange((change) => this.#handleChange(change));
    this.#connectNodes();
    this.#leaseWatch.start();
    this.#registrar = this.#createRegistrar();
    await this.#registrar.start();
    this.#countAtScrape();
    this.#publicListener ??= await openPublicListener(this.#options);
    await this.#openOperatorListener();
    writeProcessFile(this.#options.dataDir);
    this.#isReady = true;
    this.#publicListener.admit({
      isLeaving: () => this.#isLeaving,
      handle: (exchange) => this.#handle(exchange),
      ...(this.#links === undefined ? {} : { upgrades: this.#links.upgrades }),
    });
    this.#drain.ready();
    this.#logReady();
  }

  close(order: LeaveOrder): Promise<void> {
    this.#closing ??= this.#leave(order);
    return this.#closing;
  }

  async #leave(order: LeaveOrder): Promise<void> {
    const { logger, node } = this.#options;
    this.#isReady = false;
    this.#isLeaving = true;
    const { calls, polls } = this.#core.entry;
    logger.info("node-leaving", { node: node.id, callsHeld: calls.size, pollsHeld: polls.size });
    const successor =
      order.isTakenOver === true
        ? await openLeavingListener(this.#options, (exchange) => this.#handle(exchange))
        : undefined;
    await this.#drain.leave(order, {
      stopAccepting: async () => this.#publicListener?.stopAccepting(),
      finishCalls: (graceMs) => this.#core.entry.drain(graceMs),
      finishOneShots: async (graceMs) => this.#links?.table.commands.finishOneShots(graceMs),
    });
    this.#drain.close();
    // What is still being written reaches its peers while the rest closes: the next process waits for the directory.
    const flushed = Promise.all([this.#publicListener?.close(), successor?.close()]);
    await this.#links?.close();
    this.#registrar?.stop();
    await this.#jobs.stop();
    this.#leases.stop();
    this.#leaseWatch.stop();
    await this.#operatorListener?.close();
    this.#stopListening?.();
    this.#isGone = true;
    this.#core.close();
    await this.#network?.network.close();
    await this.#seen.close();
    await this.#directory.leaveNode({ id: node.id, incarnation: this.#incarnation }).catch(() => {
      logger.warn("leave-not-recorded", { node: node.id });
    });
    deleteProcessFile(this.#options.dataDir);
    await this.#directory.close();
    await flushed;
    logger.info("node-stopped", { node: node.id });
  }

  async #handle(exchange: HttpExchange): Promise<void> {
    if (!this.#isGone)
      return this.#links?.handle(exchange) ?? this.#core.entry.handle(exchange, () => this.#isReady);
    if (!answerAnyway(exchange)) turnAway(exchange);
  }

  #createRegistrar(): NodeRegistrar {
    const { node, version, runtime, logger } = this.#options;
    return new NodeRegistrar({
      directory: this.#directory,
      registration: {
        id: node.id,
        incarnation: this.#incarnation,
        shards: node.shards,
        internalUrl: this.internalUrl,
        roles: node.roles,
        ...(version === undefined ? {} : { version }),
      },
      onRegistered: ({ startRevision }) => {
        this.#startRevision.register(startRevision);
        this.#leases.start();
        this.#jobs.start();
      },
      runtime,
      logger,
    });
  }

  #createDrain(): NodeDrain {
    const { node, dataDir, publicFd, runtime, logger } = this.#options;
    return new NodeDrain({
      node: node.id,
      shards: node.shards.map(({ id }) => id),
      dataDir,
      links: () => this.#links?.table.drain ?? NO_LINKS,
      isServedMeanwhile: () => this.#isAnotherEntryInReach(),
      isPortQueued: publicFd !== undefined,
      askOthers: (salt, marks) => {
        const nodes = this.#network?.reachable() ?? [];
        return askMarks(nodes, (nodeId, head) => this.#core.reach.ask(nodeId, head), salt, marks);
      },
      busyMs: () => performance.eventLoopUtilization().active,
      runtime,
      logger,
    });
  }

  /** Whether clients that dial the endpoint may get to another node now. */
  #isAnotherEntryInReach(): boolean {
    const reachable = new Set(this.#network?.reachable());
    return this.#replica
      .nodes()
      .some(({ id, state, roles }) => state === "live" && roles.includes("entry") && reachable.has(id));
  }

  #createCore(knowledge: ReturnType<typeof directoryKnowledge>["knowledge"]): NodeCore {
    const { node, runtime, logger } = this.#options;
    return new NodeCore({
      nodeId: node.id,
      incarnation: this.#incarnation,
      shards: node.shards.map(({ id }) => id),
      knowledge,
      network: this.#network?.network,
      isAnyoneAway: () => this.#network?.isAnyoneAway() ?? false,
      handlers: {
        facts: (_peer, { head }, reply) => reply(answerFacts(head, this.#replica, knowledge.placements)),
        "want-topology": (peer) => {
          this.#wantTopology.add(peer);
          peer.send({ head: encodeTopology(this.#replica) });
        },
        ...this.#drains.handlers,
      },
      linkWatch: this.#drain,
      createLinks: (core) => {
        this.#links = this.#createLinks(core, knowledge);
        return this.#links.table;
      },
      metrics: this.#metrics,
      settings: {
        corsOrigins: this.#options.corsOrigins ?? [],
        isOpenAccessForced: this.#options.isOpenAccessForced ?? false,
      },
      isLeaving: () => this.#isLeaving,
      startRevision: () => this.#startRevision.get(),
      startHoldMs: Math.max(PRESENCE_HOLD_MS, this.#drain.returningMs),
      runtime,
      logger,
    });
  }

  #createLinks(core: NodeCore, knowledge: NodeKnowledge): NodeLinks {
    return new NodeLinks({
      options: this.#options,
      nodeSecret: this.#options.nodeSecret,
      incarnation: this.#incarnation,
      directory: this.#directory,
      replica: this.#replica,
      knowledge,
      core,
      watch: this.#drain,
      isLoopbackListener: () => isLoopbackHost(this.#publicListener?.address ?? ""),
      spreadMs: () => this.#drain.spreadMs,
      metrics: this.#metrics,
    });
  }

  #handleChange(change: Change): void {
    if (change.kind === "shard" || change.kind === "residency") this.#links?.hostsChanged();
    applyChange(change, { ...this.#core.parts, replica: this.#replica });
    const { kind, id } = change;
    if (kind === "node") this.#connectNodes();
    if (kind === "shard") this.#shardChanged(id);
    if (kind === "node" || kind === "shard" || kind === "token-key" || kind === "residency")
      this.#tellTopology();
  }

  /** Leases change every few seconds: only a shard that came to another node concerns what waits for it. */
  #shardChanged(id: string): void {
    const shard = this.#replica.shard(id);
    if (shard === undefined || this.#nodeOfShard.get(id) === shard.node) return;
    this.#nodeOfShard.set(id, shard.node);
    this.#core.reach.shardsMoved(new Set([shard.id]));
  }

  #connectNodes(): void {
    const nodes = this.#replica.nodes().filter((node) => node.state === "live" && node.internalUrl !== "");
    this.#network?.setNodes(nodes.map(({ id, internalUrl }) => ({ id, internalUrl })));
  }

  /** Nodes without a replica hear of each change. */
  #tellTopology(): void {
    for (const peer of this.#wantTopology) {
      if (peer.isUp) peer.send({ head: encodeTopology(this.#replica) });
      else this.#wantTopology.delete(peer);
    }
  }

  async #openOperatorListener(): Promise<void> {
    const { dataDir, operatorHost, operatorPort, runtime, logger, optionNames } = this.#options;
    const token = loadOperatorToken(dataDir, runtime);
    const listener = createOperatorListener({
      directory: this.#directory,
      replica: this.#replica,
      mover: this.#mover,
      drains: this.#drains.desk,
      timeline: { timeline: (tenant) => this.#timeline(tenant) },
      homeStatus: (home) => this.#core.homeStatus(home),
      leases: this.#leaseWatch,
      metrics: this.#metrics,
      token,
      runtime,
      logger,
      publicUrl: () => this.endpoint,
      isReady: () => this.#isReady,
      ...(optionNames === undefined ? {} : { portOption: optionNames.operatorPort }),
    });
    const bound = await listener.listen(operatorHost, operatorPort);
    this.#operatorListener = listener;
    this.operatorUrl = listenerUrl(operatorHost, bound.port);
    writeOperatorFile(dataDir, { url: this.operatorUrl, token });
  }

  #timeline(tenant: string): ReturnType<typeof gatherTimeline> {
    return gatherTimeline(tenant, {
      selfNode: this.#options.node.id,
      own: this.#core.timeline,
      nodes: () =>
        this.#replica
          .nodes()
          .filter((node) => node.state === "live")
          .map((node) => node.id),
      ask: (nodeId, head) => this.#core.reach.ask(nodeId, head),
    });
  }

  /** Gauges that would cost something to keep are read when somebody asks. */
  #countAtScrape(): void {
    readAtScrape(this.#metrics.callsQueued, () => {
      let callsQueued = 0;
      for (const shard of this.#core.shards.values()) callsQueued += shard.gauges().callsQueued;
      return callsQueued;
    });
    readAtScrape(this.#metrics.linkSignatures, () => this.#links?.table.signatureCount ?? 0);
    readAtScrape(this.#metrics.acceptRate, () => this.#drain.meter.acceptRate);
    readAtScrape(this.#metrics.callBytesHeld, () => this.#core.bodies.heldBytes);
    readLabelsAtScrape(this.#metrics.homeLinks, () => {
      const links = { box: 0, app: 0 };
      for (const homes of this.#core.homes.values()) {
        const { boxLinks, appLinks } = homes.gauges();
        links.box += boxLinks;
        links.app += appLinks;
      }
      return links;
    });
  }

  #logReady(): void {
    const { node, logger, dataDir } = this.#options;
    const shards = node.shards.map(({ id }) => id).join(",");
    const { endpoint, operatorUrl, internalUrl } = this;
    logger.info("node-ready", {
      node: node.id,
      endpoint,
      operator: operatorUrl,
      internal: internalUrl,
      dataDir,
      shards,
    });
  }
}
