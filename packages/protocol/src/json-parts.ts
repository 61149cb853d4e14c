// The parts of a value inside bytes that scanJson has accepted: members of an object, elements of an array.
// Spec: T5, T6.   Pure.
//
// I1  Only for slices of accepted bytes: nothing is checked again, which makes it about twice as fast.
// I2  Parts come in order, duplicates included, as slices of the same bytes.

import { skipBlanks, type JsonCursor } from "./json-cursor.ts";
import { kindAt, type ScannedElement, type ScannedMember, type Slice } from "./json-scan.ts";
import { stringText } from "./json-string.ts";

/** Members of the object at `slice`; empty if another kind of value is there. */
export function scanMembers(bytes: Uint8Array, slice: Slice): readonly ScannedMember[] {
  if (bytes[slice.start] !== 0x7b) return [];
  const members: ScannedMember[] = [];
  const cursor = openContainer(bytes, slice);
  while (cursor.at < slice.end - 1) {
    const keyStart = cursor.at;
    skipString(cursor);
    const key = stringText(bytes, keyStart, cursor.at);
    skipSeparator(cursor);
    members.push({ key, ...takeValue(cursor) });
    skipSeparator(cursor);
  }
  return members;
}

/** Elements of the array at `slice`; empty if another kind of value is there. */
export function scanElements(bytes: Uint8Array, slice: Slice): readonly ScannedElement[] {
  if (bytes[slice.start] !== 0x5b) return [];
  const elements: ScannedElement[] = [];
  const cursor = openContainer(bytes, slice);
  while (cursor.at < slice.end - 1) {
    elements.push(takeValue(cursor));
    skipSeparator(cursor);
  }
  return elements;
}

function openContainer(bytes: Uint8Array, slice: Slice): JsonCursor {
  const cursor: JsonCursor = { bytes, rejectsLoneSurrogates: false, at: slice.start + 1, failure: undefined };
  skipBlanks(cursor);
  return cursor;
}

/** Past blanks, a colon or a comma if one is there, and blanks again; stays at a closing bracket. */
function skipSeparator(cursor: JsonCursor): void {
  skipBlanks(cursor);
  const byte = cursor.bytes[cursor.at];
  if (byte !== 0x3a && byte !== 0x2c) return;
  cursor.at += 1;
  skipBlanks(cursor);
}

function takeValue(cursor: JsonCursor): ScannedElement {
  const { bytes } = cursor;
  const start = cursor.at;
  const kind = kindAt(bytes, start);
  if (kind === "object" || kind === "array") skipContainer(cursor);
  else if (kind === "string") skipString(cursor);
  else skipWord(cursor);
  return { kind, value: { start, end: cursor.at } };
}

/** 1 for the bytes that end a number or a literal: blanks, comma, closing brackets. */
const WORD_END = new Uint8Array(256);
for (const character of " \t\n\r,]}") WORD_END[character.charCodeAt(0)] = 1;

function skipWord(cursor: JsonCursor): void {
  const { bytes } = cursor;
  while (cursor.at < bytes.length && WORD_END[bytes[cursor.at] as number] !== 1) cursor.at += 1;
}

function skipString(cursor: JsonCursor): void {
  const { bytes } = cursor;
  let at = cursor.at + 1;
  while (at < bytes.length && bytes[at] !== 0x22) at += bytes[at] === 0x5c ? 2 : 1;
  cursor.at = at + 1;
}

function skipContainer(cursor: JsonCursor): void {
  const { bytes } = cursor;
  let depth = 0;
  do {
    const byte = bytes[cursor.at];
    if (byte === 0x22) {
      skipString(cursor);
      continue;
    }
    if (byte === 0x7b || byte === 0x5b) depth += 1;
    else if (byte === 0x7d || byte === 0x5d) depth -= 1;
    cursor.at += 1;
  } while (depth > 0 && cursor.at < bytes.length);
}
