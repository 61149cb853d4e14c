// Bearer keys: how they are minted, recognised and compared.
//
// Spec: T1 (characters), T2 (kinds never stand in for each other), L7 (tokens of homes).
// Text: `moor_<kind>_<43 base64url characters = 256 random bits>_<6 base64url characters = CRC-32 of all before>`.
// I1  Only the SHA-256 of the whole text is ever stored, so a stolen directory opens nothing.
// I2  The kind is inside the hashed text: the same random bits under another kind are another key.
// I3  A text of the wrong shape or checksum is refused before any look-up. The checksum is for typing and cutting
//     mistakes and for secret scanners; it protects nothing by itself.

import { hash as digest, timingSafeEqual } from "node:crypto";
import { crc32 } from "node:zlib";
import { parseLinkToken, type HomeId } from "@moor/protocol";
import { Secret, type Runtime } from "@moor/runtime";

/** Every kind of bearer key. `operator` opens the operator listener; `box`, `app`, `extension` are link-plane kinds. */
export const KEY_KINDS = ["agent", "connector", "operator", "box", "app", "extension"] as const;
/** What a key is for. A key of one kind never works where another is asked for (T2). */
export type KeyKind = (typeof KEY_KINDS)[number];

/** Random bytes in a key. 32 bytes = 256 bits = 43 base64url characters. */
const KEY_RANDOM_BYTES = 32;
/** Characters of the random part that may be shown to tell keys apart: 36 of 256 bits. */
const KEY_SHOWN_CHARACTERS = 6;
const KEY_SHAPE = /^moor_([a-z]{2,16})_[0-9A-Za-z_-]{43}_([0-9A-Za-z_-]{6})$/;

/** A key that exists as text only here and in its owner's hands. */
export interface MintedKey {
  readonly key: Secret;
  /** SHA-256 of the key's text, 32 bytes: what the directory keeps. */
  readonly hash: Uint8Array;
  /** The key's first characters, safe to show and log, e.g. `moor_agent_a1B2c3`. */
  readonly prefix: string;
}

/** A text that has the shape of a key; whether it opens anything is for the directory to say. */
export interface ParsedKey {
  readonly kind: KeyKind;
  /** SHA-256 of the text, 32 bytes. */
  readonly hash: Uint8Array;
}

/** Makes a new key of `kind` from 256 bits of `runtime.randomBytes`. Spec T1, T2. */
export function mintKey(kind: KeyKind, runtime: Pick<Runtime, "randomBytes">): MintedKey {
  const random = Buffer.from(runtime.randomBytes(KEY_RANDOM_BYTES)).toString("base64url");
  const body = `moor_${kind}_${random}`;
  const text = `${body}_${checksumOf(body)}`;
  return {
    key: new Secret(text),
    hash: hashKeyText(text),
    prefix: `moor_${kind}_${random.slice(0, KEY_SHOWN_CHARACTERS)}`,
  };
}

/**
 * Makes a new token of a home: `<home>.` and a key's text. What is kept is the SHA-256 of the whole, so that a token
 * is good for no other home. Spec L7.
 */
export function mintHomeToken(
  home: HomeId,
  kind: "app" | "extension",
  runtime: Pick<Runtime, "randomBytes">,
): MintedKey {
  const { key, prefix } = mintKey(kind, runtime);
  const text = `${home}.${key.reveal()}`;
  return { key: new Secret(text), hash: hashKeyText(text), prefix };
}

/** Home, kind and hash of a token's text, or undefined when shape, kind or checksum is wrong. Never throws. Spec L7. */
export function parseHomeToken(text: string): (ParsedKey & { readonly home: HomeId }) | undefined {
  const token = parseLinkToken(text);
  const key = token === undefined ? undefined : parseKey(token.secret);
  if (token === undefined || (key?.kind !== "app" && key?.kind !== "extension")) return undefined;
  return { kind: key.kind, home: token.home, hash: hashKeyText(text) };
}

/** Kind and hash of a key's text, or undefined when shape, kind or checksum is wrong. Never throws. Spec T2. */
export function parseKey(text: string): ParsedKey | undefined {
  const match = KEY_SHAPE.exec(text);
  if (match === null) return undefined;
  const kind = KEY_KINDS.find((known) => known === match[1]);
  if (kind === undefined) return undefined;
  const checksum = match[2] ?? "";
  if (checksumOf(text.slice(0, -checksum.length - 1)) !== checksum) return undefined;
  return { kind, hash: hashKeyText(text) };
}

/** Whether two hashes are equal, in time that does not depend on where they differ. */
export function isSameHash(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}

function hashKeyText(text: string): Uint8Array {
  return digest("sha256", text, "buffer");
}

function checksumOf(body: string): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(body));
  return bytes.toString("base64url");
}
