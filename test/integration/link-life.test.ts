// A live link on real sockets and virtual time: pings, silence, wakes, commands, events, snapshots, and the end (L20, L31, L32).

import { createUptimeWakeSource, RawJson, type WakeKind } from "@moor/client";
import { Secret } from "@moor/runtime";
import { Inbox, verifies, VirtualRuntime, type FakeLink, type FakeLinkService } from "@moor/testkit";
import { expect, test } from "vitest";
import { createApp, startBox, startService, stateOf, TOKEN, type StartedBox } from "./link-kit.ts";

/** The next dial, taken in. */
async function welcomeNext(service: FakeLinkService, pingMs = 25_000): Promise<FakeLink> {
  const link = (await service.dials.take()).upgrade();
  await link.welcome({ ping_ms: pingMs });
  return link;
}

async function startLinkedBox(...args: Parameters<typeof startBox>) {
  const box = startBox(...args);
  const link = await welcomeNext(args[0]);
  await stateOf(box.states, "online");
  return { ...box, link };
}

async function startLinkedApp(...args: Parameters<typeof createApp>) {
  const app = createApp(...args);
  app.app.start();
  const link = await welcomeNext(args[0]);
  await stateOf(app.states, "online");
  return { ...app, link };
}

const command = (id: string, data = "1") =>
  `{"t":"cmd","id":"${id}","ttl_ms":9000,"data":${data},"app":"phone-1"}`;

verifies(
  "L32",
  "a ping is answered, and a silent service is asked and then left after 2.5 pings",
  async () => {
    const service = await startService();
    const { link, runtime, states } = await startLinkedBox(service);
    await link.send({ t: "ping" });
    await link.expect("pong");
    runtime.advance(25_000);
    expect(await link.frames.take()).toEqual({ t: "ping" });
    await link.send({ t: "pong" });
    await link.send({ t: "ping" });
    await link.expect("pong"); // the pong before it is heard, too
    runtime.advance(62_499);
    expect(states.size).toBe(0);
    runtime.advance(1);
    expect((await stateOf(states, "reconnecting")).why).toBe("silent");
    expect((await link.closed).code).toBe(1006);
  },
);

verifies("L32", "any frame is life, of a kind that is not known too", async () => {
  const service = await startService();
  const { link, runtime, states } = await startLinkedBox(service);
  for (let round = 0; round < 4; round += 1) {
    runtime.advance(24_000);
    await link.send('{"t":"of-a-later-version"}');
    await link.send({ t: "ping" });
    await link.expect("pong");
  }
  expect([states.size, link.frames.size]).toEqual([0, 0]);
});

verifies("L32", "ping_ms is clamped to 5 s and 120 s", async () => {
  for (const [pingMs, clampedMs] of [
    [10, 5_000],
    [1e9, 120_000],
  ] as const) {
    const service = await startService();
    const box = startBox(service);
    await welcomeNext(service, pingMs);
    await stateOf(box.states, "online");
    box.runtime.advance(clampedMs * 2.5 - 1);
    expect(box.states.size).toBe(0);
    box.runtime.advance(1);
    expect((await stateOf(box.states, "reconnecting")).why).toBe("silent");
  }
});

/** A platform that a test lets notice. */
function wakeable() {
  let tell: (kind: WakeKind) => void = () => {};
  const wakeSource = {
    watch: (onWake: (kind: WakeKind) => void) => {
      tell = onWake;
      return () => {};
    },
  };
  return { wakeSource, wake: (kind: WakeKind) => tell(kind) };
}

for (const kind of ["woke", "network-changed"] as const) {
  verifies("L32", `after ${kind} a link is asked, and left when it does not answer within 5 s`, async () => {
    const service = await startService();
    const { wakeSource, wake } = wakeable();
    const { link, runtime, states } = await startLinkedBox(service, { wakeSource });
    wake(kind);
    expect(await link.frames.take()).toEqual({ t: "ping" });
    await link.send({ t: "pong" });
    await link.send({ t: "ping" });
    await link.expect("pong");
    runtime.advance(24_999);
    expect(states.size).toBe(0);
    wake(kind);
    expect(await link.frames.take()).toEqual({ t: "ping" });
    runtime.advance(4_999);
    expect(states.size).toBe(0);
    runtime.advance(1);
    expect((await stateOf(states, "reconnecting")).why).toBe("silent");
  });
}

verifies(
  ["L14", "L32"],
  "a timer that is five seconds late is a wake: the link is asked, not left",
  async () => {
    const service = await startService();
    const { link, runtime, states } = await startLinkedBox(service);
    runtime.sleepThrough(3_600_000);
    expect(await link.frames.take()).toEqual({ t: "ping" });
    await link.send({ t: "pong" });
    await link.send({ t: "ping" });
    await link.expect("pong");
    expect(states.size).toBe(0);
    runtime.sleepThrough(3_600_000);
    expect(await link.frames.take()).toEqual({ t: "ping" });
    runtime.advance(5_000);
    expect((await stateOf(states, "reconnecting")).why).toBe("silent");
  },
);

verifies(
  "L14",
  "a dial that failed in a sleep is no reason to wait: the next one is made at once",
  async () => {
    const service = await startService();
    const { runtime, states } = startBox(service);
    await service.dials.take();
    runtime.sleepThrough(3_600_000);
    expect((await stateOf(states, "reconnecting")).waitMs).toBeGreaterThan(0);
    await stateOf(states, "connecting");
    await service.dials.take();
  },
);

verifies("L14", "a machine whose uptime outruns its clock has slept", async () => {
  const runtime = new VirtualRuntime();
  let asleepMs = 0;
  const told: WakeKind[] = [];
  const source = createUptimeWakeSource(runtime, () => runtime.monotonicMs() + asleepMs);
  const stop = source.watch((kind) => told.push(kind));
  runtime.advance(60_000);
  asleepMs += 4_999;
  runtime.advance(5_000);
  expect(told).toEqual([]);
  asleepMs += 5_000;
  runtime.advance(5_000);
  expect(told).toEqual(["woke"]);
  runtime.advance(60_000);
  expect(told).toEqual(["woke"]);
  stop();
  expect(runtime.pendingCount).toBe(0);
});

verifies(
  "L31",
  "a box gets commands and answers them, tells events, and its snapshot after each reconnect",
  async () => {
    const service = await startService();
    const { box, link, runtime, states } = await startLinkedBox(service, {
      onCommand: ({ data }) => [data.parse()],
    });
    box.setNow(new RawJson('{"t" : 21.0}'));
    expect(box.sendEvent({ door: "open" })).toBe(true);
    await link.send(command("c1", "7"));
    expect(await link.frames.take()).toEqual({ t: "now", data: { t: 21 } });
    expect(await link.frames.take()).toEqual({ t: "event", data: { door: "open" } });
    expect(await link.frames.take()).toEqual({ t: "result", id: "c1", data: [7] });
    link.drop();
    runtime.advance((await stateOf(states, "reconnecting")).waitMs);
    expect(box.sendEvent("lost")).toBe(false);
    const again = await welcomeNext(service);
    expect(await again.expect("now")).toEqual({ t: "now", data: { t: 21 } });
    await again.send(command("c1", "8"));
    expect(await again.frames.take()).toEqual({ t: "result", id: "c1", data: [7] });
  },
);

verifies(
  "L20",
  "a command that outlives its link is answered on the link that asks again, not on another",
  async () => {
    const service = await startService();
    const result = Promise.withResolvers<unknown>();
    const begun = new Inbox<string>("a begun command");
    const onCommand = ({ id }: { readonly id: string }) => {
      begun.put(id);
      return id === "slow" ? result.promise : "quick";
    };
    const { link, runtime, states } = await startLinkedBox(service, { onCommand });
    await link.send(command("slow"));
    await begun.take();
    await link.close(4421, "a.moor.localhost");
    const second = await welcomeNext(service);
    await stateOf(states, "online");
    await second.send(command("other"));
    expect(await second.frames.take()).toEqual({ t: "result", id: "other", data: "quick" });
    await second.send(command("slow"));
    await second.send({ t: "ping" });
    await second.expect("pong");
    result.resolve("done");
    expect(await second.frames.take()).toEqual({ t: "result", id: "slow", data: "done" });
    await second.send({ t: "ping" });
    expect(await second.frames.take()).toEqual({ t: "pong" });
    expect([second.frames.size, begun.size, runtime.monotonicMs()]).toEqual([0, 1, 0]);
  },
);

verifies("L27", "what is no frame ends a live link with 4400, and the box comes back", async () => {
  const service = await startService();
  const { link, states, runtime } = await startLinkedBox(service);
  await link.send('{"t":"cmd","id":"","ttl_ms":1,"data":1,"app":"phone-1"}');
  const { why, waitMs } = await stateOf(states, "refused");
  expect([why, (await link.closed).code]).toEqual(["bad-frame", 4400]);
  runtime.advance(waitMs);
  await welcomeNext(service);
});

verifies("L27", "a frame above the limit is never assembled, and ends the link", async () => {
  const service = await startService();
  const { link, states } = await startLinkedBox(service);
  await link.send(`{"t":"event","data":"${"x".repeat(70_000)}"}`);
  expect((await stateOf(states, "refused")).why).toBe("bad-frame");
  expect((await link.closed).code).toBe(1009);
});

verifies("L31", "an app gets results, events and presence as they come", async () => {
  const service = await startService();
  const heard: unknown[] = [];
  const { app, link } = await startLinkedApp(service, {
    onEvent: (data) => heard.push(data.text),
    onPresence: (presence) => heard.push(presence),
  });
  let isAcked = false;
  const ending = app.send({ id: "c1", ttlMs: 9_000, data: { heat: 21 }, onAcked: () => (isAcked = true) });
  expect(await link.expect("cmd")).toEqual({ t: "cmd", id: "c1", ttl_ms: 9_000, data: { heat: 21 } });
  await link.send('{"t":"event","data":{"a" : 1.0}}');
  await link.send('{"t":"presence","box":"offline","since_ms":1700000000000}');
  await link.send('{"t":"moved","to":"elsewhere"}');
  await link.send('{"t":"ack","id":"c1"}');
  await link.send('{"t":"result","id":"c1","data":{"ok" : true}}');
  expect(await ending).toEqual({ kind: "result", data: new RawJson('{"ok" : true}') });
  expect([isAcked, heard]).toEqual([true, ['{"a" : 1.0}', { box: "offline", sinceMs: 1_700_000_000_000 }]]);
});

verifies("L20", "commands in flight are unknown when their link ends, and none is sent again", async () => {
  const service = await startService();
  const { app, link, states } = await startLinkedApp(service);
  const endings = ["c1", "c2"].map((id) => app.send({ id, ttlMs: 9_000, data: 1 }));
  await link.expect("cmd");
  await link.expect("cmd");
  await link.send('{"t":"ack","id":"c1"}');
  await link.close(4421, "a.moor.localhost");
  expect(await Promise.all(endings)).toEqual([{ kind: "unknown" }, { kind: "unknown" }]);
  const second = await welcomeNext(service);
  await stateOf(states, "online");
  await second.send({ t: "ping" });
  await second.expect("pong");
  expect(second.frames.size).toBe(0);
  const again = app.send({ id: "c1", ttlMs: 9_000, data: 1 });
  expect((await second.expect("cmd")).id).toBe("c1");
  await second.send('{"t":"result","id":"c1","data":1}');
  expect((await again).kind).toBe("result");
});

test("without a link a command is not delivered, at once", async () => {
  const { app } = createApp(await startService());
  expect(await app.send({ ttlMs: 9_000, data: 1 })).toEqual({ kind: "not_delivered" });
});

verifies(
  "L19",
  "one-shots start at the live link's host, else at base, and repeat nothing by themselves",
  async () => {
    const service = await startService();
    const { app, states } = createApp(service);
    const first = app.once({ id: "c1", ttlMs: 9_000, data: 1 });
    const request = await service.requests.take();
    expect([request.host, request.headers.authorization]).toEqual(["moor.localhost", `Bearer ${TOKEN}`]);
    request.reset();
    expect(await first).toEqual({ kind: "unknown" });
    app.start();
    const link = await welcomeNext(service);
    await link.close(4421, "a.moor.localhost");
    await welcomeNext(service);
    await stateOf(states, "online");
    await stateOf(states, "online");
    const second = app.now(new Secret("villa.extension"));
    const look = await service.requests.take();
    expect(look.host).toBe("a.moor.localhost");
    look.answer(421, { "Ftw-Shard": "b.moor.localhost" });
    const followed = await service.requests.take();
    expect([followed.host, followed.headers.authorization]).toEqual([
      "b.moor.localhost",
      "Bearer villa.extension",
    ]);
    followed.answer(421, { "Ftw-Shard": "a.moor.localhost" });
    expect(await second).toEqual({ kind: "refused", why: "wrong-shard" });
    const third = app.once({ ttlMs: 9_000, data: 1 });
    (await service.requests.take()).answer(421, { "Ftw-Shard": ["b.moor.localhost", "b.moor.localhost"] });
    expect(await third).toEqual({ kind: "refused", why: "wrong-shard" });
    expect(service.requests.size).toBe(0);
  },
);

verifies(
  "L19",
  "a redirect of a one-shot is not followed, and a bad certificate keeps the token here",
  async () => {
    const service = await startService();
    const { app } = createApp(service);
    const redirected = app.once({ ttlMs: 9_000, data: 1 });
    (await service.requests.take()).answer(307, { Location: "https://a.moor.localhost/" });
    expect(await redirected).toEqual({ kind: "unreachable", why: "not-a-link" });
    service.setCertificate("moor.localhost", "untrusted");
    const refused = createApp(service).app;
    expect(await refused.once({ ttlMs: 9_000, data: 1 })).toMatchObject({ kind: "unreachable" });
    expect(service.requests.size).toBe(0);
  },
);

test("no state, warning or error holds a token or key", async () => {
  const service = await startService();
  const seen: unknown[] = [];
  const { app, states, runtime } = createApp(service);
  app.start();
  const link = (await service.dials.take()).upgrade();
  await link.welcome({ isForged: true });
  const refused = await stateOf(states, "refused");
  seen.push(refused);
  runtime.advance(refused.waitMs);
  (await service.dials.take()).answer(302, { Location: `https://elsewhere/?${TOKEN}` });
  seen.push(await stateOf(states, "refused"));
  expect(JSON.stringify(seen)).not.toContain("planted");
});

test("after stop nothing is left of a link, whatever it was doing", async () => {
  const service = await startService();
  const leftOf = async ({ box, runtime }: StartedBox) => {
    await box.stop();
    return runtime.pendingCount;
  };
  const dialling = startBox(service);
  await service.dials.take();
  expect(await leftOf(dialling)).toBe(0);
  const greeting = startBox(service);
  await (await service.dials.take()).upgrade().hello();
  expect(await leftOf(greeting)).toBe(0);
  const online = await startLinkedBox(service);
  expect(await leftOf(online)).toBe(0);
  expect((await online.link.closed).code).toBe(1000);
  const waiting = await startLinkedBox(service);
  waiting.link.drop();
  await stateOf(waiting.states, "reconnecting");
  expect(await leftOf(waiting)).toBe(0);
});

verifies(
  "L18",
  "an app with a token of another home starts at base, and the old home's link ends",
  async () => {
    const service = await startService();
    const { app, link, states } = await startLinkedApp(service);
    await link.close(4421, "a.moor.localhost");
    const old = await welcomeNext(service);
    await stateOf(states, "online");
    app.setToken(new Secret("cellar.secret"));
    expect((await old.closed).code).toBe(1000);
    const dial = await service.dials.take();
    expect(dial.host).toBe("moor.localhost");
    expect((await dial.upgrade().hello()).home).toBe("cellar");
    app.setToken(undefined);
    await stateOf(states, "unlinked");
  },
);
