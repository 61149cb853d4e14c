// What a link's user may do and get wrong while it hears of it: on a dialler in the test's hands, and virtual time.

import {
  createAppLinkOn,
  createBoxLink,
  createMemoryRecordStore,
  type AppLink,
  type AppLinkListeners,
  type AppLinkPorts,
  type LinkDialler,
  type LinkUrl,
  type SocketSink,
} from "@moor/client";
import { encodeBase64url, serviceKeyId } from "@moor/protocol";
import { Secret } from "@moor/runtime";
import { createMemoryCommandLog, settle, verifies, VirtualRuntime } from "@moor/testkit";
import { createHash } from "node:crypto";
import { afterEach, expect, test, vi } from "vitest";

const ENDPOINT = "wss://cloud.example";
const RAW_KEY = new Uint8Array(32).fill(3);
const SERVICE_KEY = encodeBase64url(RAW_KEY);
const NEXT_KEY = encodeBase64url(new Uint8Array(32).fill(4));
const KEY_ID = serviceKeyId(createHash("sha256").update(RAW_KEY).digest());

/** A socket whose other end is the test. */
class FakeSocket {
  readonly url: LinkUrl;
  readonly sent: string[] = [];
  readonly #sink: SocketSink;
  bufferedBytes = 0;
  isOver = false;

  constructor(url: LinkUrl, sink: SocketSink) {
    this.url = url;
    this.#sink = sink;
  }

  send(text: string): void {
    this.sent.push(text);
  }

  close(): void {
    this.isOver = true;
  }

  destroy(): void {
    this.isOver = true;
  }

  /** Upgrades, and says a hello_ok that is taken for signed. */
  welcome(home: string, words: object = {}): void {
    this.#sink.onOpen();
    this.say({
      t: "hello_ok",
      host: this.url.host,
      home,
      generation: "1",
      key: KEY_ID,
      sig: encodeBase64url(new Uint8Array(64)),
      ...words,
    });
  }

  say(frame: object): void {
    this.#sink.onMessage(JSON.stringify(frame));
  }

  end(code: number, reason = ""): void {
    this.#sink.onEnd({ kind: "closed", code, reason });
  }

  /** The ids of answers to commands. */
  get answered(): unknown[] {
    const frames = this.sent.map((text) => JSON.parse(text) as { readonly t: string; readonly id?: string });
    return frames.filter(({ t }) => t === "result").map(({ id }) => id);
  }
}

function fakeDialler() {
  const sockets: FakeSocket[] = [];
  const dialler: LinkDialler = {
    dial: (url, sink) => {
      const socket = new FakeSocket(url, sink);
      sockets.push(socket);
      return socket;
    },
  };
  const last = (): FakeSocket => {
    const socket = sockets.at(-1);
    if (socket === undefined) throw new Error("nothing was dialled");
    return socket;
  };
  return { sockets, dialler, last };
}

async function startApp(
  listeners: AppLinkListeners = {},
  recordStore = createMemoryRecordStore(),
  onCreated: (app: AppLink) => void = () => {},
) {
  const runtime = new VirtualRuntime();
  const dials = fakeDialler();
  const asked: unknown[] = [];
  const ports: AppLinkPorts = {
    runtime,
    dialler: dials.dialler,
    verify: () => true,
    http: {
      request: (request) => {
        asked.push(request);
        return Promise.resolve({ kind: "fault", trouble: "connect", wasWritten: false });
      },
      close: () => Promise.resolve(),
    },
    recordStore,
  };
  const token = new Secret("kitchen.secret");
  const app = createAppLinkOn(
    ports,
    { endpoint: ENDPOINT, token, app: "phone", serviceKeys: [SERVICE_KEY] },
    listeners,
  );
  onCreated(app);
  app.start();
  await settle();
  return { app, runtime, asked, ...dials };
}

async function startBox() {
  const dials = fakeDialler();
  const box = createBoxLink(
    {
      endpoint: ENDPOINT,
      home: "kitchen",
      identity: { publicKey: "", sign: () => new Uint8Array(64) },
      serviceKeys: [SERVICE_KEY],
    },
    {
      runtime: new VirtualRuntime(),
      recordStore: createMemoryRecordStore(),
      commandLog: createMemoryCommandLog(),
      onCommand: ({ data }) => data,
      dialler: dials.dialler,
      verify: () => true,
    },
  );
  box.start();
  await settle();
  return { box, ...dials };
}

/** Errors that are thrown where nobody catches them, as they come. */
function uncaughtErrors(): unknown[] {
  const errors: unknown[] = [];
  vi.stubGlobal("queueMicrotask", (run: () => void) => {
    try {
      run();
    } catch (error) {
      errors.push(error);
    }
  });
  return errors;
}

afterEach(() => {
  vi.unstubAllGlobals();
});

verifies(
  ["L18", "L20"],
  "a command in flight is unknown at once when the app is given another home, or none",
  async () => {
    for (const token of [undefined, new Secret("garden.secret")]) {
      const { app, last } = await startApp();
      const socket = last();
      socket.welcome("kitchen");
      let ending: unknown;
      void app.send({ ttlMs: 60_000, data: 1 }).then((known) => (ending = known));
      await settle();
      expect(socket.sent.at(-1)).toContain('"t":"cmd"');
      app.setToken(token);
      await settle();
      expect(ending).toEqual({ kind: "unknown" });
      expect(socket.isOver).toBe(true);
    }
  },
);

verifies("L18", "an app that belongs to no home sends no token, one-shots included", async () => {
  const { app, asked } = await startApp();
  app.setToken(undefined);
  expect(await app.once({ ttlMs: 1_000, data: 1 })).toEqual({ kind: "refused", why: "auth" });
  expect(asked).toEqual([]);
});

verifies(
  ["L18", "L29"],
  "a key that one home's hello_ok announced is neither trusted nor kept for another",
  async () => {
    const store = createMemoryRecordStore();
    const { app, last } = await startApp({}, store);
    last().welcome("kitchen", { next_key: NEXT_KEY });
    await settle();
    expect(await store.load()).toContain(NEXT_KEY);
    app.setToken(new Secret("garden.secret"));
    await settle();
    expect(await store.load()).not.toContain(NEXT_KEY);
    const nextId = serviceKeyId(createHash("sha256").update(new Uint8Array(32).fill(4)).digest());
    last().welcome("garden", { key: nextId });
    expect(last().isOver).toBe(true);
  },
);

test("a link that is stopped by whoever hears its warning leaves no timer and dials no more", async () => {
  const store = createMemoryRecordStore();
  await store.save('{"v":1,"home":"garden","host":"s2.cloud.example"}');
  const states: string[] = [];
  const stopping: AppLinkListeners = {
    onState: ({ kind }) => states.push(kind),
    onWarning: () => void link?.stop(),
  };
  let link: AppLink | undefined;
  const atStart = await startApp(stopping, store, (app) => (link = app));
  expect(atStart.sockets.filter(({ isOver }) => !isOver)).toEqual([]);
  expect([atStart.runtime.pendingCount, states.at(-1)]).toEqual([0, "stopped"]);

  const atLoss = await startApp(stopping, undefined, (app) => (link = app));
  atLoss.last().welcome("kitchen");
  atLoss.last().end(4421, "not.a.host.of.ours");
  expect([atLoss.sockets.length, atLoss.runtime.pendingCount, states.at(-1)]).toEqual([1, 0, "stopped"]);
});

test("a link goes on as ever when what hears of it throws, and the error reaches the program", async () => {
  const fail = () => {
    throw new Error("a listener's own fault");
  };
  const errors = uncaughtErrors();
  const { app, runtime, sockets, last } = await startApp({
    onState: fail,
    onWarning: fail,
    onEvent: fail,
    onPresence: fail,
  });
  last().welcome("kitchen");
  let ending: unknown;
  const command = { id: "c1", ttlMs: 1_000, data: 1, onAcked: fail };
  void app.send(command).then((known) => (ending = known));
  for (const frame of [
    { t: "event", data: 1 },
    { t: "presence", box: "online", since_ms: 0 },
    { t: "ack", id: "c1" },
    { t: "result", id: "c1", data: 2 },
  ]) {
    last().say(frame);
  }
  await settle();
  expect(ending).toMatchObject({ kind: "result" });
  // Its warning comes before the wait is begun in the follower's order.
  last().end(4421, "not.a.host.of.ours");
  runtime.advance(60_000);
  expect(sockets.length).toBeGreaterThan(1);
  expect(errors.length).toBeGreaterThanOrEqual(6);
  expect(new Set(errors.map(String))).toEqual(new Set(["Error: a listener's own fault"]));
  await app.stop();
});

verifies("L31", "an answer is sent where a slow line holds events back", async () => {
  const { box, last } = await startBox();
  last().welcome("kitchen");
  last().bufferedBytes = 2 * 1024 * 1024;
  expect(box.sendEvent(1)).toBe(false);
  last().say({ t: "cmd", id: "c1", ttl_ms: 1_000, data: 1, app: "phone" });
  await settle();
  expect(last().answered).toEqual(["c1"]);
});
