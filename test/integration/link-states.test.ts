// What a link shows when something is in the service's place, on real sockets; and that it keeps nothing of it, and comes home.

import { createMemoryRecordStore, createWsDialler } from "@moor/client";
import { verifies, type CertificateKind, type FakeDial, type FakeLinkService } from "@moor/testkit";
import { expect, test } from "vitest";
import { HOME, startBox, startService, stateOf, trustOf, type StartedBox } from "./link-kit.ts";

const KEPT = `{"v":1,"home":"${HOME}","host":"a.moor.localhost"}`;

/** A box that keeps a shard's host, and the store it keeps it in. */
async function startKeptBox(service: FakeLinkService) {
  const recordStore = createMemoryRecordStore();
  await recordStore.save(KEPT);
  return { ...startBox(service, { recordStore }), recordStore };
}

/** The box is online at the kept host after the wait it shows. */
async function comesHome(service: FakeLinkService, { states, runtime }: StartedBox, waitMs: number) {
  runtime.advance(waitMs);
  const dial = await service.dials.take();
  expect(dial.host).toBe("a.moor.localhost");
  const link = dial.upgrade();
  await link.welcome();
  await stateOf(states, "online");
  return link;
}

const CERTIFICATES: readonly (readonly [CertificateKind, string])[] = [
  ["other-name", "tls-name"],
  ["untrusted", "tls-untrusted"],
  ["expired", "tls-expired"],
  ["not-yet-valid", "tls-not-yet-valid"],
];

for (const [kind, why] of CERTIFICATES) {
  verifies(
    ["L9", "L10", "L15"],
    `a certificate that is ${kind} shows ${why}, and nothing is sent`,
    async () => {
      const service = await startService();
      service.setCertificate("a.moor.localhost", kind);
      const box = await startKeptBox(service);
      const state = await stateOf(box.states, "refused");
      expect(state).toMatchObject({ host: "a.moor.localhost", why });
      const isOfTime = kind === "expired" || kind === "not-yet-valid";
      expect(state.clock).toEqual(isOfTime ? "2026-01-01T00:00:00.000Z" : undefined);
      expect(await box.recordStore.load()).toBe(KEPT);
      expect(service.dialled).toEqual([]);
      service.setCertificate("a.moor.localhost", "good");
      await comesHome(service, box, state.waitMs);
    },
  );
}

const PORTALS: readonly (readonly [what: string, why: string, meet: (dial: FakeDial) => void])[] = [
  ["answers 200", "not-a-link", (dial) => dial.answer(200, {}, "<html>sign in</html>")],
  ["answers 302", "not-a-link", (dial) => dial.answer(302, { Location: "https://portal.moor.localhost/" })],
  [
    "answers 101 that is none",
    "not-a-link",
    (dial) => dial.answer(101, { Upgrade: "websocket", Connection: "Upgrade" }),
  ],
  ["answers 404", "not-a-link", (dial) => dial.answer(404)],
  ["answers 503", "unavailable", (dial) => dial.answer(503, { "Retry-After": "1" })],
  ["breaks the connection", "closed", (dial) => dial.reset()],
];

for (const [what, why, meet] of PORTALS) {
  verifies(["L9", "L15"], `something that ${what} shows ${why}, and leads nowhere`, async () => {
    const service = await startService();
    const box = await startKeptBox(service);
    meet(await service.dials.take());
    const kind = why === "not-a-link" ? "refused" : "reconnecting";
    const state = await stateOf(box.states, kind);
    expect(state.why).toBe(why);
    expect(await box.recordStore.load()).toBe(KEPT);
    await comesHome(service, box, state.waitMs);
    expect(service.dialled).toEqual(["a.moor.localhost", "a.moor.localhost"]);
    expect(service.requests.size).toBe(0);
  });
}

verifies("L15", "a host that is silent is given up after 15 s, before the upgrade and after it", async () => {
  const service = await startService();
  const box = await startKeptBox(service);
  await service.dials.take();
  box.runtime.advance(14_999);
  expect(box.states.size).toBe(1);
  box.runtime.advance(1);
  const first = await stateOf(box.states, "reconnecting");
  expect(first.why).toBe("no-answer");
  box.runtime.advance(first.waitMs);
  const link = (await service.dials.take()).upgrade();
  await link.hello();
  box.runtime.advance(15_000);
  const second = await stateOf(box.states, "reconnecting");
  expect(second.why).toBe("no-hello-ok");
  expect(await box.recordStore.load()).toBe(KEPT);
});

verifies("L15", "a host that pings but never says hello_ok is given up after 15 s", async () => {
  const service = await startService();
  const box = await startKeptBox(service);
  const link = (await service.dials.take()).upgrade();
  await link.hello();
  for (let second = 0; second < 14; second += 1) {
    await link.send({ t: "ping" });
    box.runtime.advance(1_000);
  }
  box.runtime.advance(1_000);
  expect((await stateOf(box.states, "reconnecting")).why).toBe("no-hello-ok");
  expect(link.frames.size).toBe(0);
});

test("nobody listening shows refused, a name without address dns", async () => {
  const service = await startService();
  await service.refuse();
  const { states } = startBox(service);
  expect((await stateOf(states, "reconnecting")).why).toBe("refused");
  const nowhere = startBox(service, {}, { endpoint: "wss://moor.invalid" });
  expect((await stateOf(nowhere.states, "reconnecting")).why).toBe("dns");
});

test("a plain port shows tls", async () => {
  const service = await startService({ isSecure: false });
  const { states } = startBox(service, {}, { endpoint: service.endpoint.replace("ws:", "wss:") });
  expect((await stateOf(states, "reconnecting")).why).toBe("tls");
});

verifies("L9", "certificates are verified, whatever the environment says", async () => {
  const service = await startService();
  service.setCertificate("moor.localhost", "untrusted");
  const before = process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
  process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
  try {
    const { states } = startBox(service);
    expect((await stateOf(states, "refused")).why).toBe("tls-untrusted");
  } finally {
    if (before === undefined) delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    else process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = before;
  }
});

const CLOSES: readonly (readonly [code: number, why: string, kind: "refused" | "reconnecting"])[] = [
  [4400, "protocol", "refused"],
  [1007, "protocol", "refused"],
  [1009, "protocol", "refused"],
  [4401, "auth", "refused"],
  [4408, "hello-late", "reconnecting"],
  [4429, "busy", "reconnecting"],
  [4503, "restarting", "reconnecting"],
  [1011, "closed", "reconnecting"],
];

for (const [code, why, kind] of CLOSES) {
  verifies(["L15", "L27"], `a close ${code} before hello_ok shows ${why}`, async () => {
    const service = await startService();
    const box = await startKeptBox(service);
    const link = (await service.dials.take()).upgrade();
    await link.hello();
    await link.close(code, "");
    const state = await stateOf(box.states, kind);
    expect(state.why).toBe(why);
    await comesHome(service, box, state.waitMs);
  });
}

verifies("L23", "a box that was replaced says so", async () => {
  const service = await startService();
  const box = await startKeptBox(service);
  const link = await comesHome(service, box, 0);
  await link.close(4409);
  expect((await stateOf(box.states, "refused")).why).toBe("replaced");
  expect(box.warnings).toContain("replaced");
});

verifies("L14", "a clock at 1970 that jumps by years changes nothing but what TLS makes of it", async () => {
  const service = await startService();
  const box = await startKeptBox(service);
  box.runtime.jumpWallClock(-Date.UTC(2026, 0, 1));
  const link = await comesHome(service, box, 0);
  box.runtime.jumpWallClock(Date.UTC(2090, 0, 1));
  await link.send({ t: "ping" });
  await link.expect("pong");
  link.drop();
  const { waitMs } = await stateOf(box.states, "reconnecting");
  box.runtime.jumpWallClock(-Date.UTC(2050, 0, 1));
  await comesHome(service, box, waitMs);
  expect(box.warnings).toEqual([]);
});

test("a plain link on a loopback name works without TLS", async () => {
  const service = await startService({ isSecure: false });
  const { states } = startBox(service, { dialler: createWsDialler(trustOf(service)) });
  await (await service.dials.take()).upgrade().welcome();
  expect((await stateOf(states, "online")).host).toBe("moor.localhost");
});
