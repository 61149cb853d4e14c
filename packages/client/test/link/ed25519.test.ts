// The two verifiers of signatures agree with each other and with node:crypto's signer (L10, L30).

import { generateKeyPairSync, sign } from "node:crypto";
import { createWebVerifier } from "@moor/client/app";
import { createBoxIdentityPem, parseBoxIdentity, verifyWithNode, type VerifySignature } from "@moor/client";
import { ConfigError, Secret } from "@moor/runtime";
import { verifies } from "@moor/testkit";
import { decodeBase64url } from "@moor/protocol";
import { expect } from "vitest";

const VERIFIERS: readonly (readonly [string, VerifySignature])[] = [
  ["node:crypto", verifyWithNode],
  ["WebCrypto", createWebVerifier()],
  ["the bundled implementation", createWebVerifier(insecureSubtle())],
  ["the bundled implementation, where WebCrypto knows no Ed25519", createWebVerifier(ignorantSubtle())],
];

/** As on a page that is no secure context. */
function insecureSubtle(): unknown {
  return { importKey: () => Promise.reject(new TypeError("no subtle")) };
}

function ignorantSubtle(): unknown {
  return { importKey: () => Promise.reject(new DOMException("unknown", "NotSupportedError")) };
}

for (const [name, verify] of VERIFIERS) {
  verifies(["L10", "L30"], `${name} takes a sound signature and no other`, async () => {
    const identity = parseBoxIdentity("--identity", createBoxIdentityPem());
    const key = decodeBase64url(identity.publicKey) ?? new Uint8Array();
    const message = new TextEncoder().encode("moor-link-hello-ok-v1\nhost");
    const signature = new Uint8Array(identity.sign(message));
    expect(await verify(key, message, signature)).toBe(true);
    for (const at of [0, 31, 32, 63]) {
      const forged = signature.slice();
      forged[at] = (forged[at] ?? 0) ^ 1;
      expect(await verify(key, message, forged), `byte ${at}`).toBe(false);
    }
    expect(await verify(key, message.slice(1), signature)).toBe(false);
    expect(await verify(new Uint8Array(32).fill(255), message, signature)).toBe(false);
    expect(await verify(new Uint8Array(31), message, signature)).toBe(false);
    expect(await verify(key, message, signature.slice(1))).toBe(false);
  });
}

verifies(
  "L28",
  "an identity is an Ed25519 key in PKCS#8 PEM, and nothing of another file is repeated",
  () => {
    const rsa = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
    for (const text of ["", "planted-marker", rsa.export({ type: "pkcs8", format: "pem" }).toString()]) {
      const refused = expect(() => parseBoxIdentity("--identity", new Secret(text)));
      refused.toThrow(ConfigError);
      refused.toThrow(/^(?!.*(marker|PRIVATE))/s);
    }
    const { privateKey } = generateKeyPairSync("ed25519");
    const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    const message = Buffer.from("m");
    expect(parseBoxIdentity("--identity", new Secret(pem)).sign(message)).toEqual(
      sign(null, message, privateKey),
    );
  },
);
