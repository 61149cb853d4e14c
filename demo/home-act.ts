// The demo's third act: a box behind a home router and an app in a browser page, both linked to a shard of one node; the
// home is moved under their commands, then the node is restarted. The app and the box's ledger count.
//
// I1  Every command that the app sent was acted on exactly once, and the app learnt its result.

import { setTimeout as pause } from "node:timers/promises";
import { startApp, type RunningApp } from "./app-browser.ts";
import { HOME, setHomeStage, type HomeStage } from "./home-stage.ts";
import type { Narrator } from "./narrator.ts";

const QUIET_MS = 2_000;
const LOOK_INTERVAL_MS = 50;
/** Longest wait for app and box to be where they belong: a restart may spread clients over a minute. */
const DEADLINE_MS = 90_000;

/** Plays the act; gives what it left behind, in words. Throws when a command was hurt. */
export async function playHomeAct(
  narrator: Narrator,
  { screenshot }: { readonly screenshot?: string | undefined } = {},
): Promise<readonly string[]> {
  const stage = await setHomeStage(narrator);
  let left: readonly string[];
  try {
    const app = await startApp(stage);
    try {
      await moveAndRestart(stage, app, narrator);
      if (screenshot !== undefined) await app.screenshot(screenshot);
    } finally {
      await app.close();
    }
  } finally {
    left = await stage.strike();
  }
  return left;
}

async function moveAndRestart(stage: HomeStage, app: RunningApp, narrator: Narrator): Promise<void> {
  await untilBothCame(stage, app, { app: 0, box: 0 });
  narrator.say(`An app ${app.where} is linked too, at ${await hostOf(app)}, and sends commands.`);
  await pause(QUIET_MS);

  const unmoved = await countLinks(stage, app);
  await stage.operate(["move", HOME, "--to", "s2"]);
  await untilBothCame(stage, app, unmoved);
  narrator.say(`moor move ${HOME} --to s2: both were told where, and are at ${await hostOf(app)}.`);
  await pause(QUIET_MS);

  narrator.say("The node is restarted: its next process takes the port over (moor serve --take-over).");
  const unrestarted = await countLinks(stage, app);
  await stage.restart();
  await untilBothCame(stage, app, unrestarted);
  narrator.say(`Both were told to come back, and when; they are at ${await hostOf(app)} again.`);
  await pause(QUIET_MS);
  await judge(stage, app, narrator);
}

/** How often each has come online. */
interface LinkCounts {
  readonly app: number;
  readonly box: number;
}

async function countLinks({ box }: HomeStage, app: RunningApp): Promise<LinkCounts> {
  const { hosts } = await app.tally();
  return { app: hosts.length, box: box.stderr.text().split('"link-online"').length - 1 };
}

async function hostOf(app: RunningApp): Promise<string> {
  return (await app.tally()).hosts.at(-1) ?? "no host";
}

/** Waits until both have come online since then. */
async function untilBothCame(stage: HomeStage, app: RunningApp, since: LinkCounts): Promise<void> {
  await until("app and box to come online", async () => {
    const now = await countLinks(stage, app);
    return now.app > since.app && now.box > since.box;
  });
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + DEADLINE_MS;
  while (!(await isSo())) {
    if (performance.now() > endMs) throw new Error(`waited ${DEADLINE_MS / 1000} s for ${what}`);
    await pause(LOOK_INTERVAL_MS);
  }
}

async function judge(stage: HomeStage, app: RunningApp, narrator: Narrator): Promise<void> {
  await app.stopSending();
  await until("the last answers", async () => {
    const { sent, answered } = await app.tally();
    return answered === sent;
  });
  const { sent, answered, askedAgain } = await app.tally();
  const acted = stage.ledger();
  const twice = acted.length - new Set(acted).size;
  narrator.say(
    `${sent} commands, ${answered} answered; what a move or restart left open was asked for again by id, ` +
      `${askedAgain} times. The box acted ${acted.length} times, ${twice} twice.`,
  );
  if (sent === 0 || acted.length !== sent || twice > 0) throw new Error("commands were hurt");
}
