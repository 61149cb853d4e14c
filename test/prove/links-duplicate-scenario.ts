// Two boxes with one identity, as a cloned card makes them: they replace each other three times, then one serves and the
// other is held off; the operator is told of both.
//
// Spec: L23.

import path from "node:path";
import { readActs } from "@moor/testkit/link-acts";
import { startAppAsker } from "@moor/testkit/link-app-asker";
import { startAskers } from "@moor/testkit/link-askers";
import { judgeCommands, type CommandVerdict } from "@moor/testkit/link-command-verdict";
import { startLinkFleet, type LinkFleet } from "@moor/testkit/link-fleet";
import type { PlantedHome } from "@moor/testkit/link-homes";
import { createTempDir } from "@moor/testkit/temp-dir";
import { until } from "@moor/testkit/within";
import { createNodeRuntime, sleep } from "@moor/runtime";
import { commandClaims, countEnds, prefixed } from "./links-move-scenario.ts";
import { setLinkStage, type LinkStage } from "./link-stage.ts";
import { equals, type LinksPace, type Scenario } from "./scenario.ts";

const runtime = createNodeRuntime();

/** Longest wait until the service has seen through it. Milliseconds: a box waits up to 16 s, then 32 s, and so on. */
const FIGHT_MS_MAX = 240_000;
const COMMANDS_PER_S = 10;
const REPLACED = "lost 4409";
const HELD_OFF = "failed 4429";

/** What a home's operator answer says of its links. */
interface LiveHome {
  readonly live: {
    readonly presence: string;
    readonly duplicate_identity: { readonly remaining_ms: number; readonly held_off: number } | null;
  } | null;
}

export interface LinksDuplicateRun {
  /** Links that a newer one of the other box took the place of. */
  readonly replacements: number;
  /** From the start of the second box to the service's verdict. Milliseconds. */
  readonly foughtMs: number;
  /** Afterwards: boxes online, ends of links, dials that were held off. */
  readonly online: number;
  readonly laterEnds: number;
  readonly heldOff: number;
  readonly shown: LiveHome["live"];
  readonly logged: number;
  /** Commands after the verdict. */
  readonly verdict: CommandVerdict;
}

/** Starts both boxes on one node. */
export async function runLinksDuplicate({ duplicateMs }: LinksPace): Promise<LinksDuplicateRun> {
  const stage = await setLinkStage({ homes: 1, hasAppTokens: true });
  const state = await createTempDir("links-duplicate");
  try {
    const [home] = stage.homes as readonly [PlantedHome];
    const ledgerFile = path.join(state.path, "ledger");
    const cards = await Promise.all(
      ["card", "clone"].map((name) => startBox(stage, path.join(state.path, name), ledgerFile)),
    );
    const startedAtMs = runtime.monotonicMs();
    await until(
      async () => (await look(stage, home))?.duplicate_identity ?? false,
      "the verdict",
      FIGHT_MS_MAX,
    );
    const foughtMs = Math.round(runtime.monotonicMs() - startedAtMs);
    const before = await endsOf(cards);
    const app = startAppAsker({ ...stage, token: home.appToken, app: "phone" });
    await app.online;
    const run = startAskers({ askers: [app], commandsPerS: COMMANDS_PER_S, prefix: "d" });
    await sleep(runtime, duplicateMs);
    const records = await run.finish();
    await until(
      async () => ((await endsOf(cards))[HELD_OFF] ?? 0) > 0,
      "the other box to be held off",
      FIGHT_MS_MAX,
    );
    const after = await endsOf(cards);
    const shown = await look(stage, home);
    const online = await Promise.all(cards.map((card) => card.countOnline()));
    await Promise.all([app, ...cards].map((each) => each.stop()));
    return {
      replacements: before[REPLACED] ?? 0,
      foughtMs,
      online: online.reduce((sum, each) => sum + each, 0),
      laterEnds: lostIn(after) - lostIn(before),
      heldOff: after[HELD_OFF] ?? 0,
      shown,
      logged: stage.node.events("duplicate-identity").length,
      verdict: judgeCommands(records, readActs(ledgerFile)),
    };
  } finally {
    await stage.strike();
    await state.remove();
  }
}

function startBox(stage: LinkStage, stateDir: string, ledgerFile: string): Promise<LinkFleet> {
  const { endpoint, homes: clients, serviceKeys } = stage;
  return startLinkFleet({
    kind: "library",
    endpoint,
    clients,
    serviceKeys,
    dialsPerS: 1,
    stateDir,
    ledgerFile,
  });
}

async function look({ node }: LinkStage, { home }: PlantedHome): Promise<LiveHome["live"]> {
  return (await node.operator.demand<LiveHome & Record<string, unknown>>("GET", `/v1/homes/${home}`)).live;
}

async function endsOf(fleets: readonly LinkFleet[]): Promise<Record<string, number>> {
  return countEnds((await Promise.all(fleets.map((fleet) => fleet.journal()))).flat());
}

function lostIn(ends: Readonly<Record<string, number>>): number {
  return Object.entries(ends).reduce(
    (sum, [name, count]) => (name.startsWith("lost") ? sum + count : sum),
    0,
  );
}

/** The scenario. */
export const linksDuplicateScenario: Scenario = {
  name: "links-duplicate",
  title: "Two boxes with one identity",
  needsPostgres: false,
  run: async ({ links }) => {
    const run = await runLinksDuplicate(links);
    const held = run.shown?.duplicate_identity;
    return {
      claims: [
        equals("replacements before the one that is linked stays", run.replacements, 3),
        equals("boxes online afterwards", run.online, 1),
        equals("links that ended afterwards", run.laterEnds, 0),
        equals("the operator sees the home online", run.shown?.presence ?? "nothing", "online"),
        {
          claim: "the operator sees that another box is held off",
          isKept: (held?.held_off ?? 0) > 0 && run.logged === 1,
          seen: `${held?.held_off ?? 0} times, ${run.logged} warning`,
        },
        equals("commands afterwards that have their result", run.verdict.results, run.verdict.commands),
        ...commandClaims(run.verdict),
      ],
      figures: {
        foughtMs: run.foughtMs,
        heldOffDials: run.heldOff,
        staysForMs: held?.remaining_ms ?? 0,
        commands: run.verdict.commands,
        ...prefixed("askings ended", run.verdict.endings),
      },
    };
  },
};
