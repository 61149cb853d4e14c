// AES-256-GCM as everything sealed here uses it: nonce 12 bytes ‖ ciphertext ‖ tag 16.
//
// Spec: R23, T5, T8. What a box holds, and what it is bound to, is its maker's to say.
// I1  A box that was changed, or is opened with another key or other associated data, does not open: nothing says why.

import { createCipheriv, createDecipheriv } from "node:crypto";

const ALGORITHM = "aes-256-gcm";
const TAG_BYTES = 16;

/** Bytes of a nonce. */
export const BOX_NONCE_BYTES = 12;
/** Bytes of a box beyond those of its plaintext. */
export const BOX_OVERHEAD_BYTES = BOX_NONCE_BYTES + TAG_BYTES;
/** Bytes of a key. */
export const BOX_KEY_BYTES = 32;

/**
 * Seals `plaintext`, bound to `data`.
 *
 * @param nonce 12 bytes, never used twice with one key for different plaintexts
 */
export function sealBox(key: Uint8Array, nonce: Uint8Array, data: Uint8Array, plaintext: Uint8Array): Buffer {
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(data);
  const sealed = cipher.update(plaintext);
  cipher.final();
  return Buffer.concat([nonce, sealed, cipher.getAuthTag()]);
}

/** The plaintext of `box`, at least BOX_OVERHEAD_BYTES long; `undefined` when it does not open (I1). */
export function openBox(key: Uint8Array, box: Uint8Array, data: Uint8Array): Buffer | undefined {
  const tagStart = box.length - TAG_BYTES;
  const decipher = createDecipheriv(ALGORITHM, key, box.subarray(0, BOX_NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(data);
  decipher.setAuthTag(box.subarray(tagStart));
  const plaintext = decipher.update(box.subarray(BOX_NONCE_BYTES, tagStart));
  try {
    decipher.final();
    return plaintext;
  } catch {
    return undefined;
  }
}
