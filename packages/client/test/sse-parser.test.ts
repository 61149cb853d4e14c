import * as fc from "fast-check";
import { expect, test } from "vitest";
import { verifies } from "@moor/testkit";
import { createSseParser } from "../src/targets/sse-parser.ts";

function parse(chunks: readonly (string | Buffer)[], eventBytesMax = 1_000_000): string[] {
  const messages: string[] = [];
  const parser = createSseParser(eventBytesMax, (data) => messages.push(data.toString("utf8")));
  for (const chunk of chunks) parser.feed(Buffer.from(chunk as string));
  return messages;
}

verifies("T20", "the data of an event passes as it is, lines joined with LF, whatever the line ends", () => {
  expect(parse(['data: {"a":1.0}\n\n'])).toEqual(['{"a":1.0}']);
  expect(parse(["data:x\r\ndata: y\r\n\r\n"])).toEqual(["x\ny"]);
  expect(parse(["data: x\rdata:  y\r\r"])).toEqual(["x\n y"]);
  expect(parse(["\uFEFFdata: x\n\n"])).toEqual(["x"]);
});

test("ids, comments, retry hints, other event types and empty events are passed over", () => {
  expect(parse([": hi\nid: 4\nretry: 10\n\n", "event: ping\ndata: no\n\n", "data:\n\n"])).toEqual([]);
  expect(parse(["event: message\ndata: yes\n\nevent: x\n\ndata: after\n\n"])).toEqual(["yes", "after"]);
});

test("an event cut short by the end of the stream is no event", () => {
  expect(parse(["data: whole\n\ndata: cut\n"])).toEqual(["whole"]);
});

test("an event over the limit is refused, however it is cut into lines and chunks", () => {
  const parser = createSseParser(10, () => {});
  expect(parser.feed(Buffer.from("data: 1234"))).toBe("ok");
  expect(parser.feed(Buffer.from("5"))).toBe("too-large");
  const lines = createSseParser(10, () => {});
  expect(lines.feed(Buffer.from("data: 1\ndata: 2\n"))).toBe("too-large");
});

test("where chunks are cut changes nothing", () => {
  const line = fc.constantFrom("data: a", "data:b€", "event: message", ": c", "data", "id: 1", "");
  const end = fc.constantFrom("\n", "\r\n", "\r");
  const stream = fc.array(fc.tuple(line, end), { maxLength: 20 });
  fc.assert(
    fc.property(stream, fc.array(fc.nat(200), { maxLength: 10 }), (parts, cuts) => {
      const bytes = Buffer.from(parts.flat().join(""));
      const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
      const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end));
      expect(parse(chunks)).toEqual(parse([bytes]));
    }),
  );
});
