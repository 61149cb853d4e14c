// One link between two nodes, on a simulated network: handshake, messages, liveness, broken rules.

import { randomBytes } from "node:crypto";
import { expect, test, vi } from "vitest";
import { encodeFrame, FRAME } from "../src/peer/transport/frame.ts";
import { encodeHello } from "../src/peer/transport/link-hello.ts";
import {
  HANDSHAKE_MS_MAX,
  MESSAGE_PAYLOAD_BYTES_MAX,
  QUEUED_BYTES_MAX,
  SILENCE_MS_MAX,
} from "../src/peer/transport/transport-limits.ts";
import type { Wire } from "../src/peer/transport/wire.ts";
import { introduce, nodeEntry, PeerFleet } from "./support/peer-fleet.ts";

/** Small enough for one frame, or not. */
const LARGE_BYTES = 1024 * 1024;

test("P3 · two nodes that know each other have one link, told once on both sides", async () => {
  const fleet = new PeerFleet();
  const { a, b } = await fleet.startPair();
  expect([a.changes(), b.changes()]).toEqual([["up b/1"], ["up a/1"]]);
  expect(fleet.wires.openBetween("a", "b")).toBe(1);
  expect([a.network.peer("b")?.version, a.network.peers().length, a.network.peer("c")]).toEqual([
    2,
    1,
    undefined,
  ]);
});

test("P6 · heads and payloads arrive as they were sent, small and large, both ways", async () => {
  const fleet = new PeerFleet();
  const { a, b } = await fleet.startPair();
  const sizes = [0, 1, 65_000, 65_536, LARGE_BYTES, MESSAGE_PAYLOAD_BYTES_MAX];
  const payloads = sizes.map((size) => Buffer.alloc(size, randomBytes(251))); // a period that no limit is a multiple of
  const head = { t: "x", text: 'é\u{1f600}"\\\u0000', deep: [{ a: null }, 1.5, true] };
  for (const [n, payload] of payloads.entries()) {
    expect(a.network.peer("b")?.send({ head: { ...head, n }, payload })).toBe(true);
    fleet.runtime.advance(100);
    expect(b.network.peer("a")?.send({ head: { ...head, n }, payload })).toBe(true);
    fleet.runtime.advance(100);
  }
  for (const node of [a, b]) {
    const messages = node.events.flatMap((event) => (event.kind === "message" ? [event.message] : []));
    expect(messages.map((message) => message.head)).toEqual(payloads.map((_, n) => ({ ...head, n })));
    const isSame = messages.map((message, n) =>
      Buffer.from(message.payload ?? []).equals(payloads[n] ?? Buffer.alloc(0)),
    );
    expect(isSame).toEqual(payloads.map(() => true));
  }
});

test("P7 · small messages keep their order and overtake large ones that are under way", async () => {
  const fleet = new PeerFleet({ inFlightBytesMax: 256 * 1024 });
  const { a, b } = await fleet.startPair();
  const peer = a.network.peer("b");
  peer?.send({ head: { t: "body", n: "large" }, payload: new Uint8Array(4 * LARGE_BYTES) });
  for (let n = 0; n < 20; n += 1) {
    fleet.runtime.advance(0.25);
    peer?.send({ head: { t: "small", n } });
  }
  fleet.runtime.advance(1_000);
  expect(b.received()).toEqual([...Array(20).keys(), "large"]);
});

test("P6 · on a link of version 1 a message of 70 KiB travels in parts, on a newer one in one frame", async () => {
  for (const { versions, order } of [
    { versions: [1], order: ["small", "70 KiB"] },
    { versions: [2, 1], order: ["70 KiB", "small"] },
  ]) {
    const fleet = new PeerFleet();
    const { a, b } = await fleet.startPair({ versions });
    a.network.peer("b")?.send({ head: { t: "x", n: "70 KiB" }, payload: new Uint8Array(70 * 1024) });
    a.network.peer("b")?.send({ head: { t: "x", n: "small" } });
    fleet.runtime.advance(1_000);
    expect(b.received()).toEqual(order);
  }
});

test("P7 · a long body does not hold up a shorter one behind it", async () => {
  const fleet = new PeerFleet({ inFlightBytesMax: 256 * 1024 });
  const { a, b } = await fleet.startPair();
  for (const [n, size] of [20 * LARGE_BYTES, LARGE_BYTES, 2 * LARGE_BYTES].entries()) {
    a.network.peer("b")?.send({ head: { t: "body", n }, payload: new Uint8Array(size) });
  }
  fleet.runtime.advance(1_000);
  expect(b.received()).toEqual([1, 2, 0]);
});

test("P8 · send says false, and sends nothing, when too much waits; later it says true again", async () => {
  const fleet = new PeerFleet({ inFlightBytesMax: 256 * 1024 });
  const { a, b } = await fleet.startPair();
  const peer = a.network.peer("b");
  const payload = new Uint8Array(16 * LARGE_BYTES);
  const taken = [0, 1, 2, 3, 4].map((n) => peer?.send({ head: { t: "body", n }, payload }));
  expect(taken).toEqual([true, true, true, false, false]);
  expect(peer?.queuedBytes).toBeLessThanOrEqual(QUEUED_BYTES_MAX);
  fleet.runtime.advance(5_000);
  expect([b.received(), peer?.queuedBytes]).toEqual([[0, 1, 2], 0]);
  expect(peer?.send({ head: { t: "body", n: 5 }, payload })).toBe(true);
  fleet.runtime.advance(5_000);
  expect(b.received()).toEqual([0, 1, 2, 5]);
});

test("P6 · a message over the limits is the sender's bug", async () => {
  const { a } = await new PeerFleet().startPair();
  const payload = new Uint8Array(MESSAGE_PAYLOAD_BYTES_MAX + 1);
  expect(() => a.network.peer("b")?.send({ head: { t: "x" }, payload })).toThrow("invariant");
  const text = "x".repeat(1024 * 1024);
  expect(() => a.network.peer("b")?.send({ head: { t: "x", text } })).toThrow("invariant");
});

test("P9 · a link that hears nothing is dead within 7 s, on both sides, and comes back by itself", async () => {
  const fleet = new PeerFleet();
  const { a, b } = await fleet.startPair();
  const lost = a.network.peer("b");
  fleet.wires.setSilent("a", "b", true);
  fleet.runtime.advance(SILENCE_MS_MAX - 1_000);
  expect([a.changes(), b.changes()]).toEqual([["up b/1"], ["up a/1"]]);
  fleet.runtime.advance(2_000);
  expect([a.changes(), b.changes()]).toEqual([
    ["up b/1", "down b/1"],
    ["up a/1", "down a/1"],
  ]);
  expect([a.ends[0], lost?.isUp, lost?.send({ head: { t: "x" } })]).toEqual(["silence", false, false]);
  fleet.wires.setSilent("a", "b", false);
  fleet.runtime.advance(5_000);
  expect(a.changes()).toEqual(["up b/1", "down b/1", "up b/1"]);
  expect(b.changes()).toEqual(["up a/1", "down a/1", "up a/1"]);
});

test("P9 · an idle link stays up, and pings are all that is said", async () => {
  const fleet = new PeerFleet();
  const { a, b } = await fleet.startPair();
  fleet.runtime.advance(3_600_000);
  expect([a.changes(), b.changes(), a.ends, b.warnings]).toEqual([["up b/1"], ["up a/1"], [], []]);
});

test("P9 · a process that stood still does not take its peers for dead", async () => {
  for (const stoodStillAtMs of [0, 1_000, 2_000, 3_000]) {
    const fleet = new PeerFleet();
    const { a } = await fleet.startPair();
    fleet.runtime.advance(stoodStillAtMs);
    const stillMs = fleet.runtime.monotonicMs();
    // The clock went on, no timer ran and nothing was read; then a timer is the first to run.
    const now = vi.spyOn(fleet.runtime, "monotonicMs").mockReturnValue(stillMs + 60_000);
    fleet.runtime.advance(1_000);
    now.mockRestore();
    fleet.runtime.advance(10_000);
    expect(a.changes()).toEqual(["up b/1"]);
  }
});

test("P4 · versions: the highest that both speak; none in common is said once, and tried on", async () => {
  const fleet = new PeerFleet();
  const a = await fleet.start("a", { versions: [3, 2] });
  const b = await fleet.start("b", { versions: [2, 1] });
  const c = await fleet.start("c", { versions: [1] });
  introduce(a, b, c);
  fleet.runtime.advance(60_000);
  expect(a.network.peer("b")?.version).toBe(2);
  expect(b.network.peer("c")?.version).toBe(1);
  expect(a.network.peer("c")).toBeUndefined();
  const said = a.warnings.filter((line) => line.includes("version"));
  expect(new Set(said).size).toBe(said.length);
  expect(said.some((line) => line.includes("self version-too-old"))).toBe(true);
  expect(c.warnings.some((line) => line.includes("version"))).toBe(true);
});

test.each([
  ["another residency", { residency: "eu" }, "other-residency"],
  [
    "a certificate of another node",
    { identity: { nodeId: "c", residency: "global" } },
    "certificate-mismatch",
  ],
  [
    "a certificate of another residency",
    { identity: { nodeId: "b", residency: "eu" } },
    "certificate-mismatch",
  ],
])("P5 · a node with %s gets no link", async (_what, options, reason) => {
  const fleet = new PeerFleet();
  const a = await fleet.start("a");
  const b = await fleet.start("b", options);
  introduce(a, b);
  fleet.runtime.advance(20_000);
  expect([a.changes(), b.changes()]).toEqual([[], []]);
  expect(a.ends).toContain(reason);
  expect(a.warnings.filter((line) => line.includes(`self ${reason}`)).length).toBeLessThanOrEqual(2);
});

test("P5 · who answers with another node's id than the dialled one's gets no link", async () => {
  const fleet = new PeerFleet();
  const a = await fleet.start("a");
  const b = await fleet.start("b");
  a.network.setNodes([nodeEntry("b"), { id: "c", internalUrl: "tcp://b:1" }]);
  b.network.setNodes([nodeEntry("a")]);
  fleet.runtime.advance(10_000);
  expect([a.changes(), a.ends.includes("wrong-node")]).toEqual([["up b/1"], true]);
});

test("P5 · a node does not link with itself", async () => {
  const fleet = new PeerFleet();
  const a = await fleet.start("a");
  a.network.setNodes([nodeEntry("a"), { id: "b", internalUrl: "tcp://a:1" }]);
  fleet.runtime.advance(10_000);
  expect([a.changes(), a.ends.includes("same-node")]).toEqual([[], true]);
});

/** A stranger's connection to node `a`: what it says, and what it hears. */
async function connectStranger(
  fleet: PeerFleet,
): Promise<{ wire: Wire; heard: () => Buffer; isClosed: () => boolean }> {
  const heard: Buffer[] = [];
  let isClosed = false;
  let opened: Wire | undefined;
  fleet.wires.transport("stranger").dial(
    "tcp://a:1",
    (wire) => (opened = wire),
    () => {},
  );
  fleet.runtime.advance(10);
  if (opened === undefined) throw new Error("not accepted");
  opened.start({
    receive: (bytes) => heard.push(Buffer.from(bytes)),
    writable: () => {},
    closed: () => (isClosed = true),
  });
  return { wire: opened, heard: () => Buffer.concat(heard), isClosed: () => isClosed };
}

const HELLO = encodeFrame(
  FRAME.hello,
  encodeHello({ versions: [1], nodeId: "b", incarnation: "1", residency: "global" }),
);
const LONG_HELLO = encodeFrame(FRAME.hello, Buffer.alloc(5_000, 0x20));

test.each([
  ["an HTTP request", Buffer.from("GET / HTTP/1.1\r\nHost: a\r\n\r\n")],
  ["zero length", Buffer.from([0, 0, 0, 0, 1])],
  ["a frame without end", Buffer.from([0xff, 0xff, 0xff, 0xff, 1])],
  ["a hello that is no JSON", encodeFrame(FRAME.hello, Buffer.from("{"))],
  ["a hello without magic", encodeFrame(FRAME.hello, Buffer.from('{"versions":[1],"nodeId":"b"}'))],
  ["a hello that is too long", LONG_HELLO],
  ["two hellos", Buffer.concat([HELLO, HELLO])],
  ["a message before the handshake", encodeFrame(FRAME.whole, Buffer.from('\0\0\0\x09{"t":"x"}'))],
  ["an unknown type", encodeFrame(99)],
])("P2 · %s closes the connection and nothing else", async (_what, bytes) => {
  const fleet = new PeerFleet();
  const a = await fleet.start("a");
  a.network.setNodes([nodeEntry("b")]);
  const { wire, isClosed } = await connectStranger(fleet);
  wire.write([bytes]);
  fleet.runtime.advance(100);
  expect([isClosed(), a.ends.at(-1)]).toEqual([true, "protocol"]);
  const b = await fleet.start("b");
  introduce(a, b);
  fleet.runtime.advance(5_000);
  expect(a.network.peer("b")?.isUp).toBe(true);
});

test.each([
  ["a head that is no JSON", encodeFrame(FRAME.whole, Buffer.from("\0\0\0\x01{"))],
  ["a head that is no object", encodeFrame(FRAME.whole, Buffer.from("\0\0\0\x02[]"))],
  ["a head without t", encodeFrame(FRAME.whole, Buffer.from("\0\0\0\x02{}"))],
  ["a head longer than its frame", encodeFrame(FRAME.whole, Buffer.from("\0\0\0\xff{}"))],
  ["a part of nothing", encodeFrame(FRAME.part, Buffer.from("\0\0\0\x01x"))],
  ["a message too large to open", encodeFrame(FRAME.open, Buffer.from("00000001000000107fffffff", "hex"))],
  ["a large message that is small", encodeFrame(FRAME.open, Buffer.from("000000010000000900000000", "hex"))],
  ["an open of the wrong size", encodeFrame(FRAME.open, Buffer.alloc(11))],
  [
    "more open messages than allowed",
    Buffer.concat(
      [1, 2, 3, 4, 5].map((n) => encodeFrame(FRAME.open, Buffer.from([0, 0, 0, n, 0, 0, 0, 9, 0, 2, 0, 0]))),
    ),
  ],
  [
    "more open bytes than allowed",
    Buffer.concat(
      [1, 2].map((n) => encodeFrame(FRAME.open, Buffer.from([0, 0, 0, n, 0, 0, 0, 9, 1, 128, 0, 0]))),
    ),
  ],
  ["another hello", HELLO],
  ["another confirmation", encodeFrame(FRAME.confirm)],
])("P2 · on a link that is up, %s closes it once", async (_what, bytes) => {
  const fleet = new PeerFleet();
  const a = await fleet.start("a");
  a.network.setNodes([nodeEntry("b")]);
  const { wire, isClosed } = await connectStranger(fleet);
  wire.write([HELLO]);
  fleet.runtime.advance(10);
  expect(a.changes()).toEqual(["up b/1"]);
  wire.write([bytes]);
  fleet.runtime.advance(10);
  expect([isClosed(), a.changes(), a.received()]).toEqual([true, ["up b/1", "down b/1"], []]);
  expect(a.ends.filter((end) => end === "protocol")).toHaveLength(1);
});

test("P3 · the node that does not decide cannot make a connection the link", async () => {
  const fleet = new PeerFleet();
  const { a } = await fleet.startPair();
  const { wire, isClosed } = await connectStranger(fleet);
  wire.write([HELLO, encodeFrame(FRAME.confirm)]);
  fleet.runtime.advance(500);
  expect([isClosed(), a.ends, a.changes()]).toEqual([true, ["protocol"], ["up b/1"]]);
});

test("P3 · who does not come to the point is cut, and never told who is here", async () => {
  const fleet = new PeerFleet();
  const a = await fleet.start("a");
  const silent = await connectStranger(fleet);
  const unlisted = await connectStranger(fleet);
  unlisted.wire.write([HELLO]);
  fleet.runtime.advance(HANDSHAKE_MS_MAX - 100);
  expect([silent.isClosed(), unlisted.isClosed()]).toEqual([false, false]);
  fleet.runtime.advance(200);
  expect([silent.isClosed(), unlisted.isClosed()]).toEqual([true, true]);
  expect(a.ends).toEqual(["handshake-late", "handshake-late"]);
  expect(unlisted.heard().includes("global")).toBe(false);
});

test("P2 · connections that come to nothing are bounded", async () => {
  const fleet = new PeerFleet();
  await fleet.start("a");
  const many = [];
  for (let count = 0; count < 300; count += 1) {
    fleet.wires.transport("stranger").dial(
      "tcp://a:1",
      (wire) => many.push(wire),
      () => {},
    );
  }
  fleet.runtime.advance(100);
  expect(fleet.wires.openBetween("stranger", "a")).toBe(256);
});

test("a handler that throws closes the link it came from, and the process lives on", async () => {
  const fleet = new PeerFleet();
  const onMessage = vi.fn<() => void>().mockImplementationOnce(() => {
    throw new Error("a bug");
  });
  const { a, b } = await fleet.startPair({ onMessage });
  a.network.peer("b")?.send({ head: { t: "x", n: 1 } });
  a.network.peer("b")?.send({ head: { t: "x", n: 2 } });
  fleet.runtime.advance(5_000);
  expect([b.received(), b.changes()]).toEqual([[1], ["up a/1", "down a/1", "up a/1"]]);
  expect(a.changes()).toEqual(["up b/1", "down b/1", "up b/1"]);
  expect(b.warnings).toContain("peer-handler-failed  a bug");
});

test("P11 · a node that leaves still sends what it has said", async () => {
  const fleet = new PeerFleet({ inFlightBytesMax: 64 * 1024 });
  const { a, b } = await fleet.startPair();
  const peer = a.network.peer("b");
  for (let n = 0; n < 50; n += 1) peer?.send({ head: { t: "last", n }, payload: new Uint8Array(10_000) });
  peer?.send({ head: { t: "last", n: "large" }, payload: new Uint8Array(LARGE_BYTES) });
  await a.network.close();
  fleet.runtime.advance(1_000);
  expect([b.received(), b.changes()]).toEqual([
    [...Array(50).keys(), "large"],
    ["up a/1", "down a/1"],
  ]);
});

test("P11 · closing a network tells each link's end once, and nothing is dialled any more", async () => {
  const fleet = new PeerFleet();
  const { a, b } = await fleet.startPair();
  await a.network.close();
  fleet.runtime.advance(10_000);
  expect([a.changes(), b.changes()]).toEqual([
    ["up b/1", "down b/1"],
    ["up a/1", "down a/1"],
  ]);
  expect([b.ends[0], fleet.wires.openBetween("a", "b")]).toEqual(["leaving", 0]);
});
