// Where a JSON scan stands in its bytes, and the moves every part of it needs.

/** Why bytes are not acceptable JSON. `empty`: nothing but blanks. `trailing`: something follows the value. */
export type ScanFailure = "empty" | "not-utf8" | "bom" | "syntax" | "depth" | "lone-surrogate" | "trailing";

/** The state of one scan: `at` only grows; after a `failure`, `at` is where it was met and nothing moves any more. */
export interface JsonCursor {
  readonly bytes: Uint8Array;
  /** Whether `\uD800`–`\uDFFF` escapes that form no pair are failures. */
  readonly rejectsLoneSurrogates: boolean;
  at: number;
  failure: ScanFailure | undefined;
}

/** Ends the scan at its present place. Always false, so that a scanner can `return fail(…)`. */
export function fail(cursor: JsonCursor, failure: ScanFailure): false {
  cursor.failure = failure;
  return false;
}

/** Moves past space, tab, line feed and carriage return. */
export function skipBlanks(cursor: JsonCursor): void {
  const { bytes } = cursor;
  let at = cursor.at;
  for (; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
  }
  cursor.at = at;
}
