// The app of the demo's third act: in a page of a real browser, Debian's Chromium, headless; in Node where there is none.
//
// I1  The browser trusts the demo's certificate by its public key, and nothing else that it would not trust anyway.

import { existsSync } from "node:fs";
import { createAppLink } from "@moor/client";
import { Secret } from "@moor/runtime";
import { CHROMIUM, chromiumArgs } from "@moor/testkit/chromium";
import { chromium } from "playwright-core";
import { serveAppPage } from "./app-page-server.ts";
import { startKeeper, type KeeperTally } from "./app-page/keeper.ts";
import type { HomeStage } from "./home-stage.ts";

/** An app at work. */
export interface RunningApp {
  readonly where: string;
  tally(): Promise<KeeperTally>;
  stopSending(): Promise<void>;
  /** A picture of it, if it can be seen. */
  screenshot(file: string): Promise<void>;
  close(): Promise<void>;
}

/** Starts the app of a home. */
export function startApp(stage: HomeStage): Promise<RunningApp> {
  return existsSync(CHROMIUM) ? startInBrowser(stage) : startInNode(stage);
}

async function startInBrowser({ settings, spkiHash }: HomeStage): Promise<RunningApp> {
  const page = await serveAppPage(settings);
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: chromiumArgs([spkiHash]) });
  const close = async () => {
    await browser.close();
    await page.close();
  };
  try {
    const view = await browser.newPage({ viewport: { width: 720, height: 560 } });
    await view.goto(page.url);
    await view.waitForFunction("globalThis.keeper !== undefined");
    return {
      where: "in a browser page (Chromium)",
      tally: () => view.evaluate<KeeperTally>("keeper.tally"),
      stopSending: () => view.evaluate<void>("keeper.stopSending()"),
      screenshot: async (file) => void (await view.screenshot({ path: file })),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startInNode({ settings, ca }: HomeStage): Promise<RunningApp> {
  const { endpoint, token, serviceKeys } = settings;
  const options = { endpoint, token: new Secret(token), app: "keeper", serviceKeys };
  let stop: () => Promise<void> = async () => {};
  const keeper = startKeeper(
    (listeners) => {
      const link = createAppLink(options, listeners, { ca });
      stop = () => link.stop();
      return link;
    },
    { show: () => {}, note: () => {} },
  );
  return {
    where: "in Node (there is no Chromium here for its page)",
    tally: async () => structuredClone(keeper.tally),
    stopSending: async () => keeper.stopSending(),
    screenshot: async () => {},
    close: () => stop(),
  };
}
