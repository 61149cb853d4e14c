// The first frame of each side: who it is and which versions it speaks. Its form never changes, whatever the version.
//
// Spec: docs/protocol/peer-link.md, "Handshake".
// I1  What a hello claims is believed only as far as the certificate says the same, where there is one.

import { type CertificateIdentity, isNodeId, isResidency } from "./certificate-identity.ts";

/** First member of every hello: a port scanner's greeting is not taken for a peer's. */
export const LINK_MAGIC = "moor-peer-link";

/** Incarnations as nodes mint them, with room for other forms. */
const INCARNATION = /^[\x21-\x7e]{1,128}$/;

/** What a side says about itself. */
export interface LinkHello {
  /** Versions it speaks, 1–16 of them. */
  readonly versions: readonly number[];
  readonly nodeId: string;
  readonly incarnation: string;
  readonly residency: string;
}

/** Why two sides do not become a link. Sent as text in a close frame. */
export type HelloRefusal =
  | "version-too-old" // the other side's
  | "version-too-new"
  | "other-residency"
  | "wrong-node" // not the node that was dialled
  | "same-node" // its own id
  | "certificate-mismatch";

/** A hello as JSON bytes. */
export function encodeHello(hello: LinkHello): Buffer {
  return Buffer.from(JSON.stringify({ magic: LINK_MAGIC, ...hello }));
}

/** What the bytes say, or undefined when they are no hello. Unknown members are ignored. */
export function parseHello(bytes: Buffer): LinkHello | undefined {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { magic, versions, nodeId, incarnation, residency } = value as Record<string, unknown>;
  if (magic !== LINK_MAGIC || !isVersionList(versions)) return undefined;
  if (typeof nodeId !== "string" || !isNodeId(nodeId)) return undefined;
  if (typeof residency !== "string" || !isResidency(residency)) return undefined;
  if (typeof incarnation !== "string" || !INCARNATION.test(incarnation)) return undefined;
  return { versions, nodeId, incarnation, residency };
}

function isVersionList(value: unknown): value is readonly number[] {
  return (
    Array.isArray(value) &&
    value.length >= 1 &&
    value.length <= 16 &&
    value.every((version) => Number.isSafeInteger(version) && version >= 1)
  );
}

/** What is known about the other side besides its hello. */
export interface HelloContext {
  /** The node that was dialled; undefined on the side that accepted. */
  readonly expectedNodeId: string | undefined;
  /** What its certificate proves; undefined on a plain connection. */
  readonly identity: CertificateIdentity | undefined;
}

/** The version both speak, or why there is none. */
export function judgeHello(
  own: LinkHello,
  theirs: LinkHello,
  context: HelloContext,
): { readonly kind: "agreed"; readonly version: number } | HelloRefusal {
  const { expectedNodeId, identity } = context;
  if (theirs.residency !== own.residency) return "other-residency";
  if (identity !== undefined) {
    const isSame = identity.nodeId === theirs.nodeId && identity.residency === theirs.residency;
    if (!isSame) return "certificate-mismatch";
  }
  if (theirs.nodeId === own.nodeId) return "same-node";
  if (expectedNodeId !== undefined && theirs.nodeId !== expectedNodeId) return "wrong-node";
  const common = own.versions.filter((version) => theirs.versions.includes(version));
  if (common.length > 0) return { kind: "agreed", version: Math.max(...common) };
  return Math.max(...theirs.versions) < Math.min(...own.versions) ? "version-too-old" : "version-too-new";
}
