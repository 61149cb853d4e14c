// Bytes into frames, frames into messages: any cut of the stream, and any nonsense.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { encodeFrame, FRAME, FrameDecoder } from "../src/peer/transport/frame.ts";
import { IncomingMessages } from "../src/peer/transport/incoming-messages.ts";
import { parseHello } from "../src/peer/transport/link-hello.ts";
import { OutgoingQueue } from "../src/peer/transport/outgoing-queue.ts";
import type { PeerMessage } from "../src/peer/transport/peer-network.ts";
import { FRAME_BODY_BYTES_MAX, MESSAGE_WHOLE_BYTES_MAX } from "../src/peer/transport/transport-limits.ts";
import { checkProperty } from "./support/check-property.ts";

const FILE = "packages/server/test/peer-transport-frames.test.ts";

/** Gives `bytes` to `receive` in chunks that end at the given places. */
function feed(bytes: Buffer, cuts: readonly number[], receive: (chunk: Buffer) => boolean): boolean {
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  let start = 0;
  for (const end of ends) {
    if (!receive(bytes.subarray(start, end))) return false;
    start = end;
  }
  return true;
}

/** A decoder and the messages that come of what it is given. */
function createReceiver() {
  const messages: PeerMessage[] = [];
  const incoming = new IncomingMessages();
  const take = (type: number, body: Buffer) => {
    if (type === FRAME.whole) return incoming.whole(body);
    if (type === FRAME.open) return incoming.open(body);
    return type === FRAME.part ? incoming.part(body) : "broken";
  };
  const decoder = new FrameDecoder(
    (type, body) => {
      const arrival = take(type, body);
      if (typeof arrival === "object") messages.push(arrival);
      return arrival !== "broken";
    },
    FRAME_BODY_BYTES_MAX,
    FRAME_BODY_BYTES_MAX,
  );
  return { messages, receive: (chunk: Buffer) => decoder.receive(chunk) };
}

const message = fc.record(
  {
    head: fc.dictionary(fc.string({ maxLength: 8 }), fc.jsonValue({ maxDepth: 2 })).map((rest) => {
      const { t: _dropped, ...members } = rest;
      return { t: "x", ...members };
    }),
    payload: fc
      .oneof(fc.nat(300), fc.integer({ min: MESSAGE_WHOLE_BYTES_MAX - 50, max: 3 * MESSAGE_WHOLE_BYTES_MAX }))
      .chain((size) => fc.nat(255).map((fill) => new Uint8Array(size).fill(fill))),
  },
  { requiredKeys: ["head"] },
);

test("P6 P7 · whatever is sent arrives, however the stream is cut", async () => {
  await checkProperty(
    fc.property(fc.array(message, { maxLength: 12 }), fc.array(fc.nat(), { maxLength: 40 }), (sent, cuts) => {
      const queue = new OutgoingQueue();
      for (const each of sent) expect(queue.push(each)).toBe(true);
      const chunks: Uint8Array[] = [];
      for (let taken = queue.take(100_000); taken.length > 0; taken = queue.take(100_000))
        chunks.push(...taken);
      expect(queue.queuedBytes).toBe(0);
      const receiver = createReceiver();
      expect(feed(Buffer.concat(chunks), cuts, receiver.receive)).toBe(true);
      const isSmall = (each: PeerMessage) =>
        Buffer.byteLength(JSON.stringify(each.head)) + (each.payload?.length ?? 0) <= MESSAGE_WHOLE_BYTES_MAX;
      const plain = (each: PeerMessage) => ({
        head: JSON.stringify(each.head),
        payload: Buffer.from(each.payload ?? []).toString("latin1"),
      });
      expect(receiver.messages.filter(isSmall).map(plain)).toEqual(sent.filter(isSmall).map(plain));
      const sorted = (list: readonly PeerMessage[]) => list.map((each) => JSON.stringify(plain(each))).sort();
      expect(sorted(receiver.messages)).toEqual(sorted(sent));
    }),
    150,
    FILE,
  );
});

test("P2 · nonsense never throws, and the verdict does not depend on how it is cut", async () => {
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 30 }),
    fc
      .tuple(fc.integer({ min: 0, max: 8 }), fc.uint8Array({ maxLength: 30 }))
      .map(([type, body]) => encodeFrame(type, body)),
    fc.constant(encodeFrame(FRAME.whole, Buffer.from('\0\0\0\x09{"t":"x"}body'))),
    fc.constant(encodeFrame(FRAME.open, Buffer.from([0, 0, 0, 1, 0, 0, 0, 9, 0, 1, 0, 0]))),
    fc.nat(70_000).map((size) => encodeFrame(FRAME.part, Buffer.alloc(size, 1))),
  );
  await checkProperty(
    fc.property(fc.array(piece, { maxLength: 10 }), fc.array(fc.nat(), { maxLength: 20 }), (pieces, cuts) => {
      const bytes = Buffer.concat(pieces);
      const [whole, cut] = [createReceiver(), createReceiver()];
      const verdicts = [feed(bytes, [], whole.receive), feed(bytes, cuts, cut.receive)];
      expect(verdicts[1]).toBe(verdicts[0]);
      expect(cut.messages).toEqual(whole.messages);
    }),
    2_000,
    FILE,
  );
});

test("P2 · a hello of nonsense never throws", async () => {
  const text = fc.oneof(
    fc.string(),
    fc.json(),
    fc
      .record({
        magic: fc.oneof(fc.constant("moor-peer-link"), fc.string()),
        versions: fc.oneof(fc.constant([1]), fc.jsonValue()),
        nodeId: fc.oneof(fc.constant("b"), fc.jsonValue()),
        incarnation: fc.oneof(fc.constant("1"), fc.jsonValue()),
        residency: fc.oneof(fc.constant("eu"), fc.jsonValue()),
      })
      .map((hello) => JSON.stringify(hello)),
  );
  const outcomes = new Set<boolean>();
  await checkProperty(
    fc.property(text, (hello) => {
      outcomes.add(parseHello(Buffer.from(hello)) === undefined);
    }),
    2_000,
    FILE,
  );
  expect(outcomes).toEqual(new Set([true, false]));
});

test("a byte of a kept payload costs a byte: it does not hold on to the network's buffer", () => {
  const receiver = createReceiver();
  const chunk = Buffer.concat([
    encodeFrame(FRAME.whole, Buffer.from('\0\0\0\x09{"t":"x"}body')),
    Buffer.alloc(0),
  ]);
  receiver.receive(chunk);
  const [kept] = receiver.messages;
  chunk.fill(0);
  expect(Buffer.from(kept?.payload ?? []).toString()).toBe("body");
});
