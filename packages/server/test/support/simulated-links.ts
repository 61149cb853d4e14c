// Links on virtual time: the entries of a simulated cluster with the part that holds links, and an internet between them
// and their clients on which sockets break, go silent, or meet whichever node is up.

import { createHash } from "node:crypto";
import type { HomeId } from "@moor/protocol";
import { createSilentLogger } from "@moor/runtime";
import type { LinkUrl } from "../../../client/src/link/link-endpoint.ts";
import type {
  LinkDialler,
  LinkSocket as ClientSocket,
  SocketEnd,
  SocketSink,
} from "../../../client/src/link/link-socket.ts";
import type { ShardId } from "../../src/directory/directory.ts";
import { NO_LINK_WATCH } from "../../src/drains/link-drain-port.ts";
import { createHelloSigner } from "../../src/entry/link/hello-signer.ts";
import { LinkHosts } from "../../src/entry/link/link-hosts.ts";
import type { LinkMetrics, LinkRole } from "../../src/entry/link/link-metrics.ts";
import type { LinkSession, LinkSocket as ServerSocket } from "../../src/entry/link/link-session.ts";
import { LinkTable } from "../../src/entry/link/link-table.ts";
import type { NodeCore } from "../../src/node-core.ts";
import { makeKeyPair } from "./entry-links.ts";
import type { LaggingReplica } from "./lagging-replica.ts";
import { SimulatedCluster, type ClusterNode, type ClusterNodeSpec } from "./simulated-cluster.ts";

/** Host that every client is configured with. */
export const LINK_BASE = "moor.localhost";

/** One way between a client and an entry. Milliseconds. */
const DELAY_MS = 3;
/** A dial that meets nobody ends after this. Milliseconds. */
const REFUSED_MS = 20;

/** What the world sees of a socket: every text as it is written, before it may be lost. */
export interface SocketWatch {
  toClient(socket: SimulatedSocket, text: string): void;
  toEntry(socket: SimulatedSocket, text: string): void;
}

/** One connection between a client and the entry of a node. */
export class SimulatedSocket implements ServerSocket {
  readonly role: LinkRole;
  readonly node: string;
  /** Client process it belongs to. */
  readonly owner: string;
  readonly waitingBytes = 0;
  session: LinkSession | undefined;
  /** Nothing arrives any more, and nobody is told. */
  isDark = false;
  #hasClientEnded = false;
  #hasEntryEnded = false;
  readonly #links: SimulatedLinks;
  readonly #sink: SocketSink;

  constructor(
    links: SimulatedLinks,
    at: { readonly role: LinkRole; readonly node: string; readonly owner: string },
    sink: SocketSink,
  ) {
    this.#links = links;
    this.role = at.role;
    this.node = at.node;
    this.owner = at.owner;
    this.#sink = sink;
  }

  get isOpen(): boolean {
    return !this.#hasEntryEnded;
  }

  // What the entry does with it.

  sendText(text: string): boolean {
    if (this.#hasEntryEnded) return false;
    this.#links.watch.toClient(this, text);
    this.#later(() => {
      if (!this.#hasClientEnded) this.#sink.onMessage(text);
    });
    return true;
  }

  closeWith(code: number, reason: string): void {
    this.#later(() => {
      this.endAtClient({ kind: "closed", code, reason });
      this.#later(() => this.#endAtEntry());
    });
  }

  destroy(): void {
    this.#links.cluster.runtime.schedule(0, () => this.#endAtEntry());
    this.#later(() => this.endAtClient({ kind: "closed", code: 1006, reason: "" }));
  }

  // What the client does with it.

  readonly clientEnd: ClientSocket = {
    bufferedBytes: 0,
    send: (text) => {
      if (this.#hasClientEnded) return;
      this.#links.watch.toEntry(this, text);
      this.#later(() => {
        if (!this.#hasEntryEnded) this.session?.receive(Buffer.from(text), false);
      });
    },
    close: (code) => {
      this.#later(() => this.#endAtEntry());
      this.#later(() => this.endAtClient({ kind: "closed", code, reason: "" }));
    },
    destroy: () => {
      this.#hasClientEnded = true;
      this.#later(() => this.#endAtEntry());
    },
  };

  /** The connection breaks, and both sides hear of it. */
  break(): void {
    this.#later(() => this.#endAtEntry());
    this.#later(() => this.endAtClient({ kind: "closed", code: 1006, reason: "" }));
  }

  /** The client's process is gone: it hears nothing more, and the entry only if the way there is not dark. */
  clientVanished(): void {
    this.#hasClientEnded = true;
    this.#later(() => this.#endAtEntry());
  }

  /** The entry's process is gone. */
  entryVanished(): void {
    this.#hasEntryEnded = true;
    this.#later(() => this.endAtClient({ kind: "closed", code: 1006, reason: "" }));
  }

  open(): void {
    if (!this.#hasClientEnded) this.#sink.onOpen();
  }

  endAtClient(end: SocketEnd): void {
    if (this.#hasClientEnded) return;
    this.#hasClientEnded = true;
    this.#sink.onEnd(end);
  }

  #endAtEntry(): void {
    if (this.#hasEntryEnded) return;
    this.#hasEntryEnded = true;
    this.#links.sockets.delete(this);
    this.session?.socketClosed();
  }

  /** In order, and not at all while it is dark. */
  #later(run: () => void): void {
    this.#links.cluster.runtime.schedule(DELAY_MS, () => {
      if (!this.isDark) run();
    });
  }
}

/** A running node's links. */
interface NodeLinks {
  readonly table: LinkTable;
  readonly hosts: LinkHosts;
}

export class SimulatedLinks {
  readonly cluster: SimulatedCluster;
  readonly watch: SocketWatch;
  readonly serviceKey = makeKeyPair();
  readonly sockets = new Set<SimulatedSocket>();
  readonly #nodes = new Map<string, NodeLinks>();

  constructor(seed: number, nodes: readonly ClusterNodeSpec[], watch: SocketWatch) {
    this.watch = watch;
    this.cluster = new SimulatedCluster({
      seed,
      nodes,
      createLinks: (core, node, replica, cluster) => this.#createTable(core, node, replica, cluster),
    });
  }

  /** What a running node holds of links. */
  table(node: string): LinkTable | undefined {
    return this.cluster.isRunning(node) ? this.#nodes.get(node)?.table : undefined;
  }

  /** SIGKILL of a node: its clients see their connections end. */
  crash(node: string): ClusterNodeSpec {
    for (const socket of this.sockets) {
      if (socket.node !== node) continue;
      this.sockets.delete(socket);
      socket.entryVanished();
    }
    this.#nodes.get(node)?.table.close();
    return this.cluster.crash(node);
  }

  /** The internet as a client process named `owner` sees it: each dial meets some node that is up, or nobody. */
  dialler(owner: string): LinkDialler {
    return { dial: (url, sink) => this.#dial(owner, url, sink) };
  }

  #dial(owner: string, url: LinkUrl, sink: SocketSink): ClientSocket {
    const { runtime } = this.cluster;
    const nodes = this.cluster.truth.nodeRecords;
    const node = nodes[Math.floor(runtime.random() * nodes.length)]?.id ?? "";
    const role = url.path.endsWith("/box") ? "box" : "app";
    const socket = new SimulatedSocket(this, { role, node, owner }, sink);
    runtime.schedule(REFUSED_MS, () => this.#arrive(socket, url.host));
    return socket.clientEnd;
  }

  #arrive(socket: SimulatedSocket, host: string): void {
    const links = this.cluster.isRunning(socket.node) ? this.#nodes.get(socket.node) : undefined;
    if (links === undefined) return socket.endAtClient({ kind: "fault", trouble: "refused" });
    const dialled = links.hosts.find(host, false);
    if (dialled === undefined) return socket.endAtClient({ kind: "no-upgrade", status: 421 });
    this.sockets.add(socket);
    socket.session = links.table.open({ role: socket.role, dialled, address: "192.0.2.1", socket });
    socket.open();
  }

  #createTable(
    core: NodeCore,
    node: ClusterNode,
    replica: LaggingReplica,
    { runtime, truth }: SimulatedCluster,
  ): LinkTable {
    const hosts = new LinkHosts({
      base: LINK_BASE,
      shards: () => replica.shards(),
      defaultShard: () => truth.defaultShard(),
    });
    const raw = Buffer.from(this.serviceKey.raw, "base64url");
    const id = createHash("sha256").update(raw).digest("base64url").slice(0, 16);
    const { placements } = node.knowledge;
    const table = new LinkTable({
      entry: node.incarnation,
      runtime,
      logger: createSilentLogger(),
      metrics: NO_METRICS,
      hosts,
      identities: {
        seq: 0,
        boxKey: (home) => replica.home(home)?.boxKey,
        token: (text, kind) => {
          const key = replica.keyByHash(createHash("sha256").update(text).digest());
          return key?.kind === kind ? { home: key.tenant as HomeId, keyId: key.id } : undefined;
        },
      },
      placements: {
        best: (home) => placements.best(home) ?? { shard: "s1" as ShardId, revision: 0 },
        learn: (home, placement) => placements.learn(home, placement),
        shard: (shard) => replica.shard(shard),
      },
      sightings: { noteBoxHello: () => {}, noteAppHello: () => {} },
      signer: createHelloSigner(() => ({ active: { id, privateKey: this.serviceKey.privateKey } })),
      // Who signs what is not the matter here: a box proves itself by naming its home.
      verify: (_bytes, _signature, _key, answer) => void runtime.schedule(1, () => answer(true)),
      shardPort: (shard) => core.reach.homeShardPort(shard),
      catchUp: () => Promise.resolve(),
      watch: NO_LINK_WATCH,
      spreadMs: () => 2_000,
      pingMs: 25_000,
    });
    this.#nodes.set(node.spec.id, { table, hosts });
    return table;
  }
}

const NO_METRICS: LinkMetrics = {
  links: { set: () => {} },
  handshakes: { inc: () => {} },
  closes: { inc: () => {} },
  handshaking: { set: () => {} },
  oneShots: { inc: () => {} },
};
