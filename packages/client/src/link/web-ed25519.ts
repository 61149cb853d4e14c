// Ed25519 where there is no Node: WebCrypto, or the bundled implementation in browsers without it and on pages that are
// no secure context.
//
// Spec: L10, L30.
// I1  Both refuse what RFC 8032 refuses; whatever goes wrong is a signature that does not verify.

import { hashes, verify as verifyBundled } from "@noble/ed25519";
import { sha512 } from "@noble/hashes/sha2.js";
import type { VerifySignature } from "./ed25519.ts";

/** The part of WebCrypto that is used. */
interface Subtle {
  importKey(
    format: "raw",
    key: Uint8Array<ArrayBuffer>,
    algorithm: { readonly name: "Ed25519" },
    isExtractable: boolean,
    usages: readonly ["verify"],
  ): Promise<object>;
  verify(
    algorithm: { readonly name: "Ed25519" },
    key: object,
    signature: Uint8Array<ArrayBuffer>,
    message: Uint8Array<ArrayBuffer>,
  ): Promise<boolean>;
}

/** Verifies with WebCrypto; with the bundled implementation where `subtle` is absent or knows no Ed25519. */
export function createWebVerifier(subtle: unknown = platformSubtle()): VerifySignature {
  return async (key, message, signature) => {
    const verdict = await verifyWith(subtle as Subtle | undefined, key, message, signature);
    return verdict ?? bundled(key, message, signature);
  };
}

/** Undefined where WebCrypto cannot judge. */
async function verifyWith(
  subtle: Subtle | undefined,
  ...[key, message, signature]: Parameters<VerifySignature>
): Promise<boolean | undefined> {
  if (subtle === undefined) return undefined;
  const algorithm = { name: "Ed25519" } as const;
  try {
    const imported = await subtle.importKey("raw", key, algorithm, false, ["verify"]);
    return await subtle.verify(algorithm, imported, signature, message);
  } catch {
    return undefined;
  }
}

function bundled(...[key, message, signature]: Parameters<VerifySignature>): boolean {
  hashes.sha512 = sha512;
  try {
    return verifyBundled(signature, message, key, { zip215: false });
  } catch {
    return false;
  }
}

function platformSubtle(): unknown {
  const { crypto } = globalThis as unknown as { readonly crypto?: { readonly subtle?: unknown } };
  return crypto?.subtle;
}
