// A directory of 100,000 tunnels: look-ups, pages, the start of a node, and what a tunnel costs a replica.
//
// Design: "Directory, changes, replicas".   Bounds are for the full size; a smaller one must meet them as well.

import { readdirSync, statSync } from "node:fs";
import path from "node:path";
import { createNodeRuntime } from "@moor/runtime";
import type { ClusterNode } from "@moor/testkit/cluster-node";
import { until } from "@moor/testkit/within";
import { MEMORY_PROBE_ARGS, readMemory } from "../bench/parts.ts";
import { setStage, type StageOptions } from "./prove-stage.ts";
import { below, type Pace, type Scenario, type ScenarioResult } from "./scenario.ts";

export interface ScaleRun {
  readonly tunnels: number;
  readonly createdPerS: number;
  /** Asking a node's operator API where a tunnel lives. */
  readonly where: Times;
  /** A page of 100 tunnels. */
  readonly page: Times;
  /** From the start of the process to its ready line, the directory's data at hand. */
  readonly startMs: number;
  /** What each tunnel adds to a node that has just started. */
  readonly residentBytesPerTunnel: number;
  readonly diskBytesPerTunnel: number;
}

const runtime = createNodeRuntime();

/** How many tunnels are created at a time. */
const CREATORS = 128;
const LOOK_UPS = 1_000;
const PAGES = 200;
const WHERE_MS_MAX = 5;
const PAGE_MS_MAX = 50;
const START_MS_MAX = 3_000;
/** Longest wait for another node's replica to show everything. Milliseconds. */
const REPLICA_MS_MAX = 120_000;

/** Fills a directory and measures at the node whose replica is farthest from it. */
export async function runScale(directory: StageOptions["directory"], pace: Pace): Promise<ScaleRun> {
  const stage = await setStage({ directory, entryMode: "replica", nodeArgs: MEMORY_PROBE_ARGS });
  try {
    const maker = stage.cluster.nodes[0] as ClusterNode;
    const measured = stage.cluster.nodes.at(-1) as ClusterNode;
    await restart(measured);
    const empty = { memory: await readMemory(measured.process), diskBytes: sizeOf(measured.dataDir) };
    const startedAtMs = runtime.monotonicMs();
    const ids = await fill(maker, pace.scaleTunnels);
    const createdPerS = (ids.length * 1000) / (runtime.monotonicMs() - startedAtMs);
    const last = ids.at(-1) ?? "";
    await until(() => measured.operator.where(last), "the replica to show the last tunnel", REPLICA_MS_MAX);
    const startMs = await restart(measured);
    const full = { memory: await readMemory(measured.process), diskBytes: sizeOf(measured.dataDir) };
    const where = await timeEach(LOOK_UPS, (at) =>
      measured.operator.where(ids[(at * 7919) % ids.length] ?? ""),
    );
    const page = await timePages(measured);
    return {
      tunnels: ids.length,
      createdPerS: Math.round(createdPerS),
      where,
      page,
      startMs: Math.round(startMs),
      residentBytesPerTunnel: Math.round((full.memory.rss - empty.memory.rss) / ids.length),
      diskBytesPerTunnel: Math.round((full.diskBytes - empty.diskBytes) / ids.length),
    };
  } finally {
    await stage.strike();
  }
}

async function restart(node: ClusterNode): Promise<number> {
  await node.stop();
  return node.start();
}

/** Creates tunnels through the operator API, as many at a time as a script would. */
async function fill(node: ClusterNode, count: number): Promise<string[]> {
  const ids: string[] = [];
  let started = 0;
  const creator = async () => {
    while (started < count) {
      started += 1;
      ids.push((await node.operator.createTunnel()).id);
    }
  };
  await Promise.all(Array.from({ length: CREATORS }, creator));
  return ids;
}

interface Times {
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  readonly slowestMs: number;
}

/** One after the other, as an operator asks. */
async function timeEach(count: number, run: (at: number) => Promise<unknown>): Promise<Times> {
  const tookMs: number[] = [];
  for (let at = 0; at < count; at += 1) {
    const startMs = runtime.monotonicMs();
    await run(at);
    tookMs.push(runtime.monotonicMs() - startMs);
  }
  tookMs.sort((one, other) => one - other);
  const rounded = (value = Number.NaN) => Math.round(value * 100) / 100;
  const at = (share: number) => rounded(tookMs[Math.floor((count - 1) * share)]);
  return { p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99), slowestMs: at(1) };
}

/** Walks the list of tunnels, 100 a page. */
function timePages(node: ClusterNode): Promise<Times> {
  let after: string | null = null;
  return timeEach(PAGES, async () => {
    const query: string = after === null ? "limit=100" : `limit=100&after=${encodeURIComponent(after)}`;
    after = (await node.operator.demand<{ next: string | null }>("GET", `/v1/tunnels?${query}`)).next;
  });
}

function sizeOf(dir: string): number {
  return readdirSync(dir).reduce((sum, file) => sum + statSync(path.join(dir, file)).size, 0);
}

/** The scenario on one directory. */
export function scaleScenario(directory: StageOptions["directory"]): Scenario {
  return {
    name: `scale-${directory}`,
    title: `Many tunnels: ${directory}`,
    needsPostgres: directory === "postgres",
    run: async (pace) => describe(await runScale(directory, pace)),
  };
}

function describe({ where, page, ...rest }: ScaleRun): ScenarioResult {
  return {
    claims: [
      below("19 of 20 look-ups of a tunnel (where) in under 5 ms", where.p95Ms, WHERE_MS_MAX, "ms"),
      below("19 of 20 pages of 100 tunnels in under 50 ms", page.p95Ms, PAGE_MS_MAX, "ms"),
      below("a node starts in under 3 s", rest.startMs, START_MS_MAX, "ms"),
    ],
    figures: { ...rest, ...prefixed("where", where), ...prefixed("page", page) },
  };
}

function prefixed(prefix: string, times: Times): Record<string, number> {
  return Object.fromEntries(Object.entries(times).map(([name, ms]) => [`${prefix} ${name}`, ms]));
}
