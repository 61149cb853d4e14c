// The demo's third act: a box behind a home router and an app in a browser page, both linked to a shard of one node; the
// home is moved under their commands, then the node is restarted. The page and the box's ledger count.
//
// I1  Every command that the page sent was acted on exactly once, and the page learnt its result.

import { setTimeout as pause } from "node:timers/promises";
import { serveAppPage } from "./app-page-server.ts";
import { browserMissing, openPage, type OpenPage } from "./app-browser.ts";
import { HOME, setHomeStage, type HomeStage } from "./home-stage.ts";
import type { Narrator } from "./narrator.ts";

const QUIET_MS = 2_000;
const LOOK_INTERVAL_MS = 50;
/** Longest wait for page and box to be where they belong. A restart spreads clients over some seconds. */
const DEADLINE_MS = 60_000;

/** Plays the act; gives what it left behind, in words. Throws when a command was hurt. */
export async function playHomeAct(
  narrator: Narrator,
  { screenshot }: { readonly screenshot?: string | undefined } = {},
): Promise<readonly string[]> {
  const missing = browserMissing();
  if (missing !== undefined) {
    narrator.say(`Left out: it ${missing}.`);
    return [];
  }
  const stage = await setHomeStage(narrator);
  let left: readonly string[];
  try {
    const page = await serveAppPage(stage.settings);
    try {
      const app = await openPage(page.url, stage.spkiHash);
      try {
        await moveAndRestart(stage, app, narrator);
        if (screenshot !== undefined) await app.screenshot(screenshot);
      } finally {
        await app.close();
      }
    } finally {
      await page.close();
    }
  } finally {
    left = await stage.strike();
  }
  return left;
}

async function moveAndRestart(stage: HomeStage, app: OpenPage, narrator: Narrator): Promise<void> {
  const links = watchLinks(stage, app);
  await links.untilBoth(1);
  narrator.say(
    `An app in a browser page (Chromium) is linked too, at ${await links.pageHost()}; it sends commands.`,
  );
  await pause(QUIET_MS);

  const moved = links.count();
  await stage.operate(["move", HOME, "--to", "s2"]);
  narrator.say(`moor move ${HOME} --to s2: both are told where, and follow.`);
  await links.untilBoth(1, await moved);
  narrator.say(`Box and page are at ${await links.pageHost()}.`);
  await pause(QUIET_MS);

  const restarted = links.count();
  narrator.say("Now the node is restarted: its next process takes the port over (moor serve --take-over).");
  await stage.restart();
  await links.untilBoth(1, await restarted);
  narrator.say(`Box and page are back, at ${await links.pageHost()}.`);
  await pause(QUIET_MS);
  await judge(stage, app, narrator);
}

/** Hosts that page and box have been online at. */
function watchLinks(stage: HomeStage, app: OpenPage) {
  const boxHosts = () => stage.box.stderr.text().split('"online"').length - 1;
  const count = async () => ({ page: (await app.tally()).hosts.length, box: boxHosts() });
  return {
    count,
    pageHost: async () => (await app.tally()).hosts.at(-1) ?? "no host",
    /** Waits until both have been online `times` more than `since`. */
    untilBoth: async (times: number, since = { page: 0, box: 0 }) => {
      const endMs = performance.now() + DEADLINE_MS;
      for (;;) {
        const now = await count();
        if (now.page >= since.page + times && now.box >= since.box + times) return;
        if (performance.now() > endMs) throw new Error("box and page did not come back");
        await pause(LOOK_INTERVAL_MS);
      }
    },
  };
}

async function judge(stage: HomeStage, app: OpenPage, narrator: Narrator): Promise<void> {
  await app.stopSending();
  const endMs = performance.now() + DEADLINE_MS;
  let tally = await app.tally();
  while (tally.answered < tally.sent && performance.now() < endMs) {
    await pause(LOOK_INTERVAL_MS);
    tally = await app.tally();
  }
  const acted = stage.ledger();
  const twice = acted.length - new Set(acted).size;
  narrator.say(
    `${tally.sent} commands: ${tally.answered} answered, ${tally.askedAgain} of them after asking again by id; ` +
      `the box acted ${acted.length} times, ${twice} of them twice.`,
  );
  if (tally.sent === 0 || tally.answered !== tally.sent || acted.length !== tally.sent || twice > 0) {
    throw new Error("commands were hurt");
  }
}
