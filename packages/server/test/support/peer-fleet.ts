// Several nodes' peer networks on one simulated network, with what each of them was told.

import { createSilentLogger, type LogFields, type Logger } from "@moor/runtime";
import { VirtualRuntime } from "@moor/testkit";
import type { CertificateIdentity } from "../../src/peer/transport/certificate-identity.ts";
import { createPeerNetwork } from "../../src/peer/transport/create-peer-network.ts";
import type { LinkEnd } from "../../src/peer/transport/link-end.ts";
import type { Peer, PeerMessage, PeerNetwork } from "../../src/peer/transport/peer-network.ts";
import { SimulatedNetwork, type SimulatedNetworkOptions } from "./simulated-network.ts";

/** What one node's handlers were told, in order. */
export type PeerEvent =
  | { readonly kind: "up" | "down"; readonly peer: Peer }
  | { readonly kind: "message"; readonly peer: Peer; readonly message: PeerMessage };

/** One node of the fleet. */
export interface FleetNode {
  readonly network: PeerNetwork;
  readonly events: PeerEvent[];
  /** How its links ended, in order. */
  readonly ends: LinkEnd[];
  /** Log lines of level warn and above, as `event reason`. */
  readonly warnings: string[];
  /** Messages received, by their head's `n`. */
  received(): unknown[];
  /** Ups and downs, as `up b/1`. */
  changes(): string[];
}

export interface FleetNodeOptions {
  readonly incarnation?: string;
  readonly residency?: string;
  readonly versions?: readonly number[];
  readonly identity?: CertificateIdentity;
  readonly onMessage?: (peer: Peer, message: PeerMessage) => void;
}

/** Nodes on a simulated network; node `a` listens at `tcp://a:1`. */
export class PeerFleet {
  readonly runtime: VirtualRuntime;
  readonly wires: SimulatedNetwork;

  constructor(options: SimulatedNetworkOptions & { readonly seed?: number } = {}) {
    this.runtime = new VirtualRuntime(options.seed ?? 1);
    this.wires = new SimulatedNetwork(this.runtime, options);
  }

  /** Starts a node that listens and knows nobody yet. */
  async start(nodeId: string, options: FleetNodeOptions = {}): Promise<FleetNode> {
    const events: PeerEvent[] = [];
    const ends: LinkEnd[] = [];
    const warnings: string[] = [];
    const network = createPeerNetwork({
      self: { nodeId, incarnation: options.incarnation ?? "1" },
      residency: options.residency ?? "global",
      transport: this.wires.transport(nodeId, options.identity),
      runtime: this.runtime,
      logger: warningLogger(warnings),
      countEnd: (end) => ends.push(end),
      ...(options.versions === undefined ? {} : { versions: options.versions }),
    });
    network.onUp((peer) => events.push({ kind: "up", peer }));
    network.onDown((peer) => events.push({ kind: "down", peer }));
    network.onMessage((peer, message) => {
      events.push({ kind: "message", peer, message });
      options.onMessage?.(peer, message);
    });
    await network.listen(nodeId, 1);
    return {
      network,
      events,
      ends,
      warnings,
      received: () => events.flatMap((event) => (event.kind === "message" ? [event.message.head["n"]] : [])),
      changes: () =>
        events.flatMap((event) =>
          event.kind === "message" ? [] : [`${event.kind} ${event.peer.nodeId}/${event.peer.incarnation}`],
        ),
    };
  }

  /** Two nodes that know each other and whose link is up. */
  async startPair(options: FleetNodeOptions = {}): Promise<{ a: FleetNode; b: FleetNode }> {
    const a = await this.start("a", options);
    const b = await this.start("b", options);
    introduce(a, b);
    this.runtime.advance(1_000);
    for (const { ends } of [a, b]) ends.length = 0; // duplicates of the start
    return { a, b };
  }
}

/** Tells each of the nodes about all of them. */
export function introduce(...nodes: readonly FleetNode[]): void {
  const list = nodes.map(({ network }) => nodeEntry(network.self.nodeId));
  for (const { network } of nodes) network.setNodes(list);
}

/** A node as `setNodes` takes it. */
export function nodeEntry(id: string): { id: string; internalUrl: string } {
  return { id, internalUrl: `tcp://${id}:1` };
}

function warningLogger(warnings: string[]): Logger {
  const note = (event: string, fields: LogFields = {}) =>
    void warnings.push(`${event} ${String(fields["by"] ?? "")} ${String(fields["reason"] ?? "")}`);
  return { ...createSilentLogger(), warn: note, error: note };
}
