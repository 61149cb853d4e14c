// Homes are moved again and again while apps send commands and a box is killed and started again: each command is acted
// on once at most, every outcome is true, and the result is had by asking again.
//
// Spec: L20–L22, L31, L33.

import path from "node:path";
import { moveRound, type MovesMade } from "@moor/testkit/fleet-moves";
import { readActs } from "@moor/testkit/link-acts";
import { startAppAsker, type AppAsker } from "@moor/testkit/link-app-asker";
import { startAskers } from "@moor/testkit/link-askers";
import {
  commandFaultsOf,
  judgeCommands,
  type CommandRecord,
  type CommandVerdict,
} from "@moor/testkit/link-command-verdict";
import { startLinkFleet, type LinkFleet } from "@moor/testkit/link-fleet";
import type { PlantedHome } from "@moor/testkit/link-homes";
import type { LinkEvent } from "@moor/testkit/link-journal";
import type { PostgresServer } from "@moor/testkit/postgres";
import { createTempDir } from "@moor/testkit/temp-dir";
import { until } from "@moor/testkit/within";
import { createNodeRuntime, sleep } from "@moor/runtime";
import { setLinkStage, type LinkLayout, type LinkStage } from "./link-stage.ts";
import { equals, type Claim, type LinksPace, type Scenario } from "./scenario.ts";

const runtime = createNodeRuntime();

/** Longest time a box takes for a command. Milliseconds: long enough that moves and the kill meet some under way. */
const ACT_MS = 60;
const BOX_DIALS_PER_S = 50;
/** Longest wait until the service has noted that box and apps follow, which it does in batches. Milliseconds. */
const GATE_MS_MAX = 60_000;

export interface LinksMoveRun {
  readonly verdict: CommandVerdict;
  readonly moves: MovesMade;
  /** Commands left unknown that no killed box had begun. */
  readonly unexplained: number;
  /** Ends of boxes' links and dials by code. */
  readonly boxEnds: Readonly<Record<string, number>>;
  readonly boxesOnline: number;
  readonly boxes: number;
}

/** Boxes in two processes: one that stays, one that is killed in the middle. */
interface Boxes {
  readonly staying: LinkFleet;
  readonly killed: LinkFleet;
  readonly restart: () => Promise<LinkFleet>;
}

/** Runs it on one layout. */
export async function runLinksMove(
  layout: LinkLayout,
  pace: LinksPace,
  server?: PostgresServer,
): Promise<LinksMoveRun> {
  const own = server === undefined ? {} : { server };
  const stage = await setLinkStage({ homes: pace.movedHomes, layout, hasAppTokens: true, ...own });
  const state = await createTempDir("links-move");
  try {
    const ledgerFile = path.join(state.path, "ledger");
    const boxes = await startBoxes(stage, state.path, ledgerFile);
    const apps = await startApps(stage);
    await untilGateOpens(stage, stage.homes);
    const run = startAskers({ askers: apps, commandsPerS: pace.commandsPerS, prefix: "c" });
    const moving = moveAll(stage, pace);
    await sleep(runtime, pace.commandsMs / 2);
    const killedAtMs = runtime.wallMs();
    await boxes.killed.kill();
    const restarted = await boxes.restart();
    const moves = await moving;
    const records = await run.finish();
    const fleets = [boxes.staying, restarted];
    await Promise.all(fleets.map((fleet) => fleet.untilOnline()));
    const journals = await Promise.all(fleets.map((fleet) => fleet.journal()));
    await Promise.all([...apps, ...fleets].map((each) => each.stop()));
    const verdict = judgeCommands(records, readActs(ledgerFile));
    const killedHomes = halves(stage.homes).killed.map(({ home }) => home);
    return {
      verdict,
      moves,
      unexplained: records.filter((record) => isUnexplained(record, killedHomes, killedAtMs)).length,
      boxEnds: countEnds(journals.flat()),
      boxesOnline: fleets.reduce((sum, { clientCount }) => sum + clientCount, 0),
      boxes: stage.homes.length,
    };
  } finally {
    await stage.strike();
    await state.remove();
  }
}

function halves(
  homes: readonly PlantedHome[],
): Readonly<Record<"staying" | "killed", readonly PlantedHome[]>> {
  const half = Math.ceil(homes.length / 2);
  return { staying: homes.slice(0, half), killed: homes.slice(half) };
}

async function startBoxes(stage: LinkStage, stateDir: string, ledgerFile: string): Promise<Boxes> {
  const { staying, killed } = halves(stage.homes);
  const start = (clients: readonly PlantedHome[], endpoint: string) =>
    startLinkFleet({
      kind: "library",
      endpoint,
      clients,
      serviceKeys: stage.serviceKeys,
      dialsPerS: BOX_DIALS_PER_S,
      stateDir,
      ledgerFile,
      actMs: ACT_MS,
    });
  const [first, last] = [stage.endpoints[0] ?? "", stage.endpoints.at(-1) ?? ""];
  const boxes = { staying: await start(staying, first), killed: await start(killed, last) };
  await Promise.all([boxes.staying.untilOnline(), boxes.killed.untilOnline()]);
  return { ...boxes, restart: () => start(killed, last) };
}

/** For each home one app with a link and one that sends one-shots, at different nodes where there are two. */
async function startApps({ homes, endpoints, serviceKeys }: LinkStage): Promise<readonly AppAsker[]> {
  const apps = homes.flatMap(({ appToken: token }, at) => {
    const endpoint = (turn: number) => endpoints[(at + turn) % endpoints.length] ?? "";
    return [
      startAppAsker({ endpoint: endpoint(0), token, app: "link", serviceKeys }),
      startAppAsker({ endpoint: endpoint(1), token, app: "once", serviceKeys, by: "once" }),
    ];
  });
  await Promise.all(apps.map(({ online }) => online));
  return apps;
}

/** Every home is moved to the second shard and back: only who is known to follow may leave the default one. Spec L22. */
export async function untilGateOpens(
  { cluster, node }: LinkStage,
  homes: readonly PlantedHome[],
): Promise<void> {
  const [first = "", second = ""] = cluster.shards;
  for (const { home } of homes) {
    const tryMove = async (to: string) => (await node.operator.move(home, to, "gate")).status === 200;
    await until(() => tryMove(second), `${home} to be allowed to leave`, GATE_MS_MAX);
    await until(() => tryMove(first), `${home} to come back`, GATE_MS_MAX);
  }
}

function moveAll({ cluster, homes }: LinkStage, { moveTimes, commandsMs }: LinksPace): Promise<MovesMade> {
  return moveRound({
    operators: cluster.nodes.map(({ operator }) => operator),
    tunnels: homes.map(({ home }) => home),
    shards: cluster.shards,
    times: moveTimes,
    durationMs: commandsMs,
  });
}

/** A killed box may have begun what was asked before its end; nothing else may stay unknown. */
function isUnexplained(
  { home, asks }: CommandRecord,
  killedHomes: readonly string[],
  killedAtMs: number,
): boolean {
  const last = asks.at(-1)?.ending.kind;
  if (last !== "unknown" && last !== "broken") return false;
  return !killedHomes.includes(home) || (asks[0]?.askedAtMs ?? 0) > killedAtMs;
}

/** Ends of links and failed dials by kind and code. */
export function countEnds(events: readonly LinkEvent[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const event of events) {
    if (event.kind !== "lost" && event.kind !== "failed") continue;
    const name = `${event.kind} ${event.fault ?? event.code}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

/** The claims about commands that every scenario makes. */
export function commandClaims(verdict: CommandVerdict): readonly Claim[] {
  return Object.entries(commandFaultsOf(verdict)).map(([fault, count]) => ({
    claim: `${COMMAND_FAULT_WORDS[fault] ?? fault}: 0 of ${verdict.commands}`,
    isKept: count === 0 && verdict.commands > 0,
    seen: String(count),
  }));
}

const COMMAND_FAULT_WORDS: Readonly<Record<string, string>> = {
  actedTwice: "commands acted on twice",
  resultsUnacted: "results of commands that were not acted on",
  deniedAndActed: "commands acted on although told not_delivered or expired",
  actedElsewhere: "commands acted on in another home",
  foreignResults: "results of other commands, or that changed",
};

/** The scenario on one layout. */
export function linksMoveScenario(layout: LinkLayout): Scenario {
  return {
    name: `links-move-${layout}`,
    title: `Homes moved under commands, a box killed and restarted: ${layout}`,
    needsPostgres: layout === "two-nodes",
    run: async ({ links }) => {
      const { verdict, moves, unexplained, boxEnds, boxesOnline, boxes } = await runLinksMove(layout, links);
      return {
        claims: [
          equals(`every home moved ${links.moveTimes} times`, moves.made, boxes * links.moveTimes),
          ...commandClaims(verdict),
          equals("commands without a result that no killed box had begun", unexplained, 0),
          equals("boxes online at the end", boxesOnline, boxes),
        ],
        figures: {
          commands: verdict.commands,
          results: verdict.results,
          resultsByAskingAgain: verdict.resultsByAskingAgain,
          leftUnknown: verdict.leftUnknown,
          ...(verdict.leftUnknown === 0 ? {} : { leftUnknownFor: verdict.leftUnknownExamples.join("; ") }),
          ...prefixed("askings ended", verdict.endings),
          ...verdict.latency,
          moves: moves.made,
          movesAcked: moves.acked,
          slowestMoveMs: moves.slowestMs,
          ...prefixed("boxes", boxEnds),
        },
      };
    },
  };
}

/** Counts by name as figures. */
export function prefixed(prefix: string, counts: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).map(([name, count]) => [`${prefix} ${name}`, count]));
}
