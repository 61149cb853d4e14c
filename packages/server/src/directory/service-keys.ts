// Service keys: how they are minted, kept and opened.
//
// Spec: L28, L29.
// I1  The private half leaves this file sealed under the node secret, or as a KeyObject of this node.
// I2  An id never begins with a hyphen: it is an argument of `moor service-key retire`.

import { createPrivateKey, createPublicKey, hash, type KeyObject } from "node:crypto";
import { invariant, type Runtime } from "@moor/runtime";
import { textAt } from "./columns.ts";
import type { ServiceSigningKey } from "./home-records.ts";
import type { NewServiceKey } from "./mutations/service-key-mutations.ts";
import type { Row } from "./statements.ts";
import type { TokenKeyVault } from "./token-key-vault.ts";

/** Bytes of an Ed25519 private key. */
const SECRET_BYTES = 32;
/** DER before the 32 bytes of an Ed25519 private key in PKCS #8 (RFC 8410). */
const PKCS8_HEAD = Buffer.from("302e020100300506032b657004220420", "hex");
/** Characters of a key's id. Spec L28. */
const ID_CHARS = 16;

/** A new key pair as the directory keeps it. */
export function mintServiceKey(
  residency: string,
  vault: TokenKeyVault,
  runtime: Pick<Runtime, "randomBytes">,
): NewServiceKey {
  const { id, publicKey, secret } = createServiceKey(runtime);
  return { id, publicKey, sealedSecret: vault.seal(residency, id, secret, "service-key") };
}

/** A new key pair, open. `secret`: the private half, 32 bytes. */
export function createServiceKey(
  runtime: Pick<Runtime, "randomBytes">,
): ServiceSigningKey & { readonly secret: Uint8Array } {
  for (;;) {
    const secret = runtime.randomBytes(SECRET_BYTES);
    const privateKey = privateKeyFrom(secret);
    const publicKey = publicKeyOf(privateKey);
    const id = serviceKeyId(publicKey);
    if (!id.startsWith("-")) return { id, publicKey, privateKey, secret };
  }
}

/** A row of READ.serviceKeys, open. */
export function openServiceKey(row: Row, residency: string, vault: TokenKeyVault): ServiceSigningKey {
  const id = textAt(row, "id");
  const secret = vault.open(residency, id, textAt(row, "secret"), "service-key");
  invariant(secret !== undefined, "D13 the node secret opens every service key");
  return { id, publicKey: textAt(row, "public_key"), privateKey: privateKeyFrom(secret) };
}

/** First 16 characters of base64url(SHA-256(raw key)). Spec L28. */
function serviceKeyId(publicKey: string): string {
  return hash("sha256", Buffer.from(publicKey, "base64url"), "base64url").slice(0, ID_CHARS);
}

function privateKeyFrom(secret: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, secret]), format: "der", type: "pkcs8" });
}

/** The public half: 32 bytes raw, base64url. */
function publicKeyOf(privateKey: KeyObject): string {
  const { x } = createPublicKey(privateKey).export({ format: "jwk" });
  invariant(x !== undefined, "D14 an Ed25519 key has a public half");
  return x;
}
