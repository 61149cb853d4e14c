// Calls: direct, through a bare reverse proxy, and through Moor, at one concurrency after the other.

import { createTunnel, startMoorAgent, startMoorDev, type MoorDev } from "@moor/testkit/moor-process";
import type { RunningProcess } from "@moor/testkit/processes";
import { measureLoad, type LoadFigures } from "./measure-load.ts";
import { startPart } from "./parts.ts";

export type Route = "direct" | "proxy" | "moor";

/** `addedCpuUs` is 0 for the direct route: there is nothing between. */
export interface CallFigures extends LoadFigures {
  readonly route: Route;
  readonly concurrency: number;
}

interface MeasuredRoute {
  readonly route: Route;
  readonly url: string;
  readonly key?: string | undefined;
  /** Processes whose CPU time the route adds. */
  readonly between: readonly RunningProcess[];
}

export interface CallBenchOptions {
  readonly concurrencies: readonly number[];
  readonly warmUpMs: number;
  readonly measuredMs: number;
  readonly report: (figures: CallFigures) => void;
}

/** Measures every route at every concurrency, the routes taking turns so that a slow moment hits none of them alone. */
export async function benchCalls(options: CallBenchOptions): Promise<CallFigures[]> {
  const target = await startPart("target.ts");
  const targetPort = await target.stdout.waitFor(/^\d+$/);
  const targetUrl = `http://127.0.0.1:${targetPort}/mcp`;
  const proxy = await startPart("reverse-proxy.ts", { args: [targetPort] });
  const proxyPort = await proxy.stdout.waitFor(/^\d+$/);
  const node: MoorDev = await startMoorDev();
  const tunnel = await createTunnel(node, ["--name", "bench"]);
  const agent = await startMoorAgent({
    endpoint: node.endpoint,
    tunnel,
    mcp: targetUrl,
    args: ["--concurrency", "100"],
  });

  const routes: readonly MeasuredRoute[] = [
    { route: "direct", url: targetUrl, between: [] },
    { route: "proxy", url: `http://127.0.0.1:${proxyPort}/mcp`, between: [proxy] },
    {
      route: "moor",
      url: tunnel.connectorUrl,
      key: tunnel.connectorKey ?? undefined,
      between: [node.process, agent],
    },
  ];
  const all: CallFigures[] = [];
  for (const concurrency of options.concurrencies) {
    for (const measured of routes) {
      const figures = { route: measured.route, ...(await measureCalls(measured, concurrency, options)) };
      options.report(figures);
      all.push(figures);
    }
  }
  await agent.stop();
  await node.stop();
  await Promise.all([proxy.stop(), target.stop()]);
  return all;
}

/** Measures one route at one concurrency. */
export async function measureCalls(
  measured: Pick<MeasuredRoute, "url" | "key" | "between">,
  concurrency: number,
  { warmUpMs, measuredMs }: Pick<CallBenchOptions, "warmUpMs" | "measuredMs">,
): Promise<Omit<CallFigures, "route">> {
  const part = {
    args: [measured.url, String(concurrency), String(warmUpMs), String(measuredMs)],
    env: { BENCH_KEY: measured.key },
  };
  const pids = measured.between.map(({ pid }) => pid);
  return { concurrency, ...(await measureLoad("load.ts", part, pids, measuredMs)) };
}
