// What a box and an app say before they are believed, and what they believe (L9, L10, L28–L30).

import { connect, type Socket } from "node:net";
import {
  createBoxIdentityPem,
  createMemoryRecordStore,
  createWsDialler,
  parseBoxIdentity,
  verifyWithNode,
  type LinkDialler,
  type SocketEnd,
  type VerifySignature,
} from "@moor/client";
import {
  Inbox,
  makeServiceKey,
  startProcess,
  verifies,
  type FakeLink,
  type FakeLinkService,
  type HelloOkWords,
} from "@moor/testkit";
import { expect, onTestFinished, test } from "vitest";
import { createApp, HOME, IDENTITY, startBox, startService, stateOf, TOKEN, trustOf } from "./link-kit.ts";

verifies(["L28", "L6"], "a box proves its key, verifies hello_ok, and is online", async () => {
  const service = await startService();
  const { states } = startBox(service);
  const dial = await service.dials.take();
  expect([dial.host, dial.path]).toEqual(["moor.localhost", "/v1/box"]);
  const link = dial.upgrade();
  expect(await link.hello()).toMatchObject({ t: "hello", v: 1, home: HOME, caps: ["shard"] });
  expect(await link.challenge(IDENTITY.publicKey)).toBe(true);
  await link.welcome({ generation: "41" });
  expect(await stateOf(states, "online")).toMatchObject({ host: "moor.localhost", generation: "41" });
});

verifies("L30", "an app says its token and instance, and is not challenged", async () => {
  const service = await startService();
  const { app, states } = createApp(service);
  app.start();
  const dial = await service.dials.take();
  expect(dial.path).toBe("/v1/app");
  const link = dial.upgrade();
  expect(await link.hello()).toMatchObject({ home: HOME, token: TOKEN, app: "phone-1" });
  await link.send(`{"t":"challenge","nonce":"${"A".repeat(43)}"}`);
  await link.welcome();
  await stateOf(states, "online");
  expect(link.frames.size).toBe(0);
});

const REFUSED: readonly (readonly [why: string, words: HelloOkWords])[] = [
  ["bad-signature", { isForged: true }],
  ["wrong-host", { host: "other.moor.localhost" }],
  ["wrong-host", { home: "cellar" }],
  ["unknown-key", { by: makeServiceKey() }],
];

for (const [why, words] of REFUSED) {
  verifies(
    ["L10", "L29"],
    `a hello_ok with ${Object.keys(words).join()} wrong is a failed dial: ${why}`,
    async () => {
      const service = await startService();
      const { states } = startBox(service);
      const link = (await service.dials.take()).upgrade();
      await link.welcome(words);
      expect(await stateOf(states, "refused")).toMatchObject({ why, host: "moor.localhost" });
    },
  );
}

verifies("L29", "a hello_ok that names a known key and is signed by another is refused", async () => {
  const service = await startService();
  const { states } = startBox(service);
  const link = (await service.dials.take()).upgrade();
  await link.welcome({ by: makeServiceKey(), key: service.key.id });
  expect((await stateOf(states, "refused")).why).toBe("bad-signature");
});

verifies("L10", "until hello_ok has verified only hello and one proof are sent, whatever comes", async () => {
  const service = await startService();
  const { box, states, log } = startBox(service);
  box.setNow({ temperature: 21 });
  const link = (await service.dials.take()).upgrade();
  await link.hello();
  await link.send({ t: "ping" });
  await link.send(`{"t":"cmd","id":"c1","ttl_ms":1000,"data":1,"app":"phone-1"}`);
  expect(await link.challenge(IDENTITY.publicKey)).toBe(true);
  await link.send(`{"t":"challenge","nonce":"${"A".repeat(43)}"}`);
  expect(box.sendEvent("early")).toBe(false);
  await link.welcome();
  await stateOf(states, "online");
  expect(await link.expect("now")).toEqual({ t: "now", data: { temperature: 21 } });
  expect(log.written).toEqual([]);
});

/** A dialler that says when a socket's end has been told to its link. */
function endingDialler(service: FakeLinkService) {
  const dialler = createWsDialler(trustOf(service));
  const ends = new Inbox<SocketEnd>("the end of a socket");
  const dial: LinkDialler["dial"] = (url, sink) =>
    dialler.dial(url, {
      onOpen: () => sink.onOpen(),
      onMessage: (text) => sink.onMessage(text),
      onEnd: (end) => {
        sink.onEnd(end);
        ends.put(end);
      },
    });
  return { dialler: { dial }, ends };
}

verifies("L10", "frames and closes that come while a signature is checked wait for the verdict", async () => {
  const verdict = Promise.withResolvers<boolean>();
  const service = await startService();
  const { dialler, ends } = endingDialler(service);
  const { states, log } = startBox(service, { dialler, verify: () => verdict.promise });
  const link = (await service.dials.take()).upgrade();
  await link.welcome();
  await link.send(`{"t":"cmd","id":"c1","ttl_ms":1000,"data":1,"app":"phone-1"}`);
  await link.close(4421, "a.moor.localhost");
  await ends.take();
  expect([log.written, states.size, service.dials.size]).toEqual([[], 1, 0]);
  verdict.resolve(true);
  await stateOf(states, "online");
  expect((await service.dials.take()).host).toBe("a.moor.localhost");
  expect(log.written).toContain("c1");
});

verifies(
  "L10",
  "a close that came with a signature that fails is a bad signature, not a redirect",
  async () => {
    const verdict = Promise.withResolvers<boolean>();
    const service = await startService();
    const { dialler, ends } = endingDialler(service);
    const { states, box, runtime } = startBox(service, { dialler, verify: () => verdict.promise });
    const link = (await service.dials.take()).upgrade();
    await link.welcome();
    await link.close(4421, "a.moor.localhost");
    await ends.take();
    verdict.resolve(false);
    expect(await stateOf(states, "refused")).toMatchObject({ why: "bad-signature", host: "moor.localhost" });
    await box.stop();
    expect(runtime.pendingCount).toBe(0);
  },
);

const MALFORMED: readonly (readonly [what: string, send: (link: FakeLink) => Promise<void>])[] = [
  ["a binary message", (link) => link.sendBinary(Buffer.from("{}"))],
  ["no JSON", (link) => link.send("hello")],
  ["a nonce of the wrong length", (link) => link.send(`{"t":"challenge","nonce":"short"}`)],
  ["a generation with a leading zero", (link) => link.welcome({ generation: "01" })],
  ["a generation of 2^53", (link) => link.welcome({ generation: "9007199254740992" })],
];

for (const [what, send] of MALFORMED) {
  verifies(["L27", "L28"], `${what} before hello_ok is a failed dial, before any signature`, async () => {
    let checks = 0;
    const verify: VerifySignature = (...parts) => {
      checks += 1;
      return verifyWithNode(...parts);
    };
    const service = await startService();
    const { states } = startBox(service, { verify });
    const link = (await service.dials.take()).upgrade();
    await link.hello();
    await send(link);
    expect((await stateOf(states, "refused")).why).toBe("bad-frame");
    expect((await link.closed).code).toBe(4400);
    expect([checks, link.frames.size]).toEqual([0, 0]);
  });
}

verifies(
  "L29",
  "a key learned from hello_ok verifies the next one, and a configured key still does",
  async () => {
    const service = await startService();
    const next = makeServiceKey();
    const { states, runtime } = startBox(service);
    for (const words of [{ next_key: next.publicKey }, { by: next }, { by: service.key }, { by: next }]) {
      const link = (await service.dials.take()).upgrade();
      await link.welcome(words);
      await stateOf(states, "online");
      link.drop();
      runtime.advance((await stateOf(states, "reconnecting")).waitMs);
    }
  },
);

verifies("L29", "a learned key is kept over restarts", async () => {
  const service = await startService();
  const next = makeServiceKey();
  const recordStore = createMemoryRecordStore();
  const first = startBox(service, { recordStore });
  await (await service.dials.take()).upgrade().welcome({ next_key: next.publicKey });
  await stateOf(first.states, "online");
  await first.box.stop();
  const { states } = startBox(service, { recordStore });
  await (await service.dials.take()).upgrade().welcome({ by: next });
  await stateOf(states, "online");
});

test("another box's proof does not verify", async () => {
  const service = await startService();
  startBox(service, {}, { identity: parseBoxIdentity("--identity", createBoxIdentityPem()) });
  const link = (await service.dials.take()).upgrade();
  expect(await link.challenge(IDENTITY.publicKey)).toBe(false);
});

/** A service with room for two in its queue, which accepts nobody for the first while of its life. */
const SLOW_SERVICE = `
const server = require("node:http").createServer((_request, response) => response.writeHead(404).end());
server.listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
  console.log(server.address().port);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500);
});`;

verifies(
  "L15",
  "a dial that a full queue keeps waiting goes through, although the name has a second address where nobody listens",
  async () => {
    const service = await startProcess({ args: ["--input-type=commonjs", "-e", SLOW_SERVICE] });
    onTestFinished(async () => void (await service.kill()));
    const port = Number(await service.stdout.waitFor(/^\d+$/));
    const queued = Array.from({ length: 6 }, () => connect({ port, host: "127.0.0.1" }));
    onTestFinished(() => queued.forEach((socket) => socket.destroy()));
    await Promise.all(queued.slice(0, 2).map(connected));
    const end = await new Promise<SocketEnd>((resolve) => {
      const url = { host: "moor.localhost", origin: `ws://moor.localhost:${port}`, path: "/v1/box" };
      createWsDialler().dial(url, { onOpen: () => {}, onMessage: () => {}, onEnd: resolve });
    });
    expect(end).toEqual({ kind: "no-upgrade", status: 404 });
  },
);

function connected(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("connect", () => resolve());
    socket.once("error", reject);
  });
}
