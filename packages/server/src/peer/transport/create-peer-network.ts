// The peer network of a node: one pair and one dialler per other node, and the connections that others open.
//
// Spec: docs/protocol/peer-link.md.
// I1  A connection of a node that is not listed waits, unanswered, until it is listed or HANDSHAKE_MS_MAX passed: the
//     other node may have read of this one before this one read of it.
// I2  Handlers are called in the order they were given; one that throws closes the link and never the process.

import type { Logger, Runtime } from "@moor/runtime";
import { LinkCore, type LinkHost } from "./link-core.ts";
import type { LinkEnd } from "./link-end.ts";
import type { LinkHello } from "./link-hello.ts";
import { PeerDialler } from "./peer-dialler.ts";
import type { Peer, PeerHandlers, PeerMessage, PeerNetwork, PeerNode } from "./peer-network.ts";
import { PeerPair } from "./peer-pair.ts";
import { RefusalLog } from "./refusal-log.ts";
import { ACCEPTED_PENDING_MAX, LINK_VERSIONS } from "./transport-limits.ts";
import type { PeerTransport, Wire } from "./wire.ts";

export interface PeerNetworkOptions {
  /** Node id `^[a-z0-9][a-z0-9-]{0,62}$`; incarnation new at each start. */
  readonly self: { readonly nodeId: string; readonly incarnation: string };
  /** Links to nodes of another residency are refused. */
  readonly residency: string;
  readonly transport: PeerTransport;
  readonly runtime: Runtime;
  readonly logger: Logger;
  /** Called at each link's end, connections that never were a link included: for a counter. */
  readonly countEnd?: (end: LinkEnd) => void;
  /** Protocol versions to offer, newest first. Default LINK_VERSIONS. */
  readonly versions?: readonly number[];
}

/** Makes a network that has no nodes yet: `setNodes` and `listen` bring it to life. */
export function createPeerNetwork(options: PeerNetworkOptions): PeerNetwork {
  return new LinkedPeerNetwork(options);
}

interface ListedNode {
  readonly pair: PeerPair;
  readonly dialler: PeerDialler;
}

class LinkedPeerNetwork implements PeerNetwork, LinkHost {
  readonly self: PeerNetwork["self"];
  readonly #options: PeerNetworkOptions;
  readonly #hello: LinkHello;
  readonly #refusals: RefusalLog;
  readonly #nodes = new Map<string, ListedNode>();
  /** Accepted and not up yet, claimed or not. */
  readonly #acceptedPending = new Set<LinkCore>();
  readonly #upHandlers: PeerHandlers["up"][] = [];
  readonly #downHandlers: PeerHandlers["down"][] = [];
  readonly #messageHandlers: PeerHandlers["message"][] = [];
  readonly #listeners: { close(): Promise<void> }[] = [];
  #isClosing = false;

  constructor(options: PeerNetworkOptions) {
    this.#options = options;
    this.self = options.self;
    this.#refusals = new RefusalLog(options.logger);
    this.#hello = {
      versions: options.versions ?? LINK_VERSIONS,
      nodeId: options.self.nodeId,
      incarnation: options.self.incarnation,
      residency: options.residency,
    };
  }

  peer(nodeId: string): Peer | undefined {
    return this.#nodes.get(nodeId)?.pair.link;
  }

  peers(): readonly Peer[] {
    const up: Peer[] = [];
    for (const { pair } of this.#nodes.values()) if (pair.link !== undefined) up.push(pair.link);
    return up;
  }

  setNodes(nodes: readonly PeerNode[]): void {
    if (this.#isClosing) return;
    const wanted = new Map(nodes.filter(({ id }) => id !== this.self.nodeId).map((node) => [node.id, node]));
    for (const [id, listed] of this.#nodes) if (!wanted.has(id)) this.#remove(id, listed);
    for (const node of wanted.values()) {
      const listed = this.#nodes.get(node.id);
      if (listed === undefined) this.#add(node);
      else listed.dialler.setUrl(node.internalUrl);
    }
  }

  onUp(handler: PeerHandlers["up"]): void {
    this.#upHandlers.push(handler);
  }

  onDown(handler: PeerHandlers["down"]): void {
    this.#downHandlers.push(handler);
  }

  onMessage(handler: PeerHandlers["message"]): void {
    this.#messageHandlers.push(handler);
  }

  async listen(host: string, port: number): Promise<{ readonly port: number }> {
    const listener = await this.#options.transport.listen(host, port, (wire) => this.#accept(wire));
    this.#listeners.push(listener);
    return { port: listener.port };
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    for (const { pair, dialler } of this.#nodes.values()) {
      dialler.rest();
      pair.close("leaving");
    }
    for (const link of this.#acceptedPending) link.close("leaving");
    await Promise.all(this.#listeners.map((listener) => listener.close()));
  }

  // What links tell (LinkHost).

  claimed(link: LinkCore): void {
    const listed = this.#nodes.get(link.nodeId);
    if (listed === undefined) return; // it waits (I1)
    listed.pair.add(link);
    link.answer();
  }

  introduced(link: LinkCore): void {
    this.#nodes.get(link.nodeId)?.pair.introduced(link);
  }

  confirmed(link: LinkCore): void {
    this.#nodes.get(link.nodeId)?.pair.confirmed(link);
  }

  message(link: LinkCore, message: PeerMessage): void {
    for (const handler of this.#messageHandlers) handler(link, message);
  }

  closed(link: LinkCore): void {
    const { ending } = link;
    if (ending === undefined) return;
    this.#options.countEnd?.(ending.reason);
    const listed = this.#nodes.get(link.nodeId);
    if (this.#acceptedPending.delete(link)) {
      this.#refusals.note({ peer: link.nodeId, remote: link.remote, ...ending });
    } else if (!ending.wasUp && ending.reason !== "duplicate") listed?.dialler.failed(ending);
    listed?.pair.closed(link);
  }

  #accept(wire: Wire): void {
    if (this.#isClosing || this.#acceptedPending.size >= ACCEPTED_PENDING_MAX) return wire.close();
    this.#acceptedPending.add(this.#link(wire, undefined));
  }

  #link(wire: Wire, dialledNodeId: string | undefined): LinkCore {
    const { runtime, logger } = this.#options;
    return new LinkCore({ wire, dialledNodeId, own: this.#hello, host: this, runtime, logger });
  }

  #add({ id, internalUrl }: PeerNode): void {
    const { transport, runtime, logger } = this.#options;
    const dialler = new PeerDialler(internalUrl, {
      nodeId: id,
      transport,
      runtime,
      logger,
      opened: (wire) => pair.add(this.#link(wire, id)),
    });
    const pair = new PeerPair(this.self.nodeId < id, runtime, {
      up: (link) => this.#tellUp(link, dialler),
      down: (link) => this.#tellDown(link, dialler),
      linkless: () => dialler.start(),
    });
    this.#nodes.set(id, { pair, dialler });
    dialler.start();
    for (const link of this.#acceptedPending) if (link.nodeId === id) this.claimed(link);
  }

  #remove(id: string, { pair, dialler }: ListedNode): void {
    dialler.rest();
    pair.close("unlisted");
    this.#nodes.delete(id);
  }

  #tellUp(link: LinkCore, dialler: PeerDialler): void {
    this.#acceptedPending.delete(link);
    dialler.linkUp();
    const { nodeId, incarnation, version, remote } = link;
    this.#options.logger.info("peer-up", { peer: nodeId, incarnation, version, remote });
    for (const handler of this.#upHandlers) this.#guard(link, () => handler(link));
  }

  #tellDown(link: LinkCore, dialler: PeerDialler): void {
    dialler.linkDown();
    const { nodeId, incarnation, ending } = link;
    const { by, reason, cause } = ending ?? {};
    const { logger } = this.#options;
    const isOrderly = reason === "leaving" || reason === "unlisted" || reason === "replaced";
    const fields = { peer: nodeId, incarnation, by, reason, cause };
    if (isOrderly) logger.info("peer-down", fields);
    else logger.warn("peer-down", fields);
    for (const handler of this.#downHandlers) this.#guard(link, () => handler(link));
  }

  #guard(link: LinkCore, call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#options.logger.error("peer-handler-failed", {
        peer: link.nodeId,
        reason: error instanceof Error ? error.message : "not an Error",
        stack: error instanceof Error ? error.stack : undefined,
      });
      link.close("handler-failed");
    }
  }
}
