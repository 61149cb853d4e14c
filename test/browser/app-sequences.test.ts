// The sequences of vectors/link-sequences.json, replayed by AppLink in a real browser on its own sockets and localStorage.
//
// A browser makes dials wait, seconds at a time, in a process of whose dials many have failed and few have not: each page
// begins with some that come about.

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
/** Dials that come about before a sequence: more than a tenth of those that fail in any. */
const FIRST_DIALS = 8;

let browser: Browser;
let pages: PageServer;
let greeter: FakeLinkService;
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
  greeter = await startFakeLinkService({ base: "greeter.example" });
  const hashes = [greeter, ...services.values()].map(({ certificates }) => certificates?.spkiHash ?? "");
  pages = await servePage((await bundleForBrowsers("test/browser/page-client.ts")).code, PAGE_POLICY);
  browser = await launchChromium(hashes);
}

async function tearDown(): Promise<void> {
  await browser?.close();
  await pages?.close();
  await greeter?.close();
  for (const service of services.values()) await service.close();
}

function serviceOf(base: string): FakeLinkService {
  return services.get(base) as FakeLinkService;
}

/** A page of its own, closed when the test ends. */
async function newPage(): Promise<Page> {
  const page = await openPage(browser, pages.origin);
  onTestFinished(() => page.context().close());
  for (let dial = 0; dial < FIRST_DIALS; dial += 1) {
    const opened = page.evaluate(openOnce, greeter.endpoint);
    (await greeter.dials.take()).upgrade();
    await opened;
  }
  return page;
}

/** Runs in the page: opens a WebSocket and closes it. */
function openOnce(url: string): Promise<void> {
  const { WebSocket } = globalThis as unknown as {
    WebSocket: new (url: string) => { onopen: () => void; close(): void };
  };
  return new Promise((resolve) => {
    const socket = new WebSocket(url);
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- one listener, in a page
    socket.onopen = () => {
      socket.close();
      resolve();
    };
  });
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
