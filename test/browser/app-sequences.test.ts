// The sequences of vectors/link-sequences.json, replayed by AppLink in a real browser on its own sockets and localStorage.

import { startFakeLinkService, type FakeLinkService } from "@moor/testkit";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, onTestFinished, test } from "vitest";
import { readVectors } from "../conformance/vector-files.ts";
import { replayLinkSequence } from "../integration/link-replay.ts";
import { bundleForBrowsers } from "./app-bundle.ts";
import {
  describeChromium,
  launchChromium,
  openPage,
  PAGE_POLICY,
  servePage,
  type PageServer,
} from "./chromium.ts";
import { replayedPage } from "./page-replay.ts";

const { sequences } = readVectors("link-sequences");
const BASES = [...new Set(sequences.map(({ base }) => base))];

let hashes: readonly string[];
let pages: PageServer;
const services = new Map<string, FakeLinkService>();

/** Every host that the sequences of a base dial. */
function namesUnder(base: string): string[] {
  const own = sequences.filter((sequence) => sequence.base === base);
  return [...new Set([base, ...own.flatMap(({ steps }) => steps.flatMap((step) => step.expect.dials))])];
}

async function setUp(): Promise<void> {
  for (const base of BASES) {
    services.set(base, await startFakeLinkService({ base, names: namesUnder(base), isTlsHeld: true }));
  }
  hashes = [...services.values()].map(({ certificates }) => certificates?.spkiHash ?? "");
  pages = await servePage((await bundleForBrowsers("test/browser/page-client.ts")).code, PAGE_POLICY);
}

async function tearDown(): Promise<void> {
  await pages?.close();
  for (const service of services.values()) await service.close();
}

function serviceOf(base: string): FakeLinkService {
  return services.get(base) as FakeLinkService;
}

/**
 * A page in a browser of its own, closed when the test ends: a browser has one WebSocket to an address in its handshake at
 * a time, and a sequence may leave one behind.
 */
async function newPage(): Promise<Page> {
  const browser: Browser = await launchChromium(hashes);
  onTestFinished(() => browser.close());
  return openPage(browser, pages.origin);
}

describeChromium("AppLink in Chromium", () => {
  beforeAll(setUp);
  afterAll(tearDown);

  for (const sequence of sequences) {
    test(`${sequence.id}: ${sequence.why}`, async () => {
      const service = serviceOf(sequence.base);
      await replayLinkSequence(service, replayedPage(service, sequence, await newPage()), sequence);
    });
  }
});
