// AppLink in a page of a real browser, beside the sequences: what only a browser has.

import {
  startFakeLinkService,
  verifies,
  type FakeLink,
  type FakeLinkService,
  type FakeRequest,
} from "@moor/testkit";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { bundleForBrowsers } from "./app-bundle.ts";
import {
  describeChromium,
  launchChromium,
  openPage,
  PAGE_POLICY,
  servePage,
  type PageServer,
} from "./chromium.ts";
import type { PageStart } from "./page-client.ts";
import { callPage } from "./page-replay.ts";

const BASE = "cloud.example";
const SHARD = `a.${BASE}`;

let browser: Browser;
let pages: PageServer;
let service: FakeLinkService;

async function setUp(): Promise<void> {
  service = await startFakeLinkService({ base: BASE });
  pages = await servePage((await bundleForBrowsers("test/browser/page-client.ts")).code, PAGE_POLICY);
  browser = await launchChromium([service.certificates?.spkiHash ?? ""]);
}

async function tearDown(): Promise<void> {
  await browser?.close();
  await pages?.close();
  await service?.close();
}

async function newPage(url = pages.origin): Promise<Page> {
  const page = await openPage(browser, url);
  onTestFinished(() => page.context().close());
  return page;
}

function start(page: Page, more: Partial<PageStart> = {}): Promise<void> {
  return callPage(page, "start", {
    endpoint: service.endpoint,
    token: "villa.secret",
    serviceKey: service.key.publicKey,
    caps: ["shard"],
    ...more,
  });
}

async function welcomeNext(): Promise<{ readonly host: string; readonly link: FakeLink }> {
  const dial = await service.dials.take();
  const link = dial.upgrade();
  await link.welcome();
  return { host: dial.host, link };
}

/** The kinds of states the page shows up to one of this kind. */
async function untilState(page: Page, kind: string): Promise<string[]> {
  const kinds: string[] = [];
  while (kinds.at(-1) !== kind) kinds.push((await callPage(page, "nextState")).kind);
  return kinds;
}

/** Headers of every answer to a page of another origin (L2). */
const CORS = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Allow-Headers": "authorization, content-type, if-none-match",
  "Access-Control-Allow-Methods": "GET, POST",
  "Access-Control-Expose-Headers": "Ftw-Shard, Retry-After, ETag, Age",
  Vary: "Origin",
};

/** The next one-shot; preflights before it are answered. */
async function nextRequest(): Promise<FakeRequest> {
  for (;;) {
    const request = await service.requests.take();
    if (request.method !== "OPTIONS") return request;
    request.answer(204, CORS);
  }
}

describeChromium("a page in Chromium", () => {
  beforeAll(setUp);
  afterAll(tearDown);

  verifies("L12", "a page that is loaded anew dials the shard it has kept in localStorage", async () => {
    const page = await newPage();
    await start(page);
    const { link } = await welcomeNext();
    await link.close(4421, SHARD);
    expect((await welcomeNext()).host).toBe(SHARD);
    expect(await untilState(page, "online")).toEqual(["connecting", "online"]);
    expect(await untilState(page, "online")).toEqual(["connecting", "online"]);
    expect(await callPage(page, "record")).toBe(`{"v":1,"home":"villa","host":"${SHARD}"}`);
    await page.reload();
    await start(page);
    expect((await welcomeNext()).host).toBe(SHARD);
  });

  verifies(
    "L30",
    "on a page that is no secure context, without WebCrypto, hello_ok is verified all the same",
    async () => {
      const page = await newPage(`http://plain.example:${pages.port}`);
      expect(await page.evaluate(() => (globalThis as { isSecureContext?: boolean }).isSecureContext)).toBe(
        false,
      );
      await start(page);
      const forged = (await service.dials.take()).upgrade();
      await forged.welcome({ isForged: true });
      expect(await untilState(page, "refused")).toEqual(["connecting", "refused"]);
      await callPage(page, "advanceToState", 60_000);
      await welcomeNext();
      expect(await untilState(page, "online")).toEqual(["connecting", "online"]);
    },
  );

  verifies(
    "L10",
    "a certificate that the browser does not trust shows connect, and nothing is kept",
    async () => {
      service.setCertificate(SHARD, "untrusted");
      onTestFinished(() => service.setCertificate(SHARD, "good"));
      const record = `{"v":1,"home":"villa","host":"${SHARD}"}`;
      const page = await newPage();
      await start(page, { record });
      await callPage(page, "nextState");
      expect(await callPage(page, "nextState")).toMatchObject({
        kind: "reconnecting",
        why: "connect",
        host: SHARD,
      });
      expect(await callPage(page, "record")).toBe(record);
    },
  );

  verifies(
    ["L19", "L33", "L34"],
    "one-shots pass the policy and CORS, and follow one 421 with the same request",
    async () => {
      const page = await newPage();
      await start(page);
      await welcomeNext();
      await untilState(page, "online");
      const once = callPage(page, "once", "c1", { heat: 21 });
      const first = await nextRequest();
      first.answer(421, { ...CORS, "Ftw-Shard": SHARD, "Cache-Control": "no-store" });
      let second = await nextRequest();
      // A browser may repeat a 421 by itself: the service answers as before.
      for (; second.host === BASE; second = await nextRequest())
        second.answer(421, { ...CORS, "Ftw-Shard": SHARD });
      const { host, method, path, body, headers } = second;
      expect([host, method, path, body]).toEqual([
        SHARD,
        "POST",
        "/v1/app/once",
        '{"id":"c1","ttl_ms":9000,"data":{"heat":21}}',
      ]);
      expect([headers.authorization, headers.cookie, headers.referer]).toEqual([
        "Bearer villa.secret",
        undefined,
        undefined,
      ]);
      second.answer(200, CORS, '{"id":"c1","data":{"ok" : 1.0}}');
      expect(await once).toEqual({ kind: "result", data: { text: '{"ok" : 1.0}' } });
      const now = callPage(page, "now", "villa.extension");
      (await nextRequest()).answer(200, { ...CORS, Age: "3", ETag: '"e1"' }, '{"t":21}');
      expect(await now).toEqual({ kind: "snapshot", data: { text: '{"t":21}' }, ageMs: 3_000, etag: '"e1"' });
      const redirected = callPage(page, "once", "c2", 1);
      (await nextRequest()).answer(307, {
        ...CORS,
        Location: `https://${SHARD}:${service.port}/v1/app/once`,
      });
      expect(await redirected).toEqual({ kind: "unknown" });
    },
  );

  verifies("L20", "commands over the link end as they do in Node", async () => {
    const page = await newPage();
    await start(page);
    const { link } = await welcomeNext();
    await untilState(page, "online");
    const done = callPage(page, "send", "c1", { heat: 21 });
    expect(await link.expect("cmd")).toEqual({ t: "cmd", id: "c1", ttl_ms: 9_000, data: { heat: 21 } });
    await link.send('{"t":"result","id":"c1","data":1}');
    expect(await done).toBe("result");
    const lost = callPage(page, "send", "c2", 1);
    await link.expect("cmd");
    await link.close(4503, "1000");
    expect(await lost).toBe("unknown");
  });

  verifies("L32", "a page that is resumed asks its link, and a new network ends a backoff", async () => {
    const page = await newPage();
    await start(page);
    const { link } = await welcomeNext();
    await untilState(page, "online");
    await callPage(page, "wake", "woke");
    expect(await link.frames.take()).toEqual({ t: "ping" });
    await callPage(page, "draw", 0.5);
    await callPage(page, "advanceToState", 5_000);
    expect((await callPage(page, "nextState")).kind).toBe("reconnecting");
    await callPage(page, "wake", "network-changed");
    await welcomeNext();
    expect(await untilState(page, "online")).toEqual(["connecting", "online"]);
  });

  test("it links on real time with nothing injected", async () => {
    const page = await newPage();
    await start(page, { isRealTime: true });
    await welcomeNext();
    expect(await untilState(page, "online")).toEqual(["connecting", "online"]);
    await callPage(page, "kill");
  });
});
