// A JSON value as the text it came in, so that it can be passed on byte for byte.
// Spec: L31.   Pure.
//
// I1  The text of a RawJson is one sound JSON value.

import { LINK_FRAME_BYTES_MAX, scanJson } from "@moor/protocol";

/** A JSON value that is kept as text: large numbers, key order and escapes survive. */
export class RawJson {
  /** The value as it stood on the wire. */
  readonly text: string;

  /** Throws SyntaxError for a text that is no JSON value. */
  constructor(text: string) {
    if (!isJson(text)) throw new SyntaxError("a text that is no JSON value");
    this.text = text;
  }

  /** The value as JavaScript sees it: numbers lose what a double cannot hold. */
  parse(): unknown {
    return JSON.parse(this.text) as unknown;
  }
}

/**
 * The text of a value that is to be sent: a RawJson's own, else JSON.stringify's.
 *
 * Throws TypeError for what JSON cannot say (undefined, functions, cycles, bigint).
 */
export function jsonTextOf(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  const text: string | undefined = JSON.stringify(value);
  if (text === undefined) throw new TypeError("a value that JSON cannot say");
  return text;
}

/** Bytes of a text as UTF-8. */
export function utf8ByteCount(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** A frame nests no deeper than its bytes allow, and neither does what goes into it. */
function isJson(text: string): boolean {
  return scanJson(new TextEncoder().encode(text), { depthMax: LINK_FRAME_BYTES_MAX }).ok;
}
