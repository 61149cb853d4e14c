// A real browser with the app's page in it: Debian's Chromium, headless.
//
// I1  The browser trusts the demo's certificate by its public key and nothing else that it would not trust.

import { existsSync } from "node:fs";
import { chromium, type Browser, type Page } from "playwright-core";

const CHROMIUM = "/usr/bin/chromium";

/** What the page has counted; the shape of `tally` in app-page/page.ts. */
export interface PageTally {
  readonly sent: number;
  readonly answered: number;
  readonly unknown: number;
  readonly askedAgain: number;
  /** Hosts it was online at, in order. */
  readonly hosts: readonly string[];
}

/** The page in its browser. */
export interface OpenPage {
  tally(): Promise<PageTally>;
  stopSending(): Promise<void>;
  screenshot(file: string): Promise<void>;
  close(): Promise<void>;
}

/** Why there can be no browser; undefined when there can. */
export function browserMissing(): string | undefined {
  return existsSync(CHROMIUM) ? undefined : "needs Chromium (apt-get install chromium)";
}

/** Opens `url`. `spkiHash` is the SHA-256 of the public key of the certificate to trust, base64. */
export async function openPage(url: string, spkiHash: string): Promise<OpenPage> {
  const browser: Browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--disable-background-networking",
      `--ignore-certificate-errors-spki-list=${spkiHash}`,
    ],
  });
  try {
    const page: Page = await browser.newPage({ viewport: { width: 720, height: 560 } });
    await page.goto(url);
    return {
      tally: () => page.evaluate<PageTally>("tally"),
      stopSending: () => page.evaluate<void>("stopSending()"),
      screenshot: async (file) => void (await page.screenshot({ path: file })),
      close: () => browser.close(),
    };
  } catch (error) {
    await browser.close();
    throw error;
  }
}
