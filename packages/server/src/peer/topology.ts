// Which node runs which shard: from the replica, or, at a bootstrap entry, from what its peers say.

import type { Replica, ShardId } from "../directory/directory.ts";

export interface Topology {
  /** The node that runs a shard now, if any is known. */
  nodeOf(shard: ShardId): string | undefined;
  /** Shards that tenants may be on, in id order. */
  liveShards(): readonly ShardId[];
  /** Shards that a node runs. */
  shardsOf(nodeId: string): ReadonlySet<ShardId>;
}

/** The topology a replica shows. */
export function replicaTopology(replica: Pick<Replica, "shard" | "shards">): Topology {
  return {
    nodeOf: (shard) => {
      const node = replica.shard(shard)?.node;
      return node === "" ? undefined : node;
    },
    liveShards: () =>
      replica
        .shards()
        .filter((shard) => shard.state !== "down")
        .map((shard) => shard.id),
    shardsOf: (nodeId) =>
      new Set(
        replica
          .shards()
          .filter((shard) => shard.node === nodeId)
          .map((shard) => shard.id),
      ),
  };
}
