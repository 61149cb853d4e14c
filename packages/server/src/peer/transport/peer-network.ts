// The links of this node to the other nodes of its residency, as the rest of the node sees them: whom it can talk to,
// and messages both ways. Knows nothing of what the messages mean.
//
// Spec: docs/protocol/peer-link.md.
// I1  At most one link per pair of nodes is up; a `Peer` is one such link, and never comes back once it is down.
// I2  `onUp` is called once per link before its first message, `onDown` once after its last. A message is delivered
//     once or not at all, and not at all only if its link goes down.
// I3  Messages of up to MESSAGE_WHOLE_BYTES_MAX arrive in the order they were sent. Larger ones arrive when their last
//     part does: smaller ones sent later may overtake them.

/** One message: a small JSON object and, where bodies travel, raw bytes. */
export interface PeerMessage {
  /** Has `t`, the name of the message. JSON values only; up to MESSAGE_HEAD_BYTES_MAX as JSON. */
  readonly head: Readonly<Record<string, unknown>>;
  /** Up to MESSAGE_PAYLOAD_BYTES_MAX. Not copied when sent: it must not change afterwards. */
  readonly payload?: Uint8Array;
}

/** One link to another node. */
export interface Peer {
  readonly nodeId: string;
  /** The other process's start: a new one means that everything the old one held is gone. */
  readonly incarnation: string;
  /** Version of the link protocol that both sides speak: what the meaning of messages may depend on. */
  readonly version: number;
  readonly isUp: boolean;
  /**
   * Queues a message. False: the link is down or QUEUED_BYTES_MAX wait already, and nothing was sent. A message over the
   * limits is a bug and throws.
   */
  send(message: PeerMessage): boolean;
  /** Bytes accepted by `send` and not yet given to the network. */
  readonly queuedBytes: number;
}

/** A node to be connected with. */
export interface PeerNode {
  readonly id: string;
  /** `tcp://host:port`; TLS or not is this node's own setting, the same at all nodes of a residency. */
  readonly internalUrl: string;
}

/** What the node is told. Handlers are called in turn and must not throw: a throw closes the link it came from. */
export interface PeerHandlers {
  readonly up: (peer: Peer) => void;
  readonly down: (peer: Peer) => void;
  readonly message: (peer: Peer, message: PeerMessage) => void;
}

/** Every link of this node. */
export interface PeerNetwork {
  readonly self: { readonly nodeId: string; readonly incarnation: string };
  /** The link to a node that is up now. */
  peer(nodeId: string): Peer | undefined;
  /** Every link that is up now. */
  peers(): readonly Peer[];
  /** Whom to be connected with, itself left out or not; called at each change. Links to others are closed. */
  setNodes(nodes: readonly PeerNode[]): void;
  onUp(handler: PeerHandlers["up"]): void;
  onDown(handler: PeerHandlers["down"]): void;
  onMessage(handler: PeerHandlers["message"]): void;
  /** Accepts links. Throws ConfigError when the address is taken, or reachable from elsewhere without TLS. */
  listen(host: string, port: number): Promise<{ readonly port: number }>;
  /** Closes every link (`onDown` is called for each) and the listener. */
  close(): Promise<void>;
}
