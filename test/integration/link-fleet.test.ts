// The fleet of link clients that scenarios judge by: what it tells of itself is what happened to it.

import { randomBytes } from "node:crypto";
import path from "node:path";
import { expect, onTestFinished } from "vitest";
import { createTempDir, until, verifies, type FakeLink, type FakeLinkService } from "@moor/testkit";
import { readActs } from "@moor/testkit/link-acts";
import { startLinkFleet, type LinkFleet, type LinkFleetOptions } from "@moor/testkit/link-fleet";
import { judgeReturn } from "@moor/testkit/link-journal";
import { boxKeyOf, rawPublicKeyOf } from "@moor/testkit/link-plain";
import { startService } from "./link-kit.ts";

const BOXES = 6;
const SPREAD_MS = 1_000;

const seeds = Array.from({ length: BOXES }, () => randomBytes(32).toString("base64url"));
const clients = seeds.map((seed, at) => ({ home: `home${at}`, seed }));

/** Takes in boxes; each must have proved its own key. */
async function takeIn(service: FakeLinkService, count = BOXES): Promise<readonly FakeLink[]> {
  const links: FakeLink[] = [];
  while (links.length < count) {
    const link = (await service.dials.take()).upgrade();
    const { home } = await link.hello();
    const seed = seeds[Number(home.slice("home".length))] ?? "";
    expect(await link.challenge(rawPublicKeyOf(boxKeyOf(seed)))).toBe(true);
    await link.welcome();
    links.push(link);
  }
  return links;
}

async function startTestFleet(
  service: FakeLinkService,
  options: Pick<LinkFleetOptions, "kind"> & Partial<LinkFleetOptions>,
): Promise<LinkFleet> {
  const fleet = await startLinkFleet({
    endpoint: service.endpoint,
    serviceKeys: [service.key.publicKey],
    dialsPerS: 100,
    clients,
    processes: 2,
    ...options,
  });
  onTestFinished(() => fleet.kill());
  return fleet;
}

for (const kind of ["library", "plain"] as const) {
  verifies(["L16", "L28"], `a fleet of ${kind} boxes proves itself and tells how it came back`, async () => {
    const service = await startService({ isSecure: false });
    const fleet = await startTestFleet(service, { kind, redialWithinMs: SPREAD_MS });
    const links = await takeIn(service);
    await fleet.untilOnline();
    const first = await fleet.journal();
    await Promise.all(links.map((link) => link.close(4503, String(SPREAD_MS))));
    await takeIn(service);
    await until(
      async () => (await fleet.journal()).length >= first.length + 3 * BOXES,
      "everybody to be back",
    );
    const verdict = judgeReturn(await fleet.journal(), {
      clients: BOXES,
      sinceMs: Math.max(...first.map(({ atMs }) => atMs)),
      spreadMs: SPREAD_MS,
    });
    expect(verdict).toMatchObject({
      lost: BOXES,
      back: BOXES,
      lostBy: { 4503: BOXES },
      dials: BOXES,
      failedDials: 0,
    });
    expect(await fleet.countOnline()).toBe(BOXES);
  });
}

verifies("L20", "a killed fleet that is started again in its folder acts on no command twice", async () => {
  const service = await startService({ isSecure: false });
  const folder = await createTempDir("link-fleet");
  onTestFinished(() => folder.remove());
  const ledgerFile = path.join(folder.path, "ledger");
  const options = { kind: "library", stateDir: folder.path, ledgerFile, processes: 1 } as const;
  const results: unknown[] = [];
  for (let run = 0; run < 2; run += 1) {
    const fleet = await startTestFleet(service, { ...options, clients: clients.slice(0, 1) });
    const [link] = await takeIn(service, 1);
    await link?.send('{"t":"cmd","id":"c1","ttl_ms":5000,"data":{},"app":"a"}');
    results.push((await link?.expect("result"))?.data);
    await fleet.kill();
  }
  const result = { did: "c1", turn: 1 };
  expect(results).toEqual([result, result]);
  expect(readActs(ledgerFile).map(({ id }) => id)).toEqual(["c1"]);
});
