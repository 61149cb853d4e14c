// The identity of a development node: entry and shards in one process.

import { ConfigError } from "@moor/runtime";
import { BASE_HOST_DEFAULT, shardHost } from "./base-host.ts";
import { parseShardId, type ShardId } from "./directory/directory.ts";
import { SHARDS_PER_NODE_MAX, type NodeIdentity, type NodeShard } from "./node-options.ts";

/**
 * A node `dev` with shards `s1`, `s2`, …: stable over restarts, so that placements keep their meaning.
 *
 * @param shardCount 1–64; ConfigError for `--shards` otherwise
 */
export function devNode(shardCount: number): NodeIdentity {
  if (!Number.isInteger(shardCount) || shardCount < 1 || shardCount > SHARDS_PER_NODE_MAX) {
    throw new ConfigError("--shards", String(shardCount), `an integer 1–${SHARDS_PER_NODE_MAX}`);
  }
  const shards = Array.from({ length: shardCount }, (_, at): NodeShard => {
    const id = parseShardId(`s${at + 1}`) as ShardId;
    return { id, publicHost: shardHost(id, BASE_HOST_DEFAULT) };
  });
  return { id: "dev", roles: ["entry", "shard"], shards, entryMode: "replica" };
}
