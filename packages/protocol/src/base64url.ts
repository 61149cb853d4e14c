// base64url without padding (RFC 4648, section 5), by hand: neither browsers nor all Nodes have it.
// Spec: L28.   Pure.
//
// I1  Canonical only: one text stands for one value, so that texts can be compared for what they mean.

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

const VALUE_OF = new Map(ALPHABET.split("").map((character, value) => [character, value]));

/** Bytes as base64url without padding. */
export function encodeBase64url(bytes: Uint8Array): string {
  let text = "";
  let bits = 0;
  let bitCount = 0;
  for (const byte of bytes) {
    bits = (bits << 8) | byte;
    bitCount += 8;
    for (; bitCount >= 6; bitCount -= 6) text += ALPHABET.charAt((bits >> (bitCount - 6)) & 0x3f);
    bits &= 0x3f;
  }
  return bitCount === 0 ? text : text + ALPHABET.charAt((bits << (6 - bitCount)) & 0x3f);
}

/** The bytes of a base64url text; `undefined` for padding, other characters, impossible lengths and spare bits that are set. */
export function decodeBase64url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (text.length % 4 === 1) return undefined;
  const bytes = new Uint8Array(Math.floor((text.length * 6) / 8));
  let bits = 0;
  let bitCount = 0;
  let at = 0;
  for (const character of text) {
    const value = VALUE_OF.get(character);
    if (value === undefined) return undefined;
    bits = ((bits << 6) | value) & 0x3fff;
    bitCount += 6;
    if (bitCount < 8) continue;
    bitCount -= 8;
    bytes[at] = (bits >> bitCount) & 0xff;
    at += 1;
  }
  const spareBits = bits & ((1 << bitCount) - 1);
  return spareBits === 0 ? bytes : undefined;
}
