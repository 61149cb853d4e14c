// Enrolment codes as people read and type them: `XXXX-XXXXXXXX-XXXXXXXX` in Crockford's base32.
//
// Spec: L28. The first group finds the code's row, the rest is its secret.
// I1  Only the SHA-256 of the whole code is kept; guessing the secret has five tries (enrolment-mutations.ts).
// I2  Case, hyphens and the look-alikes I, L and O do not matter: a code is read from a screen and typed elsewhere.

import { hash } from "node:crypto";
import { Secret, type Runtime } from "@moor/runtime";

/** Crockford's alphabet: no I, L, O, U. */
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** Characters that find the row: 20 bits. */
const ID_CHARS = 4;
/** Characters of the secret: 80 bits. */
const SECRET_CHARS = 16;
const SHAPE = /^[0-9A-HJKMNP-TV-Z]{20}$/;

/** A code as the directory keeps it. */
export interface StoredCode {
  readonly id: string;
  /** SHA-256 of its 20 characters, hexadecimal. */
  readonly secretHash: string;
}

/** A new code: its text for its owner, and what is kept of it. */
export function mintEnrolmentCode(runtime: Pick<Runtime, "randomBytes">): {
  readonly code: Secret;
  readonly stored: StoredCode;
} {
  // 32 characters divide a byte's 256 values evenly.
  const bytes = [...runtime.randomBytes(ID_CHARS + SECRET_CHARS)];
  const text = bytes.map((byte) => ALPHABET[byte % ALPHABET.length]).join("");
  const groups = [text.slice(0, ID_CHARS), text.slice(ID_CHARS, ID_CHARS + 8), text.slice(ID_CHARS + 8)];
  return { code: new Secret(groups.join("-")), stored: storedCode(text) };
}

/** What is kept of a code; undefined for a text that is none. */
export function parseEnrolmentCode(text: string): StoredCode | undefined {
  if (text.length > 64) return undefined;
  const plain = text.trim().toUpperCase().replaceAll("-", "").replaceAll(/[IL]/g, "1").replaceAll("O", "0");
  return SHAPE.test(plain) ? storedCode(plain) : undefined;
}

function storedCode(text: string): StoredCode {
  return { id: text.slice(0, ID_CHARS), secretHash: hash("sha256", text) };
}
