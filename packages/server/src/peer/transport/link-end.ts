// How links end. The words are the wire's: they travel in close frames, and label a counter.
//
// Spec: docs/protocol/peer-link.md, "Closing".

/** Every way a link ends. */
export const LINK_ENDS = [
  "remote-closed", // the other side or the network
  "silence", // nothing heard for SILENCE_MS_MAX
  "protocol", // the other side broke a rule
  "handshake-late", // not up within HANDSHAKE_MS_MAX
  "replaced", // by a newer link of the same pair
  "duplicate", // another link of the same pair came first
  "unlisted", // the node is not, or not any more, one to be connected with
  "leaving", // this node closes its network
  "handler-failed", // a bug: a message's handler threw
  "version-too-old", // the other side's; from here on see HelloRefusal
  "version-too-new",
  "other-residency",
  "wrong-node",
  "same-node",
  "certificate-mismatch",
  "certificate-refused", // only ever received: TLS of the accepting side found the certificate wanting
] as const;
/** Why a link ended; sent as text in a close frame. */
export type LinkEnd = (typeof LINK_ENDS)[number];

/** How a link ended. */
export interface LinkEnding {
  /** Who ended it: for `peer`, the reason is the one it gave, if it gave one. */
  readonly by: "self" | "peer";
  readonly reason: LinkEnd;
  /** What the network said, where it was the network: an error code of the system or of TLS, for logs. */
  readonly cause: string | undefined;
  readonly wasUp: boolean;
}
