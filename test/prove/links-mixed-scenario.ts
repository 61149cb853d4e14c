// A mixed fleet, half of whose boxes and apps follow and half do not, over moves and
// restarts. Who does not follow never sees 4421, and nobody is stranded.
//
// Spec: L6, L15, L16, L21, L22.

import path from "node:path";
import { readActs } from "@moor/testkit/link-acts";
import { startAppAsker, type AppAsker } from "@moor/testkit/link-app-asker";
import { pursue, startAskers } from "@moor/testkit/link-askers";
import { judgeCommands, type CommandVerdict } from "@moor/testkit/link-command-verdict";
import { startLinkFleet, type LinkFleet } from "@moor/testkit/link-fleet";
import type { LinkEvent } from "@moor/testkit/link-journal";
import type { PostgresServer } from "@moor/testkit/postgres";
import { createTempDir } from "@moor/testkit/temp-dir";
import { until } from "@moor/testkit/within";
import { createNodeRuntime, sleep } from "@moor/runtime";
import { commandClaims, countEnds, prefixed } from "./links-move-scenario.ts";
import { setLinkStage, type LinkLayout, type LinkStage } from "./link-stage.ts";
import { equals, type LinksPace, type Scenario } from "./scenario.ts";

const runtime = createNodeRuntime();

/** Close code of a redirect. Spec L1. */
const WRONG_SHARD = 4421;
const BOX_DIALS_PER_S = 50;
/** Longest wait for everybody to be online after the last move and restart. Milliseconds: one long backoff. */
const HOME_MS_MAX = 90_000;

export interface LinksMixedRun {
  readonly verdict: CommandVerdict;
  readonly boxes: number;
  /** Boxes and apps that were not online at the end. */
  readonly stranded: number;
  /** Redirects that reached a client without `shard`. */
  readonly strayRedirects: number;
  /** Redirects that followers got. */
  readonly redirects: number;
  readonly moves: number;
  readonly ends: Readonly<Record<string, number>>;
  /** Commands to each home at the end, by each app, that had their result. */
  readonly lastCommands: number;
  readonly lastResults: number;
}

/** A third of the homes each. */
interface MixedBoxes {
  readonly following: LinkFleet;
  readonly plainLibrary: LinkFleet;
}

/** Runs it on one layout: every home moves to and fro, and every node restarts once. */
export async function runLinksMixed(
  layout: LinkLayout,
  pace: LinksPace,
  server?: PostgresServer,
): Promise<LinksMixedRun> {
  const own = server === undefined ? {} : { server };
  const stage = await setLinkStage({ homes: pace.movedHomes * 2, layout, hasAppTokens: true, ...own });
  const state = await createTempDir("links-mixed");
  const ledgerFile = path.join(state.path, "ledger");
  try {
    const boxes = await startBoxes(stage, ledgerFile);
    const apps = await startApps(stage);
    const run = startAskers({ askers: apps, commandsPerS: pace.commandsPerS, prefix: "m" });
    const moves = await moveAndRestart(stage, pace);
    const records = await run.finish();
    const fleets = Object.values(boxes) as readonly LinkFleet[];
    const stranded = await countStranded(fleets, apps);
    const last = await Promise.all(apps.map((app, at) => pursue(app, `last-${at}`)));
    const [following, ...others] = await Promise.all(fleets.map((fleet) => fleet.journal()));
    await Promise.all([...apps, ...fleets].map((each) => each.stop()));
    return {
      verdict: judgeCommands([...records, ...last], readActs(ledgerFile)),
      boxes: stage.homes.length,
      stranded,
      strayRedirects: countRedirects(others.flat()),
      redirects: countRedirects(following ?? []),
      moves,
      ends: countEnds([...(following ?? []), ...others.flat()]),
      lastCommands: last.length,
      lastResults: last.filter(({ asks }) => asks.at(-1)?.ending.kind === "result").length,
    };
  } finally {
    await stage.strike();
    await state.remove();
  }
}

async function startBoxes(
  { homes, endpoints, serviceKeys }: LinkStage,
  ledgerFile: string,
): Promise<MixedBoxes> {
  const common = { kind: "library", serviceKeys, dialsPerS: BOX_DIALS_PER_S, ledgerFile } as const;
  const half = Math.ceil(homes.length / 2);
  const [first = "", last = first] = [endpoints[0], endpoints.at(-1)];
  const boxes = {
    following: await startLinkFleet({ ...common, endpoint: first, clients: homes.slice(0, half) }),
    plainLibrary: await startLinkFleet({ ...common, endpoint: last, clients: homes.slice(half), caps: [] }),
  };
  await Promise.all(Object.values(boxes).map((fleet) => fleet.untilOnline()));
  return boxes;
}

/** Every home has an app that follows and one that does not, at different nodes where there are two. */
async function startApps({ homes, endpoints, serviceKeys }: LinkStage): Promise<readonly AppAsker[]> {
  const apps = homes.flatMap(({ appToken: token }, at) => {
    const endpoint = (turn: number) => endpoints[(at + turn) % endpoints.length] ?? "";
    return [
      startAppAsker({ endpoint: endpoint(0), token, app: "follows", serviceKeys }),
      startAppAsker({ endpoint: endpoint(1), token, app: "plain", serviceKeys, caps: [] }),
    ];
  });
  await Promise.all(apps.map(({ online }) => online));
  return apps;
}

/** Orders every move with force, since L22 would keep these homes where they are. */
async function moveAndRestart({ cluster, homes }: LinkStage, pace: LinksPace): Promise<number> {
  let made = 0;
  const { nodes, shards } = cluster;
  const rounds = pace.moveTimes;
  const pauseMs = pace.commandsMs / (rounds + nodes.length);
  for (let round = 0; round < rounds; round += 1) {
    const to = shards[(round + 1) % shards.length] ?? "";
    for (const { home } of homes) {
      const reply = await nodes[round % nodes.length]?.operator.request("POST", "/v1/moves", {
        tenant: home,
        to,
        reason: "mixed",
        force: true,
      });
      if (reply?.status === 200) made += 1;
    }
    await sleep(runtime, pauseMs);
    const node = nodes[round];
    if (node === undefined) continue;
    await node.restart();
    await sleep(runtime, pauseMs);
  }
  return made;
}

async function countStranded(fleets: readonly LinkFleet[], apps: readonly AppAsker[]): Promise<number> {
  const boxes = fleets.map(async (fleet) => {
    await fleet.untilOnline(HOME_MS_MAX).catch(() => {});
    return fleet.clientCount - (await fleet.countOnline());
  });
  const counts = await Promise.all(boxes);
  const awayApps = () => apps.filter(({ isOnline }) => !isOnline).length;
  await until(() => awayApps() === 0, "every app to be online", HOME_MS_MAX).catch(() => {});
  return counts.reduce((sum, each) => sum + each, awayApps());
}

function countRedirects(events: readonly LinkEvent[]): number {
  return events.filter((event) => "code" in event && event.code === WRONG_SHARD).length;
}

/** The scenario on one layout. */
export function linksMixedScenario(layout: LinkLayout): Scenario {
  return {
    name: `links-mixed-${layout}`,
    title: `A mixed fleet over moves and restarts: ${layout}`,
    needsPostgres: layout === "two-nodes",
    run: async ({ links }) => {
      const run = await runLinksMixed(layout, links);
      return {
        claims: [
          equals("redirects (4421) to clients without shard", run.strayRedirects, 0),
          equals("boxes and apps that were not online in the end", run.stranded, 0),
          equals("last commands to each home that had their result", run.lastResults, run.lastCommands),
          ...commandClaims(run.verdict),
        ],
        figures: {
          boxes: run.boxes,
          moves: run.moves,
          redirectsToFollowers: run.redirects,
          commands: run.verdict.commands,
          results: run.verdict.results,
          leftUnknown: run.verdict.leftUnknown,
          ...(run.verdict.leftUnknown === 0
            ? {}
            : { leftUnknownFor: run.verdict.leftUnknownExamples.join("; ") }),
          ...prefixed("askings ended", run.verdict.endings),
          ...prefixed("boxes", run.ends),
        },
      };
    },
  };
}
