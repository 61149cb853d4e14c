// What is signed in a handshake, byte for byte, and how a service key is named.
// Spec: L28, L29.   Pure: signing, verifying and hashing are the caller's (node:crypto, WebCrypto or bundled).
//
// I1  UTF-8 lines joined by one line feed, none at the end. I2  No part holds a line feed, so that no two handshakes share
//     their bytes. I3  The first line names what is signed: a proof never verifies as a hello_ok.

import { encodeBase64url } from "./base64url.ts";
import type { ServiceKeyId } from "./link-names.ts";

const PROOF = "moor-link-proof-v1";
const HELLO_OK = "moor-link-hello-ok-v1";

/** What a box signs to prove who it is. */
export interface LinkProofParts {
  /** The host dialled, without port. */
  readonly host: string;
  readonly home: string;
  /** hello's nonce, 43 characters. */
  readonly clientNonce: string;
  /** challenge's nonce, 43 characters. */
  readonly serviceNonce: string;
}

/** What the service signs to prove that it may hold the link. */
export interface LinkHelloOkParts {
  /** The host the client dialled, without port; hello_ok's `host` must be the same. */
  readonly host: string;
  readonly home: string;
  /** hello's nonce, 43 characters. */
  readonly clientNonce: string;
  /** As the wire writes it, decimal. */
  readonly generation: string;
  /** Raw key of the service's next signing key, if hello_ok carries one. */
  readonly nextKey?: string | undefined;
}

/** The bytes a proof signs, by the box key. Throws RangeError if a part holds a line feed. Spec L29. */
export function linkProofBytes(parts: LinkProofParts): Uint8Array<ArrayBuffer> {
  const { host, home, clientNonce, serviceNonce } = parts;
  return linesOf([PROOF, host, home, clientNonce, serviceNonce]);
}

/** The bytes a hello_ok signs, by a service key. Throws RangeError if a part holds a line feed. Spec L29. */
export function linkHelloOkBytes(parts: LinkHelloOkParts): Uint8Array<ArrayBuffer> {
  const { host, home, clientNonce, generation, nextKey } = parts;
  const lines = [HELLO_OK, host, home, clientNonce, generation];
  return linesOf(nextKey === undefined ? lines : [...lines, nextKey]);
}

/** A service key's id: the first 16 characters of base64url(SHA-256(raw key)). Spec L28. */
export function serviceKeyId(sha256OfRawKey: Uint8Array): ServiceKeyId {
  return encodeBase64url(sha256OfRawKey.subarray(0, 12)) as ServiceKeyId;
}

function linesOf(lines: readonly string[]): Uint8Array<ArrayBuffer> {
  if (lines.some((line) => line.includes("\n"))) throw new RangeError("a signed part holds a line feed");
  return new TextEncoder().encode(lines.join("\n"));
}
