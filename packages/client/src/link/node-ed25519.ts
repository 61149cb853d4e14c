// Ed25519 in Node: the verifier of links, and the identity of a box.
//
// Spec: L10, L28, L29.
// I1  A private key leaves this file as signatures only, or as PEM inside a Secret when it is made.

import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from "node:crypto";
import { encodeBase64url } from "@moor/protocol";
import { ConfigError, Secret } from "@moor/runtime";
import type { VerifySignature } from "./ed25519.ts";

/** What a raw key stands behind in SPKI (RFC 8410). */
const SPKI_PREFIX = Buffer.from("302a300506032b6570032100", "hex");

/** Verifies with node:crypto, at once. */
export const verifyWithNode: VerifySignature = (key, message, signature) => {
  try {
    const spki = Buffer.concat([SPKI_PREFIX, key]);
    return verify(null, message, createPublicKey({ key: spki, format: "der", type: "spki" }), signature);
  } catch {
    return false;
  }
};

/** Who a box is: it can sign, and everyone may know its public half. */
export interface BoxIdentity {
  /** Raw public key, base64url. */
  readonly publicKey: string;
  /** An Ed25519 signature, 64 bytes. */
  sign(message: Uint8Array): Uint8Array;
}

/**
 * Reads an identity: an Ed25519 private key, PKCS#8 PEM.
 *
 * @param option the setting as its user writes it, for the error
 * @throws ConfigError for anything else; its text holds nothing of the key
 */
export function parseBoxIdentity(option: string, pem: Secret): BoxIdentity {
  const key = readPrivateKey(pem);
  if (key?.asymmetricKeyType !== "ed25519") {
    throw new ConfigError(option, "a file that holds no such key", "an Ed25519 private key, PKCS#8 PEM");
  }
  return { publicKey: publicKeyOf(key), sign: (message) => sign(null, message, key) };
}

/** Makes a new identity: PKCS#8 PEM. */
export function createBoxIdentityPem(): Secret {
  const { privateKey } = generateKeyPairSync("ed25519");
  return new Secret(privateKey.export({ type: "pkcs8", format: "pem" }).toString());
}

function readPrivateKey(pem: Secret): KeyObject | undefined {
  try {
    return createPrivateKey(pem.reveal());
  } catch {
    return undefined;
  }
}

function publicKeyOf(key: KeyObject): string {
  const spki = createPublicKey(key).export({ type: "spki", format: "der" });
  return encodeBase64url(spki.subarray(SPKI_PREFIX.length));
}
