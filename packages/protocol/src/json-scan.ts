// A strict JSON scanner over UTF-8 bytes: says whether a body is JSON and where its parts lie, and builds nothing.
// Spec: R6, T5, T6, T9.   Pure, iterative: depth costs no stack.
//
// I1  Accepts exactly RFC 8259 in valid UTF-8 without a byte order mark (lone surrogate escapes unless refused).
// I2  Slices are byte offsets into the given bytes, so that a part can be passed on byte for byte.
// I3  Every member of the top-level object is reported, duplicates too, in order, its key unescaped.
// I4  The failure met first from the left is reported; nothing is reported as sound before the last byte was seen.

import { fail, skipBlanks, type JsonCursor, type ScanFailure } from "./json-cursor.ts";
import { scanString, stringText } from "./json-string.ts";

/** Byte offsets of a part: from `start`, up to but not including `end`. */
export interface Slice {
  readonly start: number;
  readonly end: number;
}

/** What a JSON value is. */
export type JsonKind = "object" | "array" | "string" | "number" | "true" | "false" | "null";

/** A value: what it is and where. */
export interface ScannedElement {
  readonly kind: JsonKind;
  readonly value: Slice;
}

/** A member of an object, its key unescaped. */
export interface ScannedMember extends ScannedElement {
  readonly key: string;
}

/** Bounds of a scan. */
export interface ScanOptions {
  /** Open arrays and objects allowed at the deepest point: `{}` needs 1, a number 0. */
  readonly depthMax: number;
  /** Refuse `\uD800`–`\uDFFF` escapes that form no pair. Default false. Spec T6. */
  readonly rejectLoneSurrogates?: boolean;
}

/** Sound JSON. `members` are those of a top-level object, in order, duplicates kept; empty for other kinds. */
export interface ScannedJson extends ScannedElement {
  readonly ok: true;
  readonly members: readonly ScannedMember[];
}

/** No sound JSON. `offset` is the byte at which the failure was met. */
export interface RefusedJson {
  readonly ok: false;
  readonly failure: ScanFailure;
  readonly offset: number;
}

/** Scans a whole body. Never throws. */
export function scanJson(bytes: Uint8Array, options: ScanOptions): ScannedJson | RefusedJson {
  const scan: Scan = {
    bytes,
    rejectsLoneSurrogates: options.rejectLoneSurrogates ?? false,
    at: 0,
    failure: undefined,
    depthMax: options.depthMax,
    open: [],
    key: { start: 0, end: 0 },
    memberStart: 0,
    members: [],
  };
  const value = scanDocument(scan);
  if (value === undefined) return { ok: false, failure: scan.failure ?? "syntax", offset: scan.at };
  return { ok: true, kind: kindAt(bytes, value.start), value, members: scan.members };
}

/** Kind of the value that starts at `at`, told by its first byte alone. */
export function kindAt(bytes: Uint8Array, at: number): JsonKind {
  const byte = bytes[at] ?? 0;
  switch (byte) {
    case 0x7b:
      return "object";
    case 0x5b:
      return "array";
    case 0x22:
      return "string";
    case 0x74:
      return "true";
    case 0x66:
      return "false";
    case 0x6e:
      return "null";
    default:
      return "number";
  }
}

interface Scan extends JsonCursor {
  readonly depthMax: number;
  /** Closing byte of each open container, outermost first. */
  readonly open: number[];
  /** The outermost object's member that is being scanned. */
  key: Slice;
  memberStart: number;
  readonly members: ScannedMember[];
}

const CLOSE_OBJECT = 0x7d;
const CLOSE_ARRAY = 0x5d;

function scanDocument(scan: Scan): Slice | undefined {
  const { bytes } = scan;
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return void fail(scan, "bom");
  skipBlanks(scan);
  const start = scan.at;
  if (start === bytes.length) return void fail(scan, "empty");
  while (scanStart(scan) && moveToNextValue(scan));
  if (scan.failure !== undefined) return undefined;
  const end = scan.at;
  skipBlanks(scan);
  if (scan.at < bytes.length) return void fail(scan, "trailing");
  return { start, end };
}

/** Scans a scalar or an empty container whole, else opens containers down to the first scalar or empty one. */
function scanStart(scan: Scan): boolean {
  for (;;) {
    const byte = scan.bytes[scan.at] ?? 0;
    if (byte !== 0x7b && byte !== 0x5b) return scanScalar(scan, byte);
    if (scan.open.length >= scan.depthMax) return fail(scan, "depth");
    const close = byte === 0x7b ? CLOSE_OBJECT : CLOSE_ARRAY;
    scan.open.push(close);
    scan.at += 1;
    skipBlanks(scan);
    if (scan.bytes[scan.at] === close) {
      scan.open.pop();
      scan.at += 1;
      return true;
    }
    if (close === CLOSE_OBJECT && !scanKey(scan)) return false;
  }
}

/** After a value: closes the containers that end here. True at the start of another value, false at the end. */
function moveToNextValue(scan: Scan): boolean {
  const { bytes, open } = scan;
  while (open.length > 0) {
    const close = open[open.length - 1];
    if (open.length === 1 && close === CLOSE_OBJECT) noteMember(scan);
    skipBlanks(scan);
    const byte = bytes[scan.at];
    if (byte === 0x2c) {
      scan.at += 1;
      skipBlanks(scan);
      return close === CLOSE_ARRAY || scanKey(scan);
    }
    if (byte !== close) return fail(scan, "syntax");
    scan.at += 1;
    open.pop();
  }
  return false;
}

function scanKey(scan: Scan): boolean {
  const start = scan.at;
  if (scan.bytes[start] !== 0x22) return fail(scan, "syntax");
  if (!scanString(scan)) return false;
  const end = scan.at;
  skipBlanks(scan);
  if (scan.bytes[scan.at] !== 0x3a) return fail(scan, "syntax");
  scan.at += 1;
  skipBlanks(scan);
  if (scan.open.length === 1) {
    scan.key = { start, end };
    scan.memberStart = scan.at;
  }
  return true;
}

function noteMember(scan: Scan): void {
  const { bytes, key, memberStart: start } = scan;
  const value = { start, end: scan.at };
  scan.members.push({ key: stringText(bytes, key.start, key.end), kind: kindAt(bytes, start), value });
}

function scanScalar(scan: Scan, byte: number): boolean {
  switch (byte) {
    case 0x22:
      return scanString(scan);
    case 0x74:
      return scanLiteral(scan, TRUE);
    case 0x66:
      return scanLiteral(scan, FALSE);
    case 0x6e:
      return scanLiteral(scan, NULL);
    default:
      return scanNumber(scan);
  }
}

const [TRUE, FALSE, NULL] = ["true", "false", "null"].map((word) => new TextEncoder().encode(word)) as [
  Uint8Array,
  Uint8Array,
  Uint8Array,
];

function scanLiteral(scan: Scan, word: Uint8Array): boolean {
  for (let index = 0; index < word.length; index += 1) {
    if (scan.bytes[scan.at + index] !== word[index]) return fail(scan, "syntax");
  }
  scan.at += word.length;
  return true;
}

/** `-? (0 | [1-9][0-9]*) (\.[0-9]+)? ([eE][+-]?[0-9]+)?` */
function scanNumber(scan: Scan): boolean {
  const { bytes } = scan;
  if (bytes[scan.at] === 0x2d) scan.at += 1;
  if (bytes[scan.at] === 0x30) scan.at += 1;
  else if (!scanDigits(scan)) return false;
  if (bytes[scan.at] === 0x2e) {
    scan.at += 1;
    if (!scanDigits(scan)) return false;
  }
  if (bytes[scan.at] === 0x65 || bytes[scan.at] === 0x45) {
    scan.at += 1;
    if (bytes[scan.at] === 0x2b || bytes[scan.at] === 0x2d) scan.at += 1;
    return scanDigits(scan);
  }
  return true;
}

function scanDigits(scan: Scan): boolean {
  const { bytes } = scan;
  const start = scan.at;
  let at = start;
  while (at < bytes.length && (bytes[at] as number) >= 0x30 && (bytes[at] as number) <= 0x39) at += 1;
  scan.at = at;
  return at > start || fail(scan, "syntax");
}
