// Strings of a JSON scan: escapes, surrogate pairs and UTF-8 by hand.
// Spec: R6, T6 (RFC 8259, section 7; RFC 3629).   Pure.
//
// I1  Overlong forms, encoded surrogates and code points above U+10FFFF are not UTF-8.
// I2  A high surrogate escape pairs only with a low one directly after it.

import { fail, type JsonCursor } from "./json-cursor.ts";

/** 1 for the bytes that stand for themselves in a string: ASCII from space on, without quote and backslash. */
const PLAIN = new Uint8Array(256).fill(1, 0x20, 0x80);
PLAIN[0x22] = 0;
PLAIN[0x5c] = 0;

/** 1 for the bytes that may follow a backslash, `u` apart. */
const SHORT_ESCAPE = new Uint8Array(256);
for (const character of `"\\/bfnrt`) SHORT_ESCAPE[character.charCodeAt(0)] = 1;

/** Moves from an opening quote past its closing one; false with the cursor's failure set if there is no sound string. */
export function scanString(cursor: JsonCursor): boolean {
  const { bytes } = cursor;
  cursor.at += 1;
  for (;;) {
    let at = cursor.at;
    while (at < bytes.length && PLAIN[bytes[at] as number] === 1) at += 1;
    cursor.at = at;
    if (at >= bytes.length) return fail(cursor, "syntax");
    const byte = bytes[at] as number;
    if (byte === 0x22) {
      cursor.at = at + 1;
      return true;
    }
    if (byte < 0x20) return fail(cursor, "syntax");
    if (!(byte === 0x5c ? scanEscape(cursor) : scanMultibyte(cursor))) return false;
  }
}

/** The text of a sound string, unescaped; `start` is its opening quote, `end` just after its closing one. */
export function stringText(bytes: Uint8Array, start: number, end: number): string {
  const raw = DECODER.decode(bytes.subarray(start, end));
  return raw.includes("\\") ? (JSON.parse(raw) as string) : raw.slice(1, -1);
}

/** Without `ignoreBOM` a string that begins with U+FEFF would lose it. Keeps no state between calls. */
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

function scanEscape(cursor: JsonCursor): boolean {
  const { bytes } = cursor;
  const letter = bytes[cursor.at + 1];
  if (letter !== 0x75) {
    if (letter === undefined || SHORT_ESCAPE[letter] !== 1) return fail(cursor, "syntax");
    cursor.at += 2;
    return true;
  }
  const unit = hexUnit(bytes, cursor.at + 2);
  if (unit < 0) return fail(cursor, "syntax");
  if (unit < 0xd800 || unit > 0xdfff) {
    cursor.at += 6;
    return true;
  }
  const isPair =
    unit < 0xdc00 &&
    bytes[cursor.at + 6] === 0x5c &&
    bytes[cursor.at + 7] === 0x75 &&
    isLow(bytes, cursor.at + 8);
  if (!isPair && cursor.rejectsLoneSurrogates) return fail(cursor, "lone-surrogate");
  cursor.at += isPair ? 12 : 6;
  return true;
}

function isLow(bytes: Uint8Array, at: number): boolean {
  const unit = hexUnit(bytes, at);
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** The value of four hex digits, or below 0 where there are none. */
function hexUnit(bytes: Uint8Array, at: number): number {
  let unit = 0;
  for (let index = at; index < at + 4; index += 1) {
    const digit = hexDigit(bytes[index] ?? 0);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** Moves past one character of two to four bytes. */
function scanMultibyte(cursor: JsonCursor): boolean {
  const { bytes, at } = cursor;
  const lead = bytes[at] as number;
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return fail(cursor, "not-utf8");
  // The second byte's range is what shuts out overlong forms, surrogates and code points above U+10FFFF.
  const second = bytes[at + 1] ?? 0;
  const lowest = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const highest = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  if (second < lowest || second > highest) return fail(cursor, "not-utf8");
  for (let index = at + 2; index < at + length; index += 1) {
    if (((bytes[index] ?? 0) & 0xc0) !== 0x80) return fail(cursor, "not-utf8");
  }
  cursor.at = at + length;
  return true;
}
