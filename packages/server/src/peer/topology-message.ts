// What a node without a replica is told by those that have one: shards, nodes, the corrections switch and the key ring.
//
// Spec: docs/protocol/peer-link.md; R24, R25. Sent over authenticated links only, kept in memory only.

import type { Replica, SealingKey, ShardId, ShardRecord } from "../directory/directory.ts";
import { MalformedHead, read, type RawHead } from "./peer-messages.ts";
import type { Topology } from "./topology.ts";
import type { KeyRing } from "../tokens/token-sealer.ts";

/** What a topology message says. */
export interface ToldTopology {
  readonly seq: number;
  readonly residency: string;
  readonly isCorrecting: boolean;
  readonly shards: readonly Pick<ShardRecord, "id" | "node" | "state">[];
  readonly nodes: readonly { readonly id: string; readonly internalUrl: string }[];
  readonly ring: readonly SealingKey[];
}

/** The message of a node with a replica. */
export function encodeTopology(replica: Replica): RawHead {
  return {
    t: "topology",
    seq: replica.seq,
    residency: replica.residency(),
    isCorrecting: replica.correctionsOn(),
    shards: replica.shards().map(({ id, node, state }) => ({ id, node, state })),
    nodes: replica
      .nodes()
      .filter((node) => node.state === "live" && node.internalUrl !== "")
      .map(({ id, internalUrl }) => ({ id, internalUrl })),
    ring: replica.sealingKeys().map(({ id, secret, state }) => ({
      id,
      secret: Buffer.from(secret).toString("base64url"),
      state,
    })),
  };
}

/** What a message says. */
export function readTopology(head: RawHead): ToldTopology {
  return {
    seq: read.number(head, "seq"),
    residency: read.text(head, "residency"),
    isCorrecting: read.flag(head, "isCorrecting"),
    shards: objects(head, "shards").map((shard) => ({
      id: read.shard({ shard: shard["id"] }),
      node: read.text(shard, "node"),
      state: oneOf(shard, "state", ["live", "draining", "down"] as const),
    })),
    nodes: objects(head, "nodes").map((node) => ({
      id: read.text(node, "id"),
      internalUrl: read.text(node, "internalUrl"),
    })),
    ring: objects(head, "ring").map((key) => ({
      id: read.text(key, "id"),
      secret: Buffer.from(read.text(key, "secret"), "base64url"),
      state: oneOf(key, "state", ["sealing", "accepted"] as const),
    })),
  };
}

/** The newest topology told so far, as the rest of a bootstrap node reads it. */
export class HeardTopology implements Topology, KeyRing {
  readonly #residency: string;
  #told: ToldTopology | undefined;

  /** @param residency the node's own, as configured: what is told of another is not taken */
  constructor(residency: string) {
    this.#residency = residency;
  }

  /** Takes a topology in; `false` if it is older than the one known, or of another residency. */
  hear(told: ToldTopology): boolean {
    if (told.residency !== this.#residency) return false;
    if (this.#told !== undefined && told.seq < this.#told.seq) return false;
    this.#told = told;
    return true;
  }

  get isCorrecting(): boolean {
    return this.#told?.isCorrecting ?? false;
  }

  nodes(): ToldTopology["nodes"] {
    return this.#told?.nodes ?? [];
  }

  nodeOf(shard: ShardId): string | undefined {
    const node = this.#told?.shards.find((told) => told.id === shard)?.node;
    return node === "" ? undefined : node;
  }

  liveShards(): readonly ShardId[] {
    return (this.#told?.shards ?? []).filter((shard) => shard.state !== "down").map((shard) => shard.id);
  }

  shardsOf(nodeId: string): ReadonlySet<ShardId> {
    const own = (this.#told?.shards ?? []).filter((shard) => shard.node === nodeId);
    return new Set(own.map((shard) => shard.id));
  }

  sealingKeys(): readonly SealingKey[] {
    return this.#told?.ring ?? [];
  }

  residency(): string {
    return this.#residency;
  }
}

function objects(head: RawHead, name: string): readonly RawHead[] {
  return read.list(head, name).map((item) => read.object({ item }, "item"));
}

function oneOf<const Value extends string>(head: RawHead, name: string, values: readonly Value[]): Value {
  const value = values.find((known) => known === head[name]);
  if (value === undefined) throw new MalformedHead(name);
  return value;
}
