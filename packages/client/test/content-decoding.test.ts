import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { verifies } from "@moor/testkit";
import { expect } from "vitest";
import { decodeContent } from "../src/http/content-decoding.ts";

const TEXT = Buffer.from("a body that is said twice, a body that is said twice");

function decode(body: Buffer, coding: string, bytesMax = 1_000): string | undefined {
  const decoded = decodeContent(body, [["Content-Encoding", coding]], bytesMax);
  return decoded === undefined ? undefined : Buffer.from(decoded).toString("utf8");
}

verifies("R6", "known codings are undone, last applied first; unknown and damaged ones are refused", () => {
  expect(decode(gzipSync(TEXT), "gzip")).toBe(TEXT.toString());
  expect(decode(deflateSync(TEXT), "Deflate")).toBe(TEXT.toString());
  expect(decode(brotliCompressSync(TEXT), "br")).toBe(TEXT.toString());
  expect(decode(gzipSync(deflateSync(TEXT)), "deflate, gzip")).toBe(TEXT.toString());
  expect(decode(TEXT, "identity")).toBe(TEXT.toString());
  expect(decode(TEXT, "rot13")).toBeUndefined();
  expect(decode(TEXT, "gzip")).toBeUndefined();
});

verifies("R6", "a small body that would unfold beyond the limit is not unfolded", () => {
  const zeros = Buffer.alloc(100_000);
  expect(decode(gzipSync(zeros), "gzip", 100_000)).toHaveLength(100_000);
  expect(decode(gzipSync(zeros), "gzip", 99_999)).toBeUndefined();
});
