// What a node with a directory knows: its replica, and whatever peers know better.

import { OWNER_GRACE_MS, type TunnelId } from "@moor/protocol";
import type { Logger, Runtime } from "@moor/runtime";
import type { Directory, Replica } from "./directory/directory.ts";
import { createPlacementKnowledge, replicaPlacements } from "./entry/placement-knowledge.ts";
import { SeenRecorder } from "./entry/seen-recorder.ts";
import { replicaTenants } from "./entry/tenant-directory.ts";
import type { NodeKnowledge } from "./node-core.ts";
import { replicaTopology } from "./peer/topology.ts";

/** Knowledge from a replica, and the recorder that writes back what agents were seen. */
export function directoryKnowledge(
  directory: Directory,
  replica: Replica,
  options: { readonly runtime: Runtime; readonly logger: Logger },
): { readonly knowledge: NodeKnowledge; readonly seen: SeenRecorder } {
  const seen = new SeenRecorder(directory, options.runtime, options.logger);
  const placements = createPlacementKnowledge(replicaPlacements(replica), (revision) =>
    replica.noteRevision(revision),
  );
  const knowledge: NodeKnowledge = {
    tenants: () => replicaTenants(replica),
    placements,
    topology: replicaTopology(replica),
    ring: replica,
    // An entry that knows every placement serves every poll through its owner: nothing is left to correct.
    isCorrecting: () => false,
    wasSeen: (tunnel) => {
      const shown = replica.tunnel(tunnel);
      if (shown === undefined || shown.isSeen) return shown?.isSeen;
      // A replica that is behind on where a tunnel lives may be behind on whether it was seen.
      const isBehind = (placements.best(tunnel)?.revision ?? 0) > shown.placement.revision;
      return isBehind ? undefined : wasMovedJustNow(replica, tunnel, options.runtime);
    },
    noteSeen: (tunnel) => seen.note(tunnel),
    isKeyRevoked: (keyId) => replica.key(keyId)?.isRevoked ?? false,
    // Who has seen more than this replica knows better.
    isBoxKeyReplaced: (home, key, seenSeq) => seenSeq <= replica.seq && replica.home(home)?.boxKey !== key,
  };
  return { knowledge, seen };
}

/**
 * That an agent has polled reaches the directory some moments later: a tunnel that was moved meanwhile is taken for one
 * whose agents are there, as long as a new owner takes them for alive. Spec T12.
 */
function wasMovedJustNow(
  replica: Pick<Replica, "movesOf">,
  tunnel: TunnelId,
  runtime: Pick<Runtime, "wallMs">,
): boolean {
  const [newest] = replica.movesOf(tunnel, 1);
  return newest !== undefined && Math.abs(runtime.wallMs() - newest.atMs) < OWNER_GRACE_MS;
}
