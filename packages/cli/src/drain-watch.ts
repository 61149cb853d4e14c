// Watches a restart to its end: the node leaves, its next process serves, its clients come back.
//
// Spec: L24; design "Drains and restarts".
// I1  Watching changes nothing: the restart goes on with or without a watcher.
// I2  The node asked may be the one that restarts: it is looked for anew each time, and may be away for AWAY_MS_MAX.

import { sleep, type Runtime } from "@moor/runtime";
import type { DrainForecast, DrainReport } from "@moor/server/drains";
import { RefusedError, UnreachableError } from "./exit-code.ts";
import type { FleetClient } from "./fleet-client.ts";
import { ProgressLine, type ProgressOutput } from "./progress-line.ts";

/** How often it is looked. Milliseconds. */
const LOOK_INTERVAL_MS = 500;
/** Longest time from the moment the node has left to its next process serving. Milliseconds. */
const AWAY_MS_MAX = 120_000;
/** Longest time that calls may hold a leaving node up, beyond its waves. Milliseconds: the longest grace and a minute. */
const LEAVING_MS_MAX = 1_020_000;

/** The restart to watch. */
export interface Restart {
  readonly shard: string;
  /** Incarnation of the node's process before the order. */
  readonly incarnation: string;
  readonly forecast: DrainForecast;
}

/** What a watch needs. */
export interface DrainWatch {
  /** The operator listener, looked for anew. */
  readonly client: () => Pick<FleetClient, "listNodes" | "drainReport">;
  readonly runtime: Runtime;
  readonly output: ProgressOutput;
}

/** What one look shows. */
type Sight =
  | { readonly kind: "leaving" }
  | { readonly kind: "away" }
  | { readonly kind: "back"; readonly report: DrainReport | undefined };

/**
 * Resolves with the report once it is done, or undefined where there were no links to report on. Rejects with
 * UnreachableError when the node stays away.
 */
export async function watchRestart(restart: Restart, watch: DrainWatch): Promise<DrainReport | undefined> {
  const { runtime, output } = watch;
  const progress = new ProgressLine(output, runtime);
  const orderedAtMs = runtime.monotonicMs();
  let seenAtMs = orderedAtMs;
  for (;;) {
    const sight = await look(restart, watch);
    progress.show(sightText(restart, sight), sight.kind);
    if (sight.kind === "back" && (sight.report === undefined || sight.report.state !== "watching")) {
      progress.end();
      return sight.report;
    }
    const nowMs = runtime.monotonicMs();
    if (sight.kind !== "away") seenAtMs = nowMs;
    const isGivenUp =
      nowMs - seenAtMs > AWAY_MS_MAX || nowMs - orderedAtMs > endMs(restart.forecast) + LEAVING_MS_MAX;
    if (isGivenUp) throw stayedAway(restart);
    await sleep(runtime, LOOK_INTERVAL_MS);
  }
}

async function look({ shard, incarnation, forecast }: Restart, { client }: DrainWatch): Promise<Sight> {
  try {
    const asked = client();
    const { items } = await asked.listNodes();
    const node = items.find(({ id, shards }) => id === forecast.node && shards.includes(shard));
    if (node === undefined || node.state !== "live") return { kind: "away" };
    if (node.incarnation === incarnation) return { kind: "leaving" };
    return { kind: "back", report: await reportOf(asked, shard) };
  } catch (error) {
    if (error instanceof UnreachableError || isPassing(error)) return { kind: "away" };
    throw error;
  }
}

async function reportOf(
  client: Pick<FleetClient, "drainReport">,
  shard: string,
): Promise<DrainReport | undefined> {
  try {
    return await client.drainReport(shard);
  } catch (error) {
    if (error instanceof RefusedError && error.code === "not_found") return undefined;
    throw error;
  }
}

/** What a node says of another one that comes up or goes down. */
function isPassing(error: unknown): boolean {
  return error instanceof RefusedError && (error.code === "node_unreachable" || error.code === "conflict");
}

function sightText({ forecast }: Restart, sight: Sight): string {
  const { node, links } = forecast;
  switch (sight.kind) {
    case "leaving":
      return `${node} finishes its calls and closes ${links} links`;
    case "away":
      return `${node} has left; its next process is waited for`;
    case "back": {
      if (sight.report === undefined) return `${node} serves again`;
      const { back, elsewhere, never } = sight.report;
      return `${node} serves again; ${back + elsewhere} of ${back + elsewhere + never} clients are back`;
    }
  }
}

/** When the last wave's spread is over. Milliseconds after the first close. */
function endMs({ waves, spread_ms: spreadMs }: DrainForecast): number {
  return (waves.at(-1)?.at_ms ?? 0) + spreadMs;
}

function stayedAway({ shard, forecast }: Restart): UnreachableError {
  return new UnreachableError(
    `${forecast.node}, which runs ${shard}, did not come back`,
    "It was told to leave, for whoever started it to start it anew: look there, and at its log.",
  );
}
