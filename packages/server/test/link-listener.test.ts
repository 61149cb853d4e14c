// Upgrades over real sockets: who becomes a link, who is told why not, and what the library must not do.

import { writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import path from "node:path";
import { Duplex } from "node:stream";
import { ProtocolError } from "@moor/protocol";
import { createNodeRuntime, createSilentLogger } from "@moor/runtime";
import { createTempDir, makeLinkCertificates, until, verifies, VirtualRuntime, within } from "@moor/testkit";
import { afterEach, expect, test } from "vitest";
import { WebSocket } from "ws";
import { parseProxies } from "../src/entry/client-address.ts";
import { createLinkListener } from "../src/entry/link/link-listener.ts";
import { handleLinkRoute } from "../src/entry/link/link-routes.ts";
import { WAITING_MS } from "../src/handover/waiting-room.ts";
import { openHttpListener, type HttpListener } from "../src/http/http-listener.ts";
import { refuseUpgrade } from "../src/http/raw-reply.ts";
import type { NodeOptions } from "../src/node-options.ts";
import { openPublicListener } from "../src/public-listener.ts";
import { EntryLinks, helloText } from "./support/entry-links.ts";

const runtime = createNodeRuntime();
const opened: { close(): unknown }[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((part) => part.close()));
});

interface Served {
  readonly entry: EntryLinks;
  readonly listener: HttpListener;
}

async function serve(
  options: Partial<Parameters<typeof openHttpListener>[0]> & { readonly proxies?: readonly string[] } = {},
): Promise<Served> {
  const entry = new EntryLinks();
  entry.addHome("h1");
  const proxies = parseProxies(options.proxies ?? []);
  if (proxies === undefined) throw new Error("no list");
  const listener = await openHttpListener({
    host: "127.0.0.1",
    port: 0,
    portOption: "--port",
    runtime,
    logger: createSilentLogger(),
    isLeaving: () => false,
    upgrades: createLinkListener({ table: entry.table, isLoopbackListener: () => true, proxies, runtime }),
    handle: (exchange) => handleLinkRoute(undefined, exchange) ?? void exchange.reply(404, {}),
    ...options,
  });
  opened.push(listener);
  return { entry, listener };
}

/** A WebSocket client, and everything it hears. */
interface Client {
  readonly socket: WebSocket;
  readonly texts: string[];
  readonly opened: Promise<void>;
  /** Code and reason. */
  readonly closed: Promise<string>;
}

function dial(
  { port }: HttpListener,
  options: {
    readonly at?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly ca?: string;
  } = {},
): Client {
  const { at = "/v1/box", headers = { Host: "moor.localhost" }, ca } = options;
  const scheme = ca === undefined ? "ws" : "wss";
  const tls = ca === undefined ? {} : { ca, servername: "moor.localhost" };
  const socket = new WebSocket(`${scheme}://127.0.0.1:${port}${at}`, { headers, ...tls });
  const texts: string[] = [];
  socket.on("message", (data) => texts.push((data as Buffer).toString()));
  socket.on("error", () => {});
  opened.push({ close: () => socket.terminate() });
  return {
    socket,
    texts,
    opened: new Promise((resolve) => socket.once("open", resolve)),
    closed: new Promise((resolve) =>
      socket.once("close", (code, reason) => resolve(`${code} ${reason.toString()}`.trim())),
    ),
  };
}

/** Sends text on a plain connection; gives what came back when it ended. */
async function raw({ port }: HttpListener, text: string): Promise<string> {
  const socket: Socket = connect({ host: "127.0.0.1", port });
  opened.push({ close: () => socket.destroy() });
  let received = "";
  socket.on("data", (chunk) => (received += chunk.toString("latin1"))).on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.write(text);
  await within(closed, "the end of a refused upgrade");
  return received;
}

function upgrade(lines: readonly string[] = [], path = "/v1/box", host = "moor.localhost"): string {
  return [
    `GET ${path} HTTP/1.1`,
    ...(host === "" ? [] : [`Host: ${host}`]),
    "Connection: Upgrade",
    "Upgrade: websocket",
    ...(lines.some((line) => line.startsWith("Sec-WebSocket-Key"))
      ? []
      : [`Sec-WebSocket-Key: ${"A".repeat(22)}==`]),
    ...(lines.some((line) => line.startsWith("Sec-WebSocket-Version")) ? [] : ["Sec-WebSocket-Version: 13"]),
    ...lines,
    "",
    "",
  ].join("\r\n");
}

/** Status and code of a refused upgrade. */
function refusalOf(answer: string): string {
  const status = /^HTTP\/1\.1 (\d+) /.exec(answer)?.[1];
  const body = answer.slice(answer.indexOf("\r\n\r\n") + 4);
  return `${status} ${(JSON.parse(body) as { error: { code: string } }).error.code}`;
}

verifies(
  ["L1", "L27"],
  "a client gets its challenge, and what it must not send ends with a 4400 or the library's code",
  async () => {
    const { listener, entry } = await serve();
    const [binary, text, large, broken] = [1, 2, 3, 4].map(() => dial(listener));
    if (!binary || !text || !large || !broken) throw new Error("no clients");
    await Promise.all([binary, text, large, broken].map((client) => client.opened));
    text.socket.send(helloText({}));
    await until(() => text.texts.length > 0, "the challenge");
    expect(text.texts[0]).toMatch(/^\{"t":"challenge","nonce":"[0-9A-Za-z_-]{43}"\}$/);
    binary.socket.send(Buffer.from(helloText({})), { binary: true });
    text.socket.send("nonsense");
    large.socket.send(" ".repeat(70_000));
    broken.socket.send(Buffer.from([0xff, 0xfe]), { binary: false });
    const ends = await within(
      Promise.all([binary, text, large, broken].map((client) => client.closed)),
      "the ends",
    );
    expect(ends).toEqual(["4400 binary", "4400 not-json", "1009", "1007"]);
    await until(() => entry.table.drain.links() === 0, "the links to be gone");
    expect(entry.outcomes).toEqual(["protocol", "protocol", "protocol", "protocol"]);
  },
);

verifies("L27", "a frame of exactly 68 KiB passes, one byte more does not", async () => {
  const { listener, entry } = await serve();
  const fits = dial(listener);
  const exceeds = dial(listener);
  await Promise.all([fits.opened, exceeds.opened]);
  const frame = (byteCount: number) => `{"t":"x","p":"${"y".repeat(byteCount - 16)}"}`.padEnd(byteCount);
  expect(Buffer.byteLength(frame(69_632))).toBe(69_632);
  fits.socket.send(frame(69_632));
  fits.socket.send(helloText({}));
  exceeds.socket.send(frame(69_633));
  expect(await within(exceeds.closed, "the end")).toBe("1009");
  await until(() => fits.texts.length > 0, "the challenge");
  await until(() => entry.table.drain.links() === 1, "the other link to be gone");
});

verifies(
  ["L21", "L24", "L25"],
  "an upgrade that is refused is answered in plain HTTP, and ends its connection",
  async () => {
    const { listener, entry } = await serve();
    const answers: Record<string, string> = {};
    const cases: Readonly<Record<string, string>> = {
      "unknown host": upgrade([], "/v1/box", "evil.example"),
      "host twice": upgrade(["Host: moor.localhost"]),
      "no host": upgrade([], "/v1/app", ""),
      "no key": upgrade(["Sec-WebSocket-Key: short"]),
      "old version": upgrade(["Sec-WebSocket-Version: 8"]),
    };
    for (const [name, text] of Object.entries(cases)) answers[name] = await raw(listener, text);
    expect(
      Object.fromEntries(Object.entries(answers).map(([name, text]) => [name, refusalOf(text)])),
    ).toEqual({
      "unknown host": "421 wrong_shard",
      "host twice": "400 invalid_request",
      "no host": "400 invalid_request",
      "no key": "400 invalid_request",
      "old version": "400 invalid_request",
    });
    expect(answers["unknown host"]).not.toMatch(/ftw-shard/i);
    expect(answers["unknown host"]).toMatch(/cache-control: no-store/i);
    expect(answers["old version"]).toMatch(/sec-websocket-version: 13\r\n/i);
    entry.table.drain.refuseDials();
    const draining = await raw(listener, upgrade());
    expect(refusalOf(draining)).toBe("503 node_draining");
    expect(draining).toMatch(/retry-after: 1\r\n/i);
    expect(entry.outcomes.every((outcome) => outcome === "refused")).toBe(true);
  },
);

test("no subprotocol is agreed on, nor is what is none a reason to refuse", async () => {
  const { listener } = await serve();
  for (const offered of ["mqtt, soap", "mqtt, mqtt", "(", ""]) {
    const socket = connect({ host: "127.0.0.1", port: listener.port });
    opened.push({ close: () => socket.destroy() });
    let received = "";
    socket.on("data", (chunk) => (received += chunk.toString("latin1")));
    socket.write(upgrade([`Sec-WebSocket-Protocol: ${offered}`]));
    await until(() => received.includes("\r\n\r\n"), "the answer");
    expect(received).toMatch(/^HTTP\/1\.1 101 /);
    expect(received).not.toMatch(/sec-websocket-protocol/i);
  }
});

test("a refused upgrade whose peer reads nothing is let go of after 30 s", () => {
  const stalled = new VirtualRuntime();
  // Takes what is written, and never says that it is gone.
  const socket = new Duplex({ read: () => {}, write: () => {} });
  refuseUpgrade(socket, new ProtocolError("node_draining"), stalled);
  stalled.advance(29_999);
  expect(socket.destroyed).toBe(false);
  stalled.advance(1);
  expect(socket.destroyed).toBe(true);
  refuseUpgrade(socket, new ProtocolError("node_draining"), stalled);
  expect(stalled.pendingCount).toBe(0);
});

test("an upgrade that has waited in vain for its node ends its connection, whatever its client does", async () => {
  const waiting = new VirtualRuntime();
  const node = { host: "127.0.0.1", port: 0, runtime: waiting, logger: createSilentLogger() };
  const listener = await openPublicListener(node as unknown as NodeOptions);
  const socket = connect({ host: "127.0.0.1", port: listener.port, allowHalfOpen: true });
  opened.push({ close: () => socket.destroy() });
  let received = "";
  socket.on("data", (chunk) => (received += chunk.toString("latin1"))).on("error", () => {});
  socket.write(`${upgrade()}more`);
  await until(() => waiting.pendingCount > 0, "the client to wait");
  await waiting.advanceAsync(WAITING_MS);
  await until(() => received !== "", "the answer");
  expect(refusalOf(received)).toBe("503 node_draining");
  await within(listener.close(), "the listener's end");
});

verifies(
  "L2",
  "a node that does not serve yet answers preflights, and pages can read its 503 and what it says when it fails",
  async () => {
    const waiting = new VirtualRuntime();
    const node = { host: "127.0.0.1", port: 0, runtime: waiting, logger: createSilentLogger() };
    const listener = await openPublicListener(node as unknown as NodeOptions);
    opened.push(listener);
    const url = (path: string) => `http://127.0.0.1:${listener.port}${path}`;
    const headers = { Origin: "https://app.example" };
    const paths = ["/v1/now", "/v1/app/once"];
    const preflights = await Promise.all(
      paths.map((path) => fetch(url(path), { method: "OPTIONS", headers })),
    );
    const turnedAway = Promise.all(paths.map((path) => fetch(url(path), { headers })));
    await until(() => waiting.pendingCount === 2, "two requests to wait");
    await waiting.advanceAsync(WAITING_MS);
    const answers = [...preflights, ...(await turnedAway)];
    listener.admit({ isLeaving: () => false, handle: () => Promise.reject(new Error("a bug")) });
    answers.push(await fetch(url("/v1/now"), { headers }));
    expect(answers.map(({ status }) => status)).toEqual([204, 204, 503, 503, 500]);
    for (const { headers: given } of answers) {
      expect(given.get("access-control-allow-origin")).toBe("https://app.example");
      expect(given.get("access-control-expose-headers")).toContain("Retry-After");
    }
    const other = await fetch(url("/v1/box"), { headers });
    expect(other.headers.get("access-control-allow-origin")).toBeNull();
  },
);

test("an upgrade elsewhere, or to something else, is a plain request", async () => {
  const { listener } = await serve();
  const h2c = upgrade(["Sec-WebSocket-Key: x"])
    .replace("websocket", "h2c")
    .replace("Upgrade\r", "close, Upgrade\r");
  for (const text of [upgrade([], "/v1/other").replace("Connection: ", "Connection: close, "), h2c]) {
    expect(await raw(listener, text)).toMatch(/^HTTP\/1\.1 (404|503) /);
  }
});

verifies(
  "L25",
  "the client address is a configured proxy's word, and each address has its own room",
  async () => {
    const { listener, entry } = await serve({ proxies: ["127.0.0.1"] });
    const headers = { Host: "moor.localhost", "X-Forwarded-For": "6.6.6.6, 198.51.100.7" };
    const client = dial(listener, { headers });
    await client.opened;
    expect([...entry.table.handshaking.all()].map(({ address }) => address)).toEqual(["198.51.100.7"]);
    const without = await serve();
    const direct = dial(without.listener, { headers });
    await direct.opened;
    expect([...without.entry.table.handshaking.all()].map(({ address }) => address)).toEqual(["127.0.0.1"]);
  },
);

test("a flood of handshakes from one address is refused before the upgrade, and leaves room for another", async () => {
  const { entry } = await serve();
  for (let at = 0; at < 6_000; at += 1) entry.open("box", "moor.localhost", "6.6.6.6");
  expect(entry.table.handshaking.hasRoomFor("6.6.6.6")).toBe(false);
  expect(entry.table.handshaking.hasRoomFor("7.7.7.7")).toBe(true);
  for (let at = 0; at < 10_384; at += 1) entry.open("box", "moor.localhost", `7.7.${at % 9}.1`);
  expect(entry.table.handshaking.hasRoomFor("8.8.8.8")).toBe(false);
  entry.runtime.advance(11_000);
  expect(entry.table.handshaking.hasRoomFor("6.6.6.6")).toBe(true);
});

verifies("L25", "what came online counts for its address no more: a fleet behind one address fits", () => {
  const entry = new EntryLinks();
  const tokens = Array.from({ length: 6_001 }, (_, at) => entry.addToken(`h${at}`));
  for (const token of tokens) expect(entry.app(token).isOnline).toBe(true);
  expect(entry.table.handshaking.hasRoomFor("192.0.2.1")).toBe(true);
});

verifies(
  "L1",
  "4421 and its host arrive at the client, as does a drain's 4503; late ones are destroyed",
  async () => {
    const { listener, entry } = await serve();
    entry.addHome("h2", "s2");
    const moved = dial(listener);
    await moved.opened;
    moved.socket.send(helloText({ home: "h2" }));
    expect(await within(moved.closed, "4421")).toBe("4421 s2.moor.localhost");
    const draining = dial(listener);
    await draining.opened;
    entry.table.drain.closeSome(10, 4503, "20000");
    expect(await within(draining.closed, "4503")).toBe("4503 20000");
    const stuck = dial(listener);
    await stuck.opened;
    stuck.socket.pause(); // reads nothing, so it never answers the close
    entry.table.drain.closeSome(10, 4503, "20000");
    entry.runtime.advance(5_000);
    entry.table.drain.destroyLate(5_000);
    await until(() => entry.table.drain.links() === 0, "the stuck link to be gone");
  },
);

test("a ping of the WebSocket itself is answered, once", async () => {
  const { listener } = await serve();
  const client = dial(listener);
  await client.opened;
  const pongs: string[] = [];
  client.socket.on("pong", (data) => pongs.push(data.toString()));
  for (const text of ["a", "b", "c"]) client.socket.ping(text);
  await until(() => pongs.includes("c"), "the pongs");
  expect(pongs).toEqual(["a", "b", "c"]);
});

test("links come over TLS, and a listener that closes ends what is left of them", async () => {
  const dir = await createTempDir("links-tls");
  opened.push({ close: () => dir.remove() });
  const certificates = makeLinkCertificates(["moor.localhost"]);
  const { cert, key } = certificates.get("good");
  const [certFile, keyFile] = ["cert.pem", "key.pem"].map((name) => path.join(dir.path, name));
  if (certFile === undefined || keyFile === undefined) throw new Error("no paths");
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  const { listener } = await serve({ tls: { certFile, keyFile } });
  const client = dial(listener, { ca: certificates.ca });
  await within(client.opened, "the upgrade over TLS");
  await within(listener.close(), "the listener's end");
  expect(await within(client.closed, "the end of the link")).toBe("1006");
});

test("a socket that breaks before its upgrade ends nothing but itself", async () => {
  const { listener, entry } = await serve();
  for (let at = 0; at < 20; at += 1) {
    const socket = connect({ host: "127.0.0.1", port: listener.port });
    socket.on("error", () => {});
    socket.write(upgrade([], "/v1/box", at % 2 === 0 ? "moor.localhost" : "evil.example"));
    socket.resetAndDestroy();
  }
  const client = dial(listener);
  await within(client.opened, "a client after those");
  await until(() => entry.table.drain.links() === 1, "the others to be gone");
});
