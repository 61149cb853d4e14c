// What a bootstrap entry knows: what its peers told it, and what it learnt on the way.
//
// Spec: R24. It has no directory and no replica: tokens, and a keyed hash where there is none, say where to go.

import type { Runtime } from "@moor/runtime";
import { createPlacementKnowledge, type PlacementKnowledge } from "./entry/placement-knowledge.ts";
import { bootstrapTenants } from "./entry/bootstrap-tenants.ts";
import type { NodeKnowledge } from "./node-core.ts";
import type { HeardTopology } from "./peer/topology-message.ts";
import { choosePlacement } from "./directory/placement-choice.ts";
import type { ShardId } from "./directory/directory.ts";

/**
 * @param topology what peers tell, filled by the node as messages come
 * @param reachable ids of the nodes in reach
 */
export function bootstrapKnowledge(
  topology: HeardTopology,
  reachable: () => readonly string[],
  runtime: Runtime,
): NodeKnowledge {
  const learned = createPlacementKnowledge(undefined);
  const placements: PlacementKnowledge = {
    ...learned,
    best: (tenant, hint) => {
      const known = learned.best(tenant, hint);
      if (known !== undefined) return known;
      const shard = choosePlacement(tenant, topology.liveShards());
      return shard === undefined ? undefined : { shard: shard as ShardId, revision: 0 };
    },
  };
  return {
    tenants: (reach) =>
      bootstrapTenants({
        runtime,
        topology,
        placements: learned,
        reachable,
        ask: (nodeId, head) => reach().ask(nodeId, head),
      }),
    placements,
    topology,
    ring: topology,
    isCorrecting: () => topology.isCorrecting,
    wasSeen: () => undefined,
    noteSeen: () => {},
    isKeyRevoked: () => false,
    isBoxKeyReplaced: () => false,
  };
}
