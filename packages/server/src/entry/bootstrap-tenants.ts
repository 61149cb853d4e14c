// Look-ups of an entry that has no replica: it asks a node that has one.
//
// Spec: R24, L26; design "Shape" (bootstrap). A tunnel's facts are asked of the node where its tenant most likely lives,
// so that the placement learnt on the way is its owner's own. A moment without any node in reach is waited out.

import type { HomeId, TunnelId } from "@moor/protocol";
import { sleep, type Runtime } from "@moor/runtime";
import { choosePlacement } from "../directory/placement-choice.ts";
import type { ShardId } from "../directory/directory.ts";
import type { Topology } from "../peer/topology.ts";
import { factsQuestion, readFacts } from "../peer/facts-message.ts";
import type { RawHead } from "../peer/peer-messages.ts";
import type { Reply } from "../peer/peer-requests.ts";
import type { PlacementKnowledge } from "./placement-knowledge.ts";
import type { FactsUnavailable, TenantDirectory, TenantFacts } from "./tenant-directory.ts";

/** Nodes asked for one look-up before it is given up. Count. */
const ASKED_MAX = 3;

/** How long a request waits for a node that can be asked: longer than a lost link takes to be noticed and replaced. Milliseconds. */
const LOOK_UP_WAIT_MS = 10_000;

/** Between two rounds of asking. Milliseconds. */
const LOOK_UP_RETRY_MS = 100;

export interface BootstrapTenantsOptions {
  readonly runtime: Runtime;
  readonly topology: Topology;
  readonly placements: PlacementKnowledge;
  /** Ids of the nodes in reach. */
  readonly reachable: () => readonly string[];
  readonly ask: (nodeId: string, head: RawHead) => Promise<Reply>;
}

/** Look-ups over the peer link. */
export function bootstrapTenants(options: BootstrapTenantsOptions): TenantDirectory {
  return {
    lookUp: async (tenant, keyHash): Promise<TenantFacts | FactsUnavailable> => {
      const { runtime } = options;
      const untilMs = runtime.monotonicMs() + LOOK_UP_WAIT_MS;
      for (;;) {
        const facts = await askCandidates(tenant, keyHash, options);
        if (facts !== undefined) return facts;
        if (runtime.monotonicMs() >= untilMs) return { kind: "unavailable" };
        await sleep(runtime, LOOK_UP_RETRY_MS);
      }
    },
  };
}

async function askCandidates(
  tenant: TunnelId | HomeId,
  keyHash: Uint8Array | undefined,
  options: BootstrapTenantsOptions,
): Promise<TenantFacts | undefined> {
  for (const node of candidates(tenant, options)) {
    const reply = await options.ask(node, factsQuestion(tenant, keyHash));
    if (reply === undefined) continue;
    const facts = readFacts(reply.head);
    if (facts.tunnel !== undefined) options.placements.learn(facts.tunnel.id, facts.tunnel.placement);
    return facts;
  }
  return undefined;
}

/** The known owner's node first, then the one a keyed hash points to, then any. */
function candidates(tenant: TunnelId | HomeId, options: BootstrapTenantsOptions): readonly string[] {
  const { topology, placements } = options;
  const reachable = options.reachable();
  const guessed = choosePlacement(tenant, topology.liveShards()) as ShardId | undefined;
  const shards = [placements.best(tenant)?.shard, guessed];
  const likely = shards.flatMap((shard) => (shard === undefined ? [] : (topology.nodeOf(shard) ?? [])));
  const inOrder = new Set([...likely.filter((node) => reachable.includes(node)), ...reachable]);
  return [...inOrder].slice(0, ASKED_MAX);
}
