// Debian's Chromium for tests, headless: trusts the certificates it is told of by their keys, and asks no resolver.

import { existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { CHROMIUM, chromiumArgs } from "@moor/testkit/chromium";
import { chromium, type Browser, type Page } from "playwright-core";
import { describe } from "vitest";

/** What a page that links must allow itself, and no more. */
export const PAGE_POLICY = "default-src 'none'; script-src 'self'; connect-src https: wss:";

/** Why tests with a browser cannot run here; undefined when they can. */
export function chromiumMissing(): string | undefined {
  return existsSync(CHROMIUM) ? undefined : "needs chromium";
}

/** Declares tests that need a browser; skipped, saying why, where there is none. */
export function describeChromium(title: string, declare: () => void): void {
  const missing = chromiumMissing();
  const label = missing === undefined ? title : `${title} (skipped: ${missing})`;
  describe.skipIf(missing !== undefined)(label, declare);
}

/** Starts a browser. Every name leads to this machine. */
export function launchChromium(spkiHashes: readonly string[]): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [...chromiumArgs(spkiHashes), "--disable-breakpad", "--host-resolver-rules=MAP * 127.0.0.1"],
  });
}

/** Pages that are served, and where. */
export interface PageServer {
  /** `http://127.0.0.1:PORT`: a secure context, unlike the same port under another name. */
  readonly origin: string;
  readonly port: number;
  close(): Promise<void>;
}

/** Serves a page that runs one module, with this content security policy. */
export async function servePage(script: string, contentPolicy: string): Promise<PageServer> {
  const server = createServer((request, response) => {
    const isScript = request.url === "/page.js";
    response.writeHead(200, {
      "Content-Type": isScript ? "text/javascript; charset=utf-8" : "text/html; charset=utf-8",
      "Content-Security-Policy": contentPolicy,
      "Cache-Control": "no-store",
    });
    response.end(isScript ? script : '<!doctype html><script type="module" src="/page.js"></script>');
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A new page, with a localStorage of its own, its script run. */
export async function openPage(browser: Browser, url: string): Promise<Page> {
  const context = await browser.newContext();
  const page = await context.newPage();
  // The page's module has run when its load is told.
  await page.goto(url);
  return page;
}
