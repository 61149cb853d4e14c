// Commands over links: app → box → app on two nodes, the home's owner being the node of both, of the box alone, or of
// neither. Boxes answer at once; their command logs are in memory, since the disk under a box is not the service's. As many
// homes as commands under way: what one link may send is limited (L25).

import { startLinkFleet } from "@moor/testkit/link-fleet";
import { setLinkStage, type LinkStage } from "../prove/link-stage.ts";
import type { CallFigures } from "./call-bench.ts";
import { measureLoad } from "./measure-load.ts";

/** Where box and app are linked, as seen from the owner. */
export const COMMAND_ROUTES = ["all at the owner", "app elsewhere", "app and box elsewhere"] as const;
export type CommandRoute = (typeof COMMAND_ROUTES)[number];

export interface CommandFigures extends Omit<CallFigures, "route"> {
  readonly route: CommandRoute;
}

export interface CommandBenchOptions {
  readonly concurrencies: readonly number[];
  readonly warmUpMs: number;
  readonly measuredMs: number;
}

/** Measures each route at each concurrency. Needs PostgreSQL: only a shared directory has two nodes that hold links. */
export async function benchCommands(options: CommandBenchOptions): Promise<CommandFigures[]> {
  const homes = Math.max(...options.concurrencies);
  const stage = await setLinkStage({ homes, layout: "two-nodes", hasAppTokens: true });
  try {
    const figures: CommandFigures[] = [];
    for (const route of COMMAND_ROUTES) figures.push(...(await benchRoute(stage, route, options)));
    return figures;
  } finally {
    await stage.strike();
  }
}

/** Endpoints are addresses: a client that dials one is served there, wherever its home lives. */
async function benchRoute(
  { cluster, homes, serviceKeys }: LinkStage,
  route: CommandRoute,
  options: CommandBenchOptions,
): Promise<CommandFigures[]> {
  const endpointOf = (id: string) => cluster.node(id).endpoint.replace("http", "ws");
  const boxEndpoint = endpointOf(route === "app and box elsewhere" ? "b" : "a");
  const appEndpoint = endpointOf(route === "all at the owner" ? "a" : "b");
  const box = await startLinkFleet({
    kind: "library",
    endpoint: boxEndpoint,
    clients: homes,
    serviceKeys,
    dialsPerS: 100,
    processes: 1,
  });
  await box.untilOnline();
  const pids = [...cluster.nodes.map(({ process }) => process.pid), ...box.pids];
  const figures: CommandFigures[] = [];
  for (const concurrency of options.concurrencies) {
    const tokens = homes.slice(0, concurrency).map(({ appToken }) => appToken);
    const env = { BENCH_TOKENS: tokens.join(","), BENCH_KEYS: serviceKeys.join(",") };
    figures.push({ route, ...(await measure(appEndpoint, env, pids, concurrency, options)) });
  }
  await box.stop();
  return figures;
}

async function measure(
  endpoint: string,
  env: Readonly<Record<string, string>>,
  pids: readonly number[],
  concurrency: number,
  { warmUpMs, measuredMs }: CommandBenchOptions,
): Promise<Omit<CommandFigures, "route">> {
  const args = [endpoint, String(warmUpMs), String(measuredMs)];
  return { concurrency, ...(await measureLoad("command-load.ts", { args, env }, pids, measuredMs)) };
}
