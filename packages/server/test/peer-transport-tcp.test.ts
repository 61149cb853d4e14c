// Links over real sockets: plain on loopback, mutual TLS with real certificates.

import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import path from "node:path";
import { connect as connectTls } from "node:tls";
import { ConfigError, createNodeRuntime, createSilentLogger, type LogFields } from "@moor/runtime";
import { createTempDir, startTcpProxy, until, VirtualRuntime, within, type TempDir } from "@moor/testkit";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createPeerNetwork } from "../src/peer/transport/create-peer-network.ts";
import type { Peer, PeerMessage, PeerNetwork } from "../src/peer/transport/peer-network.ts";
import { createTcpTransport } from "../src/peer/transport/tcp-transport.ts";
import { TlsFiles, type TlsFilePaths } from "../src/peer/transport/tls-files.ts";
import { CERTIFICATE_LOOK_MS } from "../src/peer/transport/transport-limits.ts";
import { ClusterFiles } from "./support/cluster-files.ts";

const runtime = createNodeRuntime();

let dir: TempDir;
const open: PeerNetwork[] = [];

beforeEach(async () => {
  dir = await createTempDir("peers");
});

afterEach(async () => {
  await Promise.all(open.splice(0).map((network) => network.close()));
  await dir.remove();
});

interface RealNode {
  readonly network: PeerNetwork;
  readonly entry: { readonly id: string; readonly internalUrl: string };
  readonly lines: string[];
  /** Those of its lines that an operator sees as warnings. */
  readonly warnings: string[];
  readonly messages: PeerMessage[];
  up(): Promise<Peer>;
}

interface RealNodeOptions {
  readonly tls?: TlsFilePaths;
  readonly residency?: string;
  /** What tells it when to look at its files again. */
  readonly clock?: VirtualRuntime;
  /** What its files say it is, where that is not what it says itself. */
  readonly certified?: { readonly nodeId: string; readonly residency: string };
}

async function startNode(nodeId: string, options: RealNodeOptions = {}): Promise<RealNode> {
  const { residency = "global" } = options;
  const lines: string[] = [];
  const warnings: string[] = [];
  const noteIn =
    (...lists: readonly string[][]) =>
    (event: string, fields: LogFields = {}) => {
      const parts = [event, fields["reason"], fields["cause"]].filter((part) => part !== undefined);
      for (const list of lists) list.push(parts.join(" "));
    };
  const [note, warn] = [noteIn(lines), noteIn(lines, warnings)];
  const logger = { ...createSilentLogger(), warn, error: warn, info: note, debug: note };
  const own = options.certified ?? { nodeId, residency };
  const tls =
    options.tls === undefined ? undefined : new TlsFiles(options.tls, own, options.clock ?? runtime, logger);
  const network = createPeerNetwork({
    self: { nodeId, incarnation: "1" },
    residency,
    transport: createTcpTransport({ runtime, logger, ...(tls === undefined ? {} : { tls }) }),
    runtime,
    logger,
  });
  open.push(network);
  const ups: Peer[] = [];
  const waiting: ((peer: Peer) => void)[] = [];
  network.onUp((peer) => {
    const next = waiting.shift();
    if (next === undefined) ups.push(peer);
    else next(peer);
  });
  const messages: PeerMessage[] = [];
  network.onMessage((peer, message) => {
    messages.push(message);
    if (message.head["t"] === "ask")
      peer.send({ head: { ...message.head, t: "answer" }, ...bodyOf(message) });
  });
  const { port } = await network.listen("127.0.0.1", 0);
  return {
    network,
    entry: { id: nodeId, internalUrl: `tcp://127.0.0.1:${port}` },
    lines,
    warnings,
    messages,
    up: () => {
      const past = ups.shift();
      if (past !== undefined) return Promise.resolve(past);
      return within(new Promise<Peer>((resolve) => waiting.push(resolve)), `a link of ${nodeId}`);
    },
  };
}

function bodyOf(message: PeerMessage): { payload?: Uint8Array } {
  return message.payload === undefined ? {} : { payload: message.payload };
}

function introduce(...nodes: readonly RealNode[]): void {
  for (const { network } of nodes) network.setNodes(nodes.map(({ entry }) => entry));
}

test.each(["plain", "TLS"])(
  "P1 · over %s, many small and some large messages arrive, both ways",
  async (kind) => {
    const files = new ClusterFiles(dir.path);
    const tls = (id: string) => (kind === "TLS" ? { tls: files.node(id) } : {});
    const a = await startNode("a", tls("a"));
    const b = await startNode("b", tls("b"));
    introduce(a, b);
    const peer = await a.up();
    const payload = Uint8Array.from({ length: 3_000_000 }, (_, at) => (at * 7) % 256);
    for (let n = 0; n < 3; n += 1) peer.send({ head: { t: "ask", n: `large ${n}` }, payload });
    for (let n = 0; n < 2_000; n += 1) expect(peer.send({ head: { t: "ask", n } })).toBe(true);
    await until(() => a.messages.length === 2_003, "every answer");
    const small = a.messages.filter(({ payload: body }) => body === undefined).map(({ head }) => head["n"]);
    expect(small).toEqual([...Array(2_000).keys()]);
    const large = a.messages.flatMap(({ payload: body }) => (body === undefined ? [] : [Buffer.from(body)]));
    expect(large.map((body) => body.equals(payload))).toEqual([true, true, true]);
  },
);

test("P1 · plain links are for loopback only", async () => {
  const transport = createTcpTransport({ runtime, logger: createSilentLogger() });
  await expect(transport.listen("0.0.0.0", 0, () => {})).rejects.toThrow(ConfigError);
  await expect(transport.listen("0.0.0.0", 0, () => {})).rejects.toThrow("internal.host: got 0.0.0.0");
  for (const [url, reason] of [
    ["tcp://192.0.2.1:1", "needs-tls"],
    ["tcp://example:1", "needs-tls"],
    ["http://127.0.0.1:1", "bad-url"],
  ] as const) {
    const failed = await new Promise((resolve) => transport.dial(url, () => resolve("opened"), resolve));
    expect(failed).toBe(reason);
  }
});

test("P1 · a port that is taken is a wrong setting", async () => {
  const a = await startNode("a");
  const port = Number(a.entry.internalUrl.split(":").at(-1));
  const transport = createTcpTransport({ runtime, logger: createSilentLogger() });
  await expect(transport.listen("127.0.0.1", port, () => {})).rejects.toThrow(
    "internal.port: got 127.0.0.1:",
  );
});

test("P9 · a connection that breaks is told at both ends and made again", async () => {
  const a = await startNode("a");
  const b = await startNode("b");
  const proxy = await startTcpProxy({ port: Number(b.entry.internalUrl.split(":").at(-1)) });
  const down = vi.fn<(peer: Peer) => void>();
  a.network.onDown(down);
  a.network.setNodes([{ id: "b", internalUrl: `tcp://127.0.0.1:${proxy.port}` }]);
  b.network.setNodes([{ id: "a", internalUrl: "tcp://127.0.0.1:1" }]);
  const first = await a.up();
  await b.up();
  proxy.reset();
  const second = await a.up();
  await b.up();
  expect([down.mock.calls, first.isUp, second.isUp]).toEqual([[[first]], false, true]);
  second.send({ head: { t: "ask", n: 1 } });
  await until(() => a.messages.length === 1, "an answer over the new link");
  await proxy.close();
});

/** Starts a listed node `a` and one that claims to be `b`; gives what `a` and the other had to say, without a link. */
async function expectRefused(options: RealNodeOptions, files: ClusterFiles, said: RegExp) {
  const a = await startNode("a", { tls: files.node("a") });
  const b = await startNode("b", options);
  introduce(a, b);
  await until(() => [...a.lines, ...b.lines].some((line) => said.test(line)), `a line like ${String(said)}`);
  expect([a.network.peers(), b.network.peers()]).toEqual([[], []]);
  return { a, b };
}

test("P5 · a certificate of another authority is refused", async () => {
  const files = new ClusterFiles(dir.path);
  const others = new ClusterFiles(dir.path, { ca: "other" });
  await expectRefused({ tls: others.node("b") }, files, /SELF_SIGNED|UNABLE_TO_VERIFY|SIGNATURE/);
});

test("P5 · a node whose own authority is right and whose certificate is not is refused by the other side", async () => {
  const files = new ClusterFiles(dir.path);
  const tls = { ...new ClusterFiles(dir.path, { ca: "other" }).node("b"), caFile: files.node("a").caFile };
  const { a, b } = await expectRefused({ tls }, files, /peer-refused certificate UNABLE_TO_VERIFY/);
  await until(
    () => b.warnings.includes("peer-unreachable certificate-refused"),
    "the other side to hear of it",
  );
  expect(a.warnings.filter((line) => line.startsWith("peer-refused"))).toHaveLength(1);
});

test("P5 · a certificate that has expired is refused", async () => {
  const files = new ClusterFiles(dir.path);
  const tls = files.node("b", { days: -0.001 });
  await expectRefused({ tls }, files, /CERT_HAS_EXPIRED/);
});

test("P5 · a certificate of another node is refused", async () => {
  const files = new ClusterFiles(dir.path);
  const certified = { nodeId: "c", residency: "global" };
  await expectRefused({ tls: files.node("c"), certified }, files, /certificate-mismatch/);
});

test("P5 · a certificate of another residency is refused, whatever the node says", async () => {
  const files = new ClusterFiles(dir.path);
  const certified = { nodeId: "b", residency: "eu" };
  const tls = files.node("b", { residency: "eu" });
  await expectRefused({ tls, certified }, files, /certificate-mismatch/);
});

test("P5 · a plain node and one with TLS have no link", async () => {
  await expectRefused({}, new ClusterFiles(dir.path), /peer-unreachable/);
});

test("P5 · a client without certificate never gets to say anything, and is told of once", async () => {
  const files = new ClusterFiles(dir.path);
  const a = await startNode("a", { tls: files.node("a") });
  for (let count = 0; count < 2; count += 1) {
    const socket = connectTls({
      host: "127.0.0.1",
      port: Number(a.entry.internalUrl.split(":").at(-1)),
      rejectUnauthorized: false,
    });
    socket.on("error", () => {}).resume();
    socket.write("hello");
    await within(new Promise((resolve) => socket.on("close", resolve)), "the refusal");
  }
  expect(a.warnings).toEqual([expect.stringMatching(/^peer-refused certificate [A-Z_]+$/)]);
});

test("P5 · a node whose files are another node's does not start", () => {
  const files = new ClusterFiles(dir.path);
  const own = { nodeId: "b", residency: "global" };
  const start = (paths: TlsFilePaths) => new TlsFiles(paths, own, runtime, createSilentLogger());
  expect(() => start(files.node("a"))).toThrow(
    "for moor://global/node/a, expected a certificate for moor://global/node/b",
  );
  expect(() => start({ ...files.node("b"), keyFile: files.node("a").keyFile })).toThrow("belong together");
  expect(() => start({ ...files.node("b"), certFile: path.join(dir.path, "none") })).toThrow("ENOENT");
  writeFileSync(path.join(dir.path, "empty"), "");
  expect(() => start({ ...files.node("b"), certFile: path.join(dir.path, "empty") })).toThrow(
    "no certificate",
  );
});

test("P5 · new certificates are used by new connections, without a restart; unusable ones are not", async () => {
  const files = new ClusterFiles(dir.path);
  const clock = new VirtualRuntime();
  const a = await startNode("a", { tls: files.node("a"), clock });
  const b = await startNode("b", { tls: files.node("b") });
  const serial = () => readSerial(a.entry.internalUrl, files.node("c"));
  const before = await serial();
  const { certFile } = files.node("a");
  clock.advance(CERTIFICATE_LOOK_MS);
  const after = await serial();
  expect(after).not.toBe(before);
  writeFileSync(certFile, "half a certi");
  for (let look = 0; look < 3; look += 1) {
    clock.advance(CERTIFICATE_LOOK_MS);
    expect(await serial()).toBe(after);
  }
  expect(a.lines.filter((line) => line.startsWith("peer-certificate"))).toEqual([
    "peer-certificate-read",
    expect.stringContaining("peer-certificate-unusable"),
  ]);
  introduce(a, b);
  await Promise.all([a.up(), b.up()]);
});

/** Serial number of the certificate that a listener shows. */
async function readSerial(url: string, paths: TlsFilePaths): Promise<string | undefined> {
  const material = new TlsFiles(
    paths,
    { nodeId: "c", residency: "global" },
    runtime,
    createSilentLogger(),
  ).current();
  const socket = connectTls({
    host: "127.0.0.1",
    port: Number(url.split(":").at(-1)),
    secureContext: material.context,
    checkServerIdentity: () => undefined,
  });
  await within(new Promise((resolve) => socket.once("secureConnect", resolve)), "a TLS connection");
  const serial = socket.getPeerX509Certificate()?.serialNumber;
  socket.destroy();
  return serial;
}

test("P2 · bytes of anything but a peer close that connection and leave the listener well", async () => {
  const a = await startNode("a");
  const b = await startNode("b");
  const socket = connect(Number(a.entry.internalUrl.split(":").at(-1)), "127.0.0.1");
  socket.on("error", () => {}).resume();
  socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await within(new Promise((resolve) => socket.on("close", resolve)), "the refusal");
  expect(a.lines).toContain("peer-refused protocol");
  introduce(a, b);
  await Promise.all([a.up(), b.up()]);
});

test("P11 · closing ends the other side's link at once, and leaves no socket", async () => {
  const a = await startNode("a");
  const b = await startNode("b");
  introduce(a, b);
  const [peer] = await Promise.all([b.up(), a.up()]);
  await within(a.network.close(), "the network to close", 5_000);
  await until(() => !peer.isUp, "the other side to hear of it");
  expect(b.lines.filter((line) => line.startsWith("peer-down"))).toEqual(["peer-down leaving"]);
});
