// What it costs that a call's entry is not the node of its owner: the same tunnel and agent, called at the owner's node,
// at another node, and with the agent at that other node too.

import { startCluster, type Cluster } from "@moor/testkit/cluster";
import { startMoorAgent } from "@moor/testkit/moor-process";
import { measureCalls, type CallFigures } from "./call-bench.ts";
import { startPart } from "./parts.ts";

/** Where caller and agent are connected, as seen from the owner. */
export const OWNER_ROUTES = ["all at the owner", "caller elsewhere", "caller and agent elsewhere"] as const;
export type OwnerRoute = (typeof OWNER_ROUTES)[number];

export interface OwnerFigures extends Omit<CallFigures, "route"> {
  readonly route: OwnerRoute;
}

export interface OwnerBenchOptions {
  readonly concurrencies: readonly number[];
  readonly warmUpMs: number;
  readonly measuredMs: number;
}

/** Measures each route at each concurrency on two nodes of one machine. */
export async function benchOwners(options: OwnerBenchOptions): Promise<OwnerFigures[]> {
  const target = await startPart("target.ts");
  const mcp = `http://127.0.0.1:${await target.stdout.waitFor(/^\d+$/)}/mcp`;
  const cluster = await startCluster({
    directory: "sqlite",
    nodes: [
      { id: "owner", shards: ["s1"] },
      { id: "other", entryMode: "bootstrap" },
    ],
  });
  try {
    const figures: OwnerFigures[] = [];
    for (const route of OWNER_ROUTES) figures.push(...(await benchRoute(cluster, route, mcp, options)));
    return figures;
  } finally {
    await cluster.stop();
    await target.stop();
  }
}

/** A tunnel and an agent of its own for each route: what one left behind does not count for the next. */
async function benchRoute(
  cluster: Cluster,
  route: OwnerRoute,
  mcp: string,
  options: OwnerBenchOptions,
): Promise<OwnerFigures[]> {
  const [tunnel] = await cluster.createTunnels(1);
  if (tunnel === undefined) return [];
  const owner = cluster.node("owner");
  const other = cluster.node("other");
  const callerNode = route === "all at the owner" ? owner : other;
  const agentNode = route === "caller and agent elsewhere" ? other : owner;
  const agent = await startMoorAgent({
    endpoint: agentNode.endpoint,
    tunnel,
    mcp,
    args: ["--concurrency", "100"],
  });
  const measured = {
    url: `${callerNode.endpoint}/v1/mcp/${tunnel.id}`,
    key: tunnel.connectorKey ?? undefined,
    between: [owner.process, other.process, agent],
  };
  const figures: OwnerFigures[] = [];
  for (const concurrency of options.concurrencies) {
    figures.push({ route, ...(await measureCalls(measured, concurrency, options)) });
  }
  await agent.stop();
  return figures;
}
