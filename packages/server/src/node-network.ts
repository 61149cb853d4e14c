// A node's links to the others: transport, listener, and whom to be connected with.
//
// Spec: docs/protocol/peer-link.md.

import type { Logger, Runtime } from "@moor/runtime";
import type { InternalOptions } from "./node-options.ts";
import type { EntryId } from "./peer/peer-link.ts";
import { createPeerNetwork } from "./peer/transport/create-peer-network.ts";
import { encodeInternalUrl } from "./peer/transport/internal-url.ts";
import type { LinkEnd } from "./peer/transport/link-end.ts";
import type { PeerNetwork, PeerNode } from "./peer/transport/peer-network.ts";
import { TlsFiles } from "./peer/transport/tls-files.ts";
import { createTcpTransport } from "./peer/transport/tcp-transport.ts";

export interface NodeNetworkOptions {
  readonly internal: InternalOptions;
  readonly nodeId: string;
  readonly incarnation: EntryId;
  readonly residency: string;
  readonly countEnd: (end: LinkEnd) => void;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

export class NodeNetwork {
  readonly network: PeerNetwork;
  readonly #options: NodeNetworkOptions;
  #listed: readonly string[] = [];

  constructor(options: NodeNetworkOptions) {
    const { internal, nodeId, incarnation, residency, countEnd, runtime, logger } = options;
    this.#options = options;
    const tls =
      internal.tls === undefined
        ? undefined
        : new TlsFiles(internal.tls, { nodeId, residency }, runtime, logger);
    const transport = createTcpTransport({
      ...(tls === undefined ? {} : { tls }),
      runtime,
      logger,
      option: "internal",
    });
    this.network = createPeerNetwork({
      self: { nodeId, incarnation },
      residency,
      transport,
      countEnd,
      runtime,
      logger,
    });
  }

  /** Accepts links; resolves with the URL that other nodes dial. Throws ConfigError. */
  async listen(): Promise<string> {
    const { host, port, url } = this.#options.internal;
    const bound = await this.network.listen(host, port);
    return url ?? encodeInternalUrl({ host, port: bound.port });
  }

  /** Whom to be connected with: the configured peers and `told` ones. */
  setNodes(told: readonly PeerNode[]): void {
    const nodes = new Map<string, PeerNode>();
    for (const node of [...(this.#options.internal.peers ?? []), ...told]) {
      if (node.id !== this.#options.nodeId) nodes.set(node.id, node);
    }
    this.#listed = [...nodes.keys()];
    this.network.setNodes([...nodes.values()]);
  }

  /** Whether a node that this one should be connected with is not in reach. */
  isAnyoneAway(): boolean {
    return this.#listed.some((id) => this.network.peer(id) === undefined);
  }

  /** Ids of the nodes in reach. */
  reachable(): readonly string[] {
    return this.network.peers().map((peer) => peer.nodeId);
  }
}
