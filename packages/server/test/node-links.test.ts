// A whole node on real sockets, with boxes and apps that were written from the protocol's text alone.

import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createNodeRuntime, createSilentLogger } from "@moor/runtime";
import {
  createTempDir,
  dialPlainApp,
  dialPlainBox,
  OperatorClient,
  rawPublicKeyOf,
  until,
  verifies,
  within,
  type PlainFrame,
  type PlainLink,
} from "@moor/testkit";
import { afterEach, expect, test } from "vitest";
import { BASE_HOST_DEFAULT } from "../src/base-host.ts";
import { devNode } from "../src/dev-node.ts";
import { startNode } from "../src/node.ts";

const opened: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of opened.splice(0).toReversed()) await close();
});

interface AskInit {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface Desk {
  readonly port: number;
  readonly operator: OperatorClient;
  /** `ws://HOST:PORT`; the base host unless another is given. */
  endpoint(host?: string): string;
  ask(path: string, token: string, init?: AskInit): Promise<Response>;
}

async function start(): Promise<Desk> {
  const temp = await createTempDir("node-links");
  const node = await startNode({
    node: devNode(2),
    baseHost: BASE_HOST_DEFAULT,
    directory: { kind: "sqlite" },
    dataDir: join(temp.path, "data"),
    host: "127.0.0.1",
    port: 0,
    operatorHost: "127.0.0.1",
    operatorPort: 0,
    runtime: createNodeRuntime(),
    logger: createSilentLogger(),
  });
  opened.push(
    () => temp.remove(),
    () => node.close({ graceMs: 0 }),
  );
  const file = JSON.parse(readFileSync(join(temp.path, "data", "operator.json"), "utf8")) as {
    token: string;
  };
  const port = Number(new URL(node.endpoint).port);
  return {
    port,
    operator: new OperatorClient(node.operatorUrl, file.token),
    endpoint: (host = "moor.localhost") => `ws://${host}:${port}`,
    ask: (path, token, init = {}) =>
      fetch(`http://127.0.0.1:${port}${path}`, {
        ...init,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...init.headers },
      }),
  };
}

/** A home with an enrolled box. */
async function makeHome({ operator, port }: Desk, id: string) {
  await operator.demand("POST", "/v1/homes", { id });
  const { code } = await operator.demand<{ code: string }>("POST", `/v1/homes/${id}/enrolment`);
  const key = generateKeyPairSync("ed25519").privateKey;
  const answer = await fetch(`http://127.0.0.1:${port}/v1/enroll`, {
    method: "POST",
    body: JSON.stringify({ code, publicKey: rawPublicKeyOf(key) }),
  });
  const enrolled = (await answer.json()) as { home: string; serviceKeys: string[] };
  expect([answer.status, enrolled.home]).toEqual([200, id]);
  const token = async (kind: string) => {
    const made = await operator.demand<{ token: string; id: string }>("POST", `/v1/homes/${id}/tokens`, {
      kind,
    });
    return { text: made.token, id: made.id };
  };
  return {
    key,
    serviceKeys: enrolled.serviceKeys,
    app: await token("app"),
    extension: await token("extension"),
  };
}

async function online(ending: ReturnType<typeof dialPlainBox>): Promise<PlainLink> {
  const dialled = await within(ending, "the handshake");
  if (dialled.kind !== "online") throw new Error(`not online: ${JSON.stringify(dialled)}`);
  opened.push(() => dialled.link.destroy());
  return dialled.link;
}

function framesOf(link: PlainLink): PlainFrame[] {
  const frames: PlainFrame[] = [];
  link.onFrame((frame) => frames.push(frame));
  return frames;
}

verifies(
  ["L28", "L30", "L31", "L33", "L34"],
  "a box and its app meet at a node: commands, events, snapshot, presence",
  async () => {
    const desk = await start();
    const { key, serviceKeys, app, extension } = await makeHome(desk, "kitchen");
    const box = await online(dialPlainBox({ endpoint: desk.endpoint(), home: "kitchen", key, serviceKeys }));
    box.onFrame((frame) => {
      if (frame.t === "cmd")
        box.send({ t: "result", id: frame["id"], data: { echo: frame["data"], app: frame["app"] } });
    });
    box.send({ t: "now", data: { warm: 21 } });
    const phone = await online(
      dialPlainApp({
        endpoint: desk.endpoint(),
        home: "kitchen",
        token: app.text,
        app: "phone",
        serviceKeys,
      }),
    );
    const frames = framesOf(phone);
    phone.send({ t: "cmd", id: "c1", ttl_ms: 5_000, data: [1, 2] });
    await until(() => frames.some(({ t }) => t === "result"), "the result");
    expect(frames.filter(({ t }) => t !== "presence")).toEqual([
      { t: "ack", id: "c1" },
      { t: "result", id: "c1", data: { echo: [1, 2], app: "phone" } },
    ]);
    const once = await desk.ask("/v1/app/once", app.text, {
      method: "POST",
      body: JSON.stringify({ id: "c2", ttl_ms: 5_000, data: "x" }),
    });
    expect([once.status, await once.json()]).toEqual([200, { id: "c2", data: { echo: "x", app: "once" } }]);
    const now = await desk.ask("/v1/now", extension.text);
    expect([now.status, await now.json()]).toEqual([200, { warm: 21 }]);
    const again = await desk.ask("/v1/now", extension.text, {
      headers: { "if-none-match": now.headers.get("etag") ?? "" },
    });
    expect(again.status).toBe(304);
    box.send({ t: "event", data: "rang" });
    await until(() => frames.some(({ t }) => t === "event"), "the event");
    box.destroy();
    await until(
      () => frames.some(({ t, box: state }) => t === "presence" && state === "offline"),
      "the box to be gone",
    );
  },
);

verifies(
  ["L1", "L2", "L21"],
  "a moved home: who follows is sent to its shard's host and served there, an old app notices nothing",
  async () => {
    const desk = await start();
    const { key, serviceKeys, app } = await makeHome(desk, "kitchen");
    const dial = { endpoint: desk.endpoint(), home: "kitchen", serviceKeys };
    const box = await online(dialPlainBox({ ...dial, key, caps: ["shard"] }));
    const old = await online(dialPlainApp({ ...dial, token: app.text, app: "old" }));
    const frames = framesOf(old);
    const move = { tenant: "kitchen", to: "s2", force: true };
    await desk.operator.demand("POST", "/v1/moves", move);
    expect(await within(box.closed, "the 4421")).toEqual({ code: 4421, reason: "s2.moor.localhost" });
    const stale = await within(dialPlainBox({ ...dial, key, caps: ["shard"] }), "a dial at the base host");
    expect(stale).toEqual({ kind: "closed", code: 4421, reason: "s2.moor.localhost" });
    const there = { ...dial, endpoint: desk.endpoint("s2.moor.localhost") };
    const moved = await online(dialPlainBox({ ...there, key, caps: ["shard"] }));
    expect(moved.helloOk.host).toBe("s2.moor.localhost");
    expect(Number(moved.helloOk.generation)).toBeGreaterThan(Number(box.helloOk.generation));
    moved.onFrame((frame) => {
      if (frame.t === "cmd") moved.send({ t: "result", id: frame["id"], data: "from s2" });
    });
    old.send({ t: "cmd", id: "c1", ttl_ms: 5_000, data: 1 });
    await until(() => frames.some(({ t }) => t === "result"), "the old app's result");
    const once = await desk.ask("/v1/app/once", app.text, {
      method: "POST",
      headers: { host: "moor.localhost" },
    });
    expect(once.status).toBe(400); // fetch sends the address as Host: served, and the body is missing
  },
);

verifies(["L7", "L23"], "revoked, replaced and unenrolled: each ends with its code, at once", async () => {
  const desk = await start();
  const { key, serviceKeys, app } = await makeHome(desk, "kitchen");
  const dial = { endpoint: desk.endpoint(), home: "kitchen", serviceKeys };
  const phone = await online(dialPlainApp({ ...dial, token: app.text, app: "phone" }));
  await desk.operator.demand("DELETE", `/v1/keys/${app.id}`);
  expect((await within(phone.closed, "the revoked app's end")).code).toBe(4401);
  const refused = await within(
    dialPlainApp({ ...dial, token: app.text, app: "phone" }),
    "the revoked app's dial",
  );
  expect(refused).toMatchObject({ kind: "closed", code: 4401 });
  const first = await online(dialPlainBox({ ...dial, key }));
  const second = await online(dialPlainBox({ ...dial, key }));
  expect((await within(first.closed, "the replaced box's end")).code).toBe(4409);
  const { code } = await desk.operator.demand<{ code: string }>("POST", "/v1/homes/kitchen/enrolment");
  const publicKey = rawPublicKeyOf(generateKeyPairSync("ed25519").privateKey);
  const enroll = () =>
    fetch(`http://127.0.0.1:${desk.port}/v1/enroll`, {
      method: "POST",
      body: JSON.stringify({ code, publicKey }),
    });
  expect((await enroll()).status).toBe(200);
  expect((await within(second.closed, "the unenrolled box's end")).code).toBe(4401);
  expect((await enroll()).status).toBe(401);
});

test("what the operator asks for tells of links, handshakes and endings", async () => {
  const desk = await start();
  const { key } = await makeHome(desk, "kitchen");
  const dial = { endpoint: desk.endpoint(), home: "kitchen" };
  await online(dialPlainBox({ ...dial, key }));
  await within(dialPlainBox({ ...dial, key: generateKeyPairSync("ed25519").privateKey }), "a wrong proof");
  const { text } = await desk.operator.demand<{ text: string }>("GET", "/metrics");
  for (const line of [
    'moor_links{role="box"} 1',
    'moor_link_handshakes_total{outcome="online"} 1',
    'moor_link_handshakes_total{outcome="unauthorized"} 1',
    'moor_link_ends_total{end="client"} 0',
    "moor_links_handshaking 0",
    "moor_link_signatures_waiting 0",
  ]) {
    expect(text.split("\n")).toContain(line);
  }
});
