// A shard with thousands of boxes is restarted: with its port handed over, and with the port dark for four seconds; by
// boxes that do as they are told, and by naive ones, that redial within half a second whatever they are told. Beside
// each what `moor drain --dry-run` had foretold.
//
// Spec: L3, L15, L16, L24.
// I1  Naive boxes come first: their restart teaches the node how long nobody serves, which the forecast goes by.

import { runMoor } from "@moor/testkit/moor-process";
import { startLinkFleet, type LinkFleet } from "@moor/testkit/link-fleet";
import { judgeReturn, type ReturnVerdict } from "@moor/testkit/link-journal";
import { until, within } from "@moor/testkit/within";
import { createNodeRuntime, sleep } from "@moor/runtime";
import { setLinkStage, type LinkStage } from "./link-stage.ts";
import { equals, type Claim, type LinksPace, type Scenario } from "./scenario.ts";

const runtime = createNodeRuntime();

/** Peak of redials in any second, over their mean. */
const PEAK_TO_MEAN_MAX = 1.6;
/** What all boxes may take beyond the spread. Milliseconds. */
const BACK_SLACK_MS = 2_000;
/** Time in which nobody listens, where the port is not handed over. Milliseconds. */
const GAP_MS = 4_000;
/** What starting a node takes about, for the gap to have its length. Milliseconds. */
const START_MS = 800;
const NAIVE_REDIAL_MS = 500;
const BOX_DIALS_PER_S = 500;
const PROCESSES = 2;
/** Longest wait for the first dials, and for everybody to be back beyond the spread. Milliseconds. */
const ONLINE_MS_MAX = 120_000;
const LEAVE_MS_MAX = 60_000;

/** How the boxes come back, as foretold. */
interface Foretold {
  readonly peakPerS: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly maxMs: number;
  readonly failedDials: number;
}

/** One restart. */
export interface RestartRun {
  readonly seen: ReturnVerdict;
  /** From the order to the moment the next process served. Milliseconds. */
  readonly awayMs: number;
  readonly forecast: {
    /** Links a second. */
    readonly acceptRate: number;
    /** From the close of the links to the next process serving. */
    readonly gapMs: number;
    readonly handedOver: boolean;
    readonly arrivals: { readonly spread: Foretold; readonly naive: Foretold };
  };
  /** The node's own report, logged by the next process. */
  readonly report: Readonly<Record<string, unknown>> | undefined;
}

/** Both kinds of box through the same restart. */
export interface RestartPair {
  readonly naive: RestartRun;
  readonly told: RestartRun;
}

/** Restarts one node twice, with its port handed over or dark. */
export async function runLinksRestart(isPortHeld: boolean, pace: LinksPace): Promise<RestartPair> {
  const stage = await setLinkStage({ homes: pace.restartBoxes, isPortHeld });
  try {
    const naive = await restartWith(stage, "plain", isPortHeld, pace);
    return { naive, told: await restartWith(stage, "library", isPortHeld, pace) };
  } finally {
    await stage.strike();
  }
}

async function restartWith(
  stage: LinkStage,
  kind: "library" | "plain",
  isPortHeld: boolean,
  { spreadMs }: LinksPace,
): Promise<RestartRun> {
  const fleet = await startLinkFleet({
    kind,
    endpoint: stage.endpoint,
    clients: stage.homes,
    serviceKeys: stage.serviceKeys,
    dialsPerS: BOX_DIALS_PER_S,
    redialWithinMs: NAIVE_REDIAL_MS,
    processes: PROCESSES,
  });
  try {
    await fleet.untilOnline(ONLINE_MS_MAX);
    const forecast = await foretell(stage, spreadMs);
    const sinceMs = runtime.wallMs();
    const awayMs = await restart(stage, spreadMs, isPortHeld ? 0 : GAP_MS);
    const seen = await returnOf(fleet, { clients: fleet.clientCount, sinceMs, spreadMs });
    return { seen, awayMs, forecast, report: await reportOf(stage) };
  } finally {
    await fleet.stop();
  }
}

async function foretell({ node }: LinkStage, spreadMs: number): Promise<RestartRun["forecast"]> {
  const args = ["drain", "s1", "--restart", "--dry-run", `--spread-ms=${spreadMs}`, "--json"];
  const run = await runMoor([...args, "--data", node.dataDir]);
  if (run.code !== 0) throw new Error(`moor drain --dry-run ended with ${run.code}: ${run.stderr}`);
  return JSON.parse(run.stdout) as RestartRun["forecast"];
}

/** Orders the node to leave, and starts it again once it has, as its supervisor would. */
async function restart({ node }: LinkStage, spreadMs: number, gapMs: number): Promise<number> {
  const leaving = node.process;
  const orderedAtMs = runtime.monotonicMs();
  await node.operator.demand("POST", "/v1/shards/s1/drain", {
    kind: "restart",
    spread_ms: spreadMs,
    reason: "prove",
  });
  const end = await within(leaving.ended, "the node to leave", LEAVE_MS_MAX);
  if (end.kind !== "exited" || end.code !== 0) throw new Error(`the node ended by ${JSON.stringify(end)}`);
  await sleep(runtime, Math.max(0, gapMs - START_MS - (runtime.monotonicMs() - orderedAtMs)));
  await node.start();
  return Math.round(runtime.monotonicMs() - orderedAtMs);
}

async function returnOf(
  fleet: LinkFleet,
  {
    clients,
    sinceMs,
    spreadMs,
  }: { readonly clients: number; readonly sinceMs: number; readonly spreadMs: number },
): Promise<ReturnVerdict> {
  const look = async () => judgeReturn(await fleet.journal(), { clients, sinceMs, spreadMs });
  await until(
    async () => (await fleet.countOnline()) === clients,
    "everybody to be back",
    spreadMs + ONLINE_MS_MAX,
  );
  return look();
}

async function reportOf({ node }: LinkStage): Promise<RestartRun["report"]> {
  const line = await node.process.stderr.waitFor('"drain-report"', ONLINE_MS_MAX);
  return JSON.parse(line) as Record<string, unknown>;
}

/** The scenario. */
export const linksRestartScenario: Scenario = {
  name: "links-restart",
  title: "A shard of boxes restarted: port handed over, port dark for 4 s, and naive boxes beside both",
  needsPostgres: false,
  run: async ({ links }) => {
    const handed = await runLinksRestart(true, links);
    const dark = await runLinksRestart(false, links);
    const { seen } = handed.told;
    const { restartBoxes: boxes, spreadMs } = links;
    return {
      claims: [
        equals("handed over: links ended with 4503", seen.lostBy["4503"] ?? 0, boxes),
        equals("handed over: dials that failed", seen.failedDials, 0),
        atMost(
          "handed over: peak of redials in any second, over their mean",
          seen.peakDialsPerS / seen.meanDialsPerS,
        ),
        {
          claim: `handed over: all are back within the spread and 2 s (${spreadMs + BACK_SLACK_MS} ms)`,
          isKept: seen.back === boxes && seen.lastBackMs <= spreadMs + BACK_SLACK_MS,
          seen: `${seen.back} of ${boxes}, the last after ${seen.lastBackMs} ms`,
        },
        equals("port dark: boxes that are back in the end", dark.told.seen.back, boxes),
      ],
      figures: {
        boxes,
        spreadMs,
        ...figuresOf("handed over", handed.told, "spread"),
        ...figuresOf("port dark", dark.told, "spread"),
        ...figuresOf("naive, handed over", handed.naive, "naive", handed.told),
        ...figuresOf("naive, port dark", dark.naive, "naive", dark.told),
      },
    };
  },
};

function atMost(claim: string, ratio: number): Claim {
  return {
    claim,
    isKept: ratio <= PEAK_TO_MEAN_MAX,
    seen: `${Math.round(ratio * 100) / 100} of ${PEAK_TO_MEAN_MAX}`,
  };
}

/** `by`: the run whose forecast knew how long nobody serves. */
function figuresOf(
  prefix: string,
  run: RestartRun,
  foretold: keyof RestartRun["forecast"]["arrivals"],
  by: RestartRun = run,
): Record<string, number | string> {
  const { seen, awayMs, report } = run;
  const { acceptRate, gapMs, arrivals } = by.forecast;
  const arrival = arrivals[foretold];
  return {
    [`${prefix}: away since the order, ms`]: awayMs,
    [`${prefix}: foretold to be away since the close, ms`]: Math.round(gapMs),
    [`${prefix}: hello_ok/s, from first to last`]: seen.helloOksPerS,
    [`${prefix}: foretold to be possible, hello_ok/s`]: Math.round(acceptRate),
    [`${prefix}: back after, ms`]: `p50 ${seen.backP50Ms}, p95 ${seen.backP95Ms}, last ${seen.lastBackMs}`,
    [`${prefix}: foretold back after, ms`]: `p50 ${Math.round(arrival.p50Ms)}, p95 ${Math.round(arrival.p95Ms)}, last ${Math.round(arrival.maxMs)}`,
    [`${prefix}: peak hello_ok/s`]: seen.peakHelloOksPerS,
    [`${prefix}: foretold peak hello_ok/s`]: Math.round(arrival.peakPerS),
    [`${prefix}: dials`]: `${seen.dials}, ${seen.failedDials} of them failed`,
    [`${prefix}: foretold dials that fail`]: Math.round(arrival.failedDials),
    [`${prefix}: peak dials/s`]: seen.peakDialsPerS,
    [`${prefix}: mean dials/s over the spread`]: seen.meanDialsPerS,
    [`${prefix}: the node's own report`]: `${String(report?.["back"])} back, ${String(report?.["backWithinSpread"])} within the spread, ${String(report?.["never"])} never, p95 ${String(report?.["p95Ms"])} ms, last ${String(report?.["maxMs"])} ms`,
  };
}
