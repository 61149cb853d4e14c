// What a bootstrap entry asks of a node that has a replica: tunnels and keys by id and hash.
//
// Spec: docs/protocol/peer-link.md; T2, L26. A key travels as its SHA-256 only.

import { parseTunnelId, type HomeId, type TunnelId } from "@moor/protocol";
import {
  ACCESS_MODES,
  parseHomeTenant,
  type KeyRecord,
  type Replica,
  type TunnelRecord,
} from "../directory/directory.ts";
import { KEY_KINDS } from "../directory/keys.ts";
import type { PlacementKnowledge } from "../entry/placement-knowledge.ts";
import { tunnelOf, type TenantFacts } from "../entry/tenant-directory.ts";
import { encodePlacement, MalformedHead, read, type RawHead } from "./peer-messages.ts";

/** The question: of a tunnel, or of the tunnel of a home. */
export function factsQuestion(tenant: TunnelId | HomeId, keyHash: Uint8Array | undefined): RawHead {
  const hash = keyHash === undefined ? {} : { keyHash: Buffer.from(keyHash).toString("hex") };
  const member = parseTunnelId(tenant) === undefined ? "home" : "tunnel";
  return { t: "facts", [member]: tenant, ...hash };
}

/** The answer of a node with a replica: the newest placement it knows of, be it ahead of its replica. */
export function answerFacts(
  head: RawHead,
  replica: Pick<Replica, "tunnel" | "home" | "keyByHash">,
  placements: PlacementKnowledge,
): RawHead {
  const hash = read.optionalText(head, "keyHash");
  const tunnel = tunnelOf(replica, readTenant(head));
  const key = hash === undefined ? undefined : replica.keyByHash(Buffer.from(hash, "hex"));
  const placement = tunnel === undefined ? undefined : { ...tunnel.placement, ...placements.best(tunnel.id) };
  return {
    t: "facts-reply",
    ...(placement === undefined ? {} : { tunnel: { ...tunnel, placement: encodePlacement(placement) } }),
    ...(key === undefined ? {} : { key }),
  };
}

function readTenant(head: RawHead): TunnelId | HomeId {
  const text = read.optionalText(head, "home");
  if (text === undefined) return read.tunnel(head);
  const home = parseHomeTenant(text);
  if (home === undefined) throw new MalformedHead("home");
  return home;
}

/** What the answer says. */
export function readFacts(head: RawHead): TenantFacts {
  return {
    kind: "facts",
    tunnel: head["tunnel"] === undefined ? undefined : readTunnel(read.object(head, "tunnel")),
    key: head["key"] === undefined ? undefined : readKey(read.object(head, "key")),
  };
}

function readTunnel(head: RawHead): TunnelRecord {
  const id = parseTunnelId(read.text(head, "id"));
  const access = ACCESS_MODES.find((mode) => mode === head["access"]);
  const { shard, revision, tokenKey, tokenFormat } = read.placement(head);
  if (id === undefined || access === undefined) throw new MalformedHead("tunnel");
  if (tokenKey === undefined || tokenFormat === undefined) throw new MalformedHead("placement");
  return {
    id,
    name: read.text(head, "name"),
    description: read.text(head, "description"),
    access,
    deadlineMs: read.number(head, "deadlineMs"),
    createdAtMs: read.number(head, "createdAtMs"),
    isSeen: read.flag(head, "isSeen"),
    placement: { shard, revision, tokenKey, tokenFormat },
  };
}

function readKey(head: RawHead): KeyRecord {
  const kind = KEY_KINDS.find((known) => known === head["kind"]);
  if (kind === undefined) throw new MalformedHead("key");
  return {
    id: read.text(head, "id"),
    kind,
    tenant: read.text(head, "tenant"),
    label: read.text(head, "label"),
    prefix: read.text(head, "prefix"),
    createdAtMs: read.number(head, "createdAtMs"),
    isRevoked: read.flag(head, "isRevoked"),
  };
}
