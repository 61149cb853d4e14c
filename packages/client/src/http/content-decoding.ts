// Undoes a Content-Encoding that a peer applied although the agent never asks for one.
//
// Spec: R6 (limits hold after content decoding).
// I1  Never produces more than the limit: a small body that would unfold into a huge one is refused.

import { brotliDecompressSync, gunzipSync, inflateSync, type ZlibOptions } from "node:zlib";
import { headerValues, type HeaderLine } from "./header-lines.ts";

type Decode = (bytes: Uint8Array, options: ZlibOptions) => Buffer;

const DECODERS: Readonly<Record<string, Decode>> = {
  gzip: gunzipSync,
  "x-gzip": gunzipSync,
  deflate: inflateSync,
  br: brotliDecompressSync,
};

/** Codings named by the answer, in the order they were applied; `identity` left out. */
export function contentCodings(headerLines: readonly HeaderLine[]): string[] {
  return headerValues(headerLines, "content-encoding")
    .join(",")
    .split(",")
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== "" && coding !== "identity");
}

/**
 * The body with its codings undone.
 *
 * @param bytesMax largest acceptable result, bytes
 * @returns `undefined` for an unknown coding, a damaged body or one that unfolds beyond `bytesMax`
 */
export function decodeContent(
  body: Uint8Array,
  headerLines: readonly HeaderLine[],
  bytesMax: number,
): Uint8Array | undefined {
  let decoded = body;
  for (const coding of contentCodings(headerLines).toReversed()) {
    const decode = DECODERS[coding];
    if (decode === undefined) return undefined;
    try {
      decoded = decode(decoded, { maxOutputLength: bytesMax });
    } catch {
      return undefined;
    }
  }
  return decoded;
}
