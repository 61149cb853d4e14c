// Checks a box's proof against its public key, on the thread pool.
//
// Spec: L28, L29.
// I1  An unknown home is checked too, against a key that nobody holds: it takes as long and ends alike.

import { createPublicKey, generateKeyPairSync, verify, type KeyObject } from "node:crypto";
import type { SignatureVerifier } from "./link-context.ts";

/** Verifies Ed25519 signatures off the event loop. */
export const verifySignature: SignatureVerifier = (bytes, signature, key, answer) => {
  verify(null, bytes, key, Buffer.from(signature, "base64url"), (error, isValid) =>
    answer(error === null && isValid),
  );
};

/** A public key from its 32 raw bytes, base64url; undefined for a text that is none. */
export function parsePublicKey(raw: string): KeyObject | undefined {
  try {
    return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: raw }, format: "jwk" });
  } catch {
    return undefined;
  }
}

/** The raw key, base64url, of a pair made now whose private half is dropped at once. */
export function mintNobodysKey(): string {
  return String(generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" }).x);
}
