// DER, writing only: the few ASN.1 types that a certificate of make-certificate.ts consists of.
//
// Spec: X.690. Nothing here reads DER: what others wrote is Node's to parse.

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** First year that X.509 writes as GeneralizedTime (RFC 5280, 4.1.2.5). */
const GENERALIZED_TIME_YEAR = 2050;

/** A value with any tag byte. */
export function encodeTagged(tag: number, content: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([tag]), encodeLength(content.byteLength), content]);
}

/** SEQUENCE of values that are encoded already. */
export function encodeSequence(...values: readonly Uint8Array[]): Buffer {
  return encodeTagged(TAG.sequence, Buffer.concat(values));
}

/** SET of one value. */
export function encodeSet(value: Uint8Array): Buffer {
  return encodeTagged(TAG.set, value);
}

/** BOOLEAN TRUE; FALSE is always a default here, and left out. */
export function encodeTrue(): Buffer {
  return encodeTagged(TAG.boolean, Buffer.from([0xff]));
}

/** INTEGER from its bytes, taken as a positive number: shortest form. */
export function encodeInteger(bytes: Uint8Array): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0);
  const digits = first === -1 ? Buffer.from([0]) : Buffer.from(bytes.subarray(first));
  const isNegative = (digits[0] ?? 0) > 0x7f;
  return encodeTagged(TAG.integer, isNegative ? Buffer.concat([Buffer.from([0]), digits]) : digits);
}

/** OBJECT IDENTIFIER from its dotted form. */
export function encodeObjectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes = [first * 40 + second, ...rest.flatMap((arc) => encodeArc(arc))];
  return encodeTagged(TAG.objectIdentifier, Buffer.from(bytes));
}

/** UTF8String. */
export function encodeText(text: string): Buffer {
  return encodeTagged(TAG.utf8String, Buffer.from(text));
}

/** OCTET STRING. */
export function encodeOctets(bytes: Uint8Array): Buffer {
  return encodeTagged(TAG.octetString, bytes);
}

/** BIT STRING whose last `unusedBits` bits do not count. */
export function encodeBits(bytes: Uint8Array, unusedBits = 0): Buffer {
  return encodeTagged(TAG.bitString, Buffer.concat([Buffer.from([unusedBits]), bytes]));
}

/** UTCTime or GeneralizedTime, to the second, as X.509 has them. */
export function encodeTime(atMs: number): Buffer {
  const date = new Date(atMs);
  const digits = date.toISOString().replaceAll(/[-:T]|\.\d+/g, "");
  if (date.getUTCFullYear() >= GENERALIZED_TIME_YEAR) {
    return encodeTagged(TAG.generalizedTime, Buffer.from(digits));
  }
  return encodeTagged(TAG.utcTime, Buffer.from(digits.slice(2)));
}

function encodeLength(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

/** Base 128, most significant first, all but the last with the high bit. */
function encodeArc(arc: number): number[] {
  const bytes = [arc % 128];
  for (let rest = Math.floor(arc / 128); rest > 0; rest = Math.floor(rest / 128)) {
    bytes.unshift(0x80 | (rest % 128));
  }
  return bytes;
}
