// What the listener does with connections, over real sockets: keeping, ending and cutting them.

import { connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { createNodeRuntime, createSilentLogger } from "@moor/runtime";
import { createTempDir, until, verifies, VirtualRuntime, within } from "@moor/testkit";
import type { HttpExchange } from "../src/http/http-exchange.ts";
import { openHttpListener, type HttpListener } from "../src/http/http-listener.ts";
import { CLOSE_FLUSH_MS } from "../src/server-limits.ts";
import { ClusterFiles } from "./support/cluster-files.ts";

const NO_HEADERS = {};
const opened: { close(): unknown }[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((part) => part.close()));
});

async function open(
  handle: (exchange: HttpExchange) => void | Promise<void>,
  more: Partial<Parameters<typeof openHttpListener>[0]> = {},
): Promise<HttpListener> {
  const listener = await openHttpListener({
    host: "127.0.0.1",
    port: 0,
    portOption: "--port",
    runtime: createNodeRuntime(),
    logger: createSilentLogger(),
    isLeaving: () => false,
    handle,
    ...more,
  });
  opened.push(listener);
  return listener;
}

function dial({ port }: HttpListener): { socket: Socket; received: () => string; closed: Promise<void> } {
  const socket = connect({ host: "127.0.0.1", port });
  opened.push({ close: () => socket.destroy() });
  let text = "";
  socket.on("data", (chunk) => (text += chunk.toString("latin1"))).on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  return { socket, received: () => text, closed };
}

const get = (more = "") => `GET / HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
const post = (more: string) => `POST / HTTP/1.1\r\nHost: x\r\n${more}\r\n`;

verifies("T4", "a request that is answered at once keeps its connection for the next", async () => {
  const listener = await open((exchange) => void exchange.reply(200, NO_HEADERS, "answer"));
  const { socket, received } = dial(listener);
  socket.write(get());
  await until(() => received().includes("answer"), "the first answer");
  socket.write(get());
  await until(() => received().split("answer").length === 3, "the second answer on the same connection");
  expect(received()).not.toMatch(/connection: close/i);
});

test("a listener whose port is taken leaves nothing behind that would keep its process alive", async () => {
  const { port } = await open(() => {});
  const dir = await createTempDir("listener");
  opened.push({ close: () => dir.remove() });
  const runtime = new VirtualRuntime(1);
  const refused = openHttpListener({
    host: "127.0.0.1",
    port,
    tls: new ClusterFiles(dir.path).node("n1"),
    portOption: "--port",
    runtime,
    logger: createSilentLogger(),
    isLeaving: () => false,
    handle: () => {},
  });
  await expect(refused).rejects.toMatchObject({ name: "ConfigError", option: "--port" });
  expect(runtime.pendingCount).toBe(0);
});

test("a part of a body that is left unread ends the connection after the answer", async () => {
  const listener = await open((exchange) => void exchange.reply(401, NO_HEADERS, "no"));
  const { socket, received, closed } = dial(listener);
  socket.write(post("Content-Length: 10\r\n"));
  await until(() => received().includes("no"), "the answer");
  expect(received()).toMatch(/connection: close/i);
  await within(closed, "the connection to end");
});

verifies("T3", "an expectation that nobody knows is served like any request", async () => {
  const listener = await open((exchange) => void exchange.reply(200, NO_HEADERS, "served"));
  const { socket, received } = dial(listener);
  socket.write(get("Expect: the-unexpected\r\n"));
  await until(() => received().includes("served"), "the answer");
  expect(received()).toMatch(/^HTTP\/1\.1 200 /);
});

verifies(
  ["T3", "T11"],
  "bytes that are no HTTP, behind a request that waits, end the connection without an answer in its place",
  async () => {
    let isGone = false;
    const listener = await open((exchange) => exchange.onGone(() => (isGone = true)));
    const { socket, received, closed } = dial(listener);
    socket.write(`${get()}NONSENSE\r\n\r\n`);
    await within(closed, "the connection to end");
    expect(received()).toBe("");
    await until(() => isGone, "the exchange to know");
  },
);

test("a peer that is told 400 and does not go is cut after 2 s", async () => {
  const runtime = new VirtualRuntime(1);
  const listener = await open(() => {}, { runtime });
  const socket = connect({ host: "127.0.0.1", port: listener.port, allowHalfOpen: true });
  opened.push({ close: () => socket.destroy() });
  let received = "";
  socket.on("data", (chunk) => (received += chunk.toString("latin1"))).on("error", () => {});
  socket.write("NONSENSE\r\n\r\n");
  await until(() => received.includes('"code":"invalid_request"'), "the answer");
  runtime.advance(2_000);
  await within(listener.close(), "the listener's end");
  expect(runtime.pendingCount).toBe(0);
});

test("an upgrade whose handler fails costs its client the connection, and nobody else anything", async () => {
  const upgrades = {
    accepts: () => true,
    handle: () => {
      throw new Error("a bug");
    },
    close: () => {},
  };
  const listener = await open((exchange) => void exchange.reply(200, NO_HEADERS, "served"), { upgrades });
  const failed = dial(listener);
  failed.socket.write(get("Connection: Upgrade\r\nUpgrade: websocket\r\n"));
  await within(failed.closed, "the connection to end");
  expect(failed.received()).toBe("");
  const { socket, received } = dial(listener);
  socket.write(get());
  await until(() => received().includes("served"), "another client's answer");
});

test("a peer in its TLS handshake holds no listener open that closes", async () => {
  const dir = await createTempDir("listener");
  opened.push({ close: () => dir.remove() });
  const runtime = new VirtualRuntime(1);
  const listener = await open(() => {}, { runtime, tls: new ClusterFiles(dir.path).node("n1") });
  const { socket, closed } = dial(listener);
  await until(() => socket.readyState === "open", "the connection");
  await listener.stopAccepting();
  const closing = listener.close();
  runtime.advance(CLOSE_FLUSH_MS);
  await within(closing, "the listener's end");
  await within(closed, "the connection to end");
  expect(runtime.pendingCount).toBe(0);
});

test("a peer that does not end its TLS handshake is cut", async () => {
  const dir = await createTempDir("listener");
  opened.push({ close: () => dir.remove() });
  const runtime = new VirtualRuntime(1);
  const tls = new ClusterFiles(dir.path).node("n1");
  const listener = await open(() => {}, { runtime, tls, tlsHandshakeMs: 20 });
  const followed = runtime.pendingCount;
  const { closed, received } = dial(listener);
  await until(() => runtime.pendingCount > followed, "the handshake to be given up");
  runtime.advance(2_000);
  await within(closed, "the connection to end");
  expect(received()).toBe("");
});

test("bytes that are no HTTP, in the midst of a stream, do not become part of it", async () => {
  const listener = await open((exchange) => {
    exchange.startStream(200, NO_HEADERS);
    exchange.writeChunk("first");
  });
  const { socket, received, closed } = dial(listener);
  socket.write(get());
  await until(() => received().includes("first"), "the stream to begin");
  socket.write("NONSENSE\r\n\r\n");
  await within(closed, "the connection to end");
  expect(received()).not.toContain("400");
});

verifies("T3", "a body that turns out to be no HTTP is refused with the envelope", async () => {
  const listener = await open(async (exchange) => {
    await exchange.readBody(100);
  });
  const { socket, received, closed } = dial(listener);
  socket.write(`${post("Transfer-Encoding: chunked\r\n")}nonsense\r\n`);
  await within(closed, "the connection to end");
  expect(received()).toMatch(/^HTTP\/1\.1 400 /);
  expect(received()).toContain('"code":"invalid_request"');
});

test("a peer that stops reading its answer is cut; one that reads on gets all of it", async () => {
  const answer = Buffer.alloc(16 * 1024 * 1024, 0x20);
  const listener = await open((exchange) => void exchange.reply(200, NO_HEADERS, answer), {
    readStallMs: 200,
  });
  const stopped = dial(listener);
  stopped.socket.pause();
  const reader = dial(listener);
  stopped.socket.write(get());
  reader.socket.write(get("Connection: close\r\n"));
  await within(reader.closed, "the reader to have everything");
  expect(reader.received().length).toBeGreaterThan(answer.length);
  // A peer that reads nothing learns of the reset when it writes.
  await until(() => {
    if (!stopped.socket.destroyed) stopped.socket.write(get());
    return stopped.socket.destroyed;
  }, "the stopped peer to be cut");
});

test("a handler that throws after its answer began cuts the connection, and the listener lives on", async () => {
  let requests = 0;
  const listener = await open((exchange) => {
    requests += 1;
    if (requests > 1) return void exchange.reply(200, NO_HEADERS, "alive");
    exchange.startStream(200, NO_HEADERS);
    throw new Error("a bug");
  });
  const broken = dial(listener);
  broken.socket.write(get());
  await within(broken.closed, "the connection to be cut");
  const next = dial(listener);
  next.socket.write(get());
  await until(() => next.received().includes("alive"), "the next answer");
});

test("a listener that stops accepting serves the connections it has, kept ones too", async () => {
  const listener = await open((exchange) => void exchange.reply(200, NO_HEADERS, "answer"));
  const kept = dial(listener);
  kept.socket.write(get());
  await until(() => kept.received().includes("answer"), "the first answer");
  await listener.stopAccepting();
  kept.socket.write(get());
  await until(() => kept.received().split("answer").length === 3, "an answer after that");
  const late = dial(listener);
  await within(late.closed, "a newcomer to be refused");
  expect(late.received()).toBe("");
  await listener.close();
});

test("what dialled before a listener stops accepting is taken in", async () => {
  const listener = await open((exchange) => void exchange.reply(200, NO_HEADERS, "answer"));
  const dialled = Array.from({ length: 50 }, () => dial(listener));
  const connected = dialled.map(({ socket }) => new Promise<void>((done) => socket.once("connect", done)));
  const stopped = listener.stopAccepting();
  await within(Promise.all(connected), "all to be connected");
  await stopped;
  for (const { socket } of dialled) socket.write(get());
  await until(() => dialled.every(({ received }) => received().includes("answer")), "every answer");
});

test("two listeners share a port when both say so, and one that does not is told what it would take", async () => {
  const first = await open((exchange) => void exchange.reply(200, NO_HEADERS, "first"), {
    isPortShared: true,
  });
  const { port } = first;
  const second = await open((exchange) => void exchange.reply(200, NO_HEADERS, "second"), {
    isPortShared: true,
    port,
  });
  expect(second.port).toBe(port);
  await first.stopAccepting();
  const { socket, received } = dial({ ...second, port });
  socket.write(get());
  await until(() => received().includes("second"), "the one that is left to answer");
  await expect(open(() => {}, { port })).rejects.toThrow("a port nobody else listens on");
  const alone = await open(() => {});
  const shared = open(() => {}, { port: alone.port, isPortShared: true });
  await expect(shared).rejects.toThrow("has public.reusePort too");
});

test("an inherited socket that is none ends the start, naming the setting", async () => {
  await expect(open(() => {}, { fd: 1_023 })).rejects.toThrow("public.fd: got 1023 (");
});
