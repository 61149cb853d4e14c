// Sealed tokens: texts that only this residency's nodes can read or make.
//
// Spec: R23 (polling tokens), T8 (session ids). AES-256-GCM, one derived key per kind and ring key.
// Text: base64url(key id hash 4 bytes ‖ nonce 12 ‖ ciphertext ‖ tag 16).
// I1  Associated data = kind, residency, tunnel: a token of another kind, residency or tunnel does not open.
// I2  `open` says only yes or no: why a token fails is nobody's business.
// I3  Canonical base64url only: two texts never open to the same token.
// I4  A deterministic token is a function of ring key, kind, residency, tunnel and plaintext: its nonce is a keyed PRF
//     of the rest, so that every node makes the same text (R23) and no nonce serves two plaintexts.

import { createHash, createHmac, hkdfSync } from "node:crypto";
import type { TunnelId } from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import type { SealingKey } from "../directory/directory.ts";
import { BOX_KEY_BYTES, BOX_NONCE_BYTES, BOX_OVERHEAD_BYTES, openBox, sealBox } from "./sealed-box.ts";

/** What a token is for; each kind has keys of its own. */
export type TokenKind = "poll" | "session";

/** Where a sealer finds its keys: a replica, or what peers told a bootstrap entry. */
export interface KeyRing {
  sealingKeys(): readonly SealingKey[];
  residency(): string;
}

const KEY_ID_BYTES = 4;

interface DerivedKey {
  readonly idBytes: Buffer;
  readonly key: Buffer;
  readonly nonceKey: Buffer;
}

export interface TokenSealer {
  /** A token for `plaintext`, bound to `tunnel`, under the ring's sealing key; `undefined` while there is none. */
  seal(tunnel: TunnelId, plaintext: Uint8Array): string | undefined;
  /** The one token for `plaintext` under the ring key `keyId` (I4); `undefined` when the ring lacks that key. */
  sealDeterministic(keyId: string, tunnel: TunnelId, plaintext: Uint8Array): string | undefined;
  /** The plaintext of a token sealed for `tunnel` by any key of the ring, else `undefined`. */
  open(tunnel: TunnelId, token: string): Uint8Array | undefined;
}

/** A sealer of one kind, on the key ring as it is at each use. */
export function createTokenSealer(
  kind: TokenKind,
  ring: KeyRing,
  runtime: Pick<Runtime, "randomBytes">,
): TokenSealer {
  const derived = new Map<string, DerivedKey>();
  const derive = (sealing: SealingKey): DerivedKey => {
    let known = derived.get(sealing.id);
    if (known === undefined) {
      known = deriveKey(kind, ring.residency(), sealing);
      derived.set(sealing.id, known);
    }
    return known;
  };
  const associatedData = (tunnel: TunnelId) => Buffer.from(`${kind}\n${ring.residency()}\n${tunnel}`);

  return {
    seal(tunnel, plaintext) {
      const sealing = ring.sealingKeys().find((key) => key.state === "sealing");
      if (sealing === undefined) return undefined;
      return sealWith(
        derive(sealing),
        runtime.randomBytes(BOX_NONCE_BYTES),
        associatedData(tunnel),
        plaintext,
      );
    },
    sealDeterministic(keyId, tunnel, plaintext) {
      const ringKey = ring.sealingKeys().find((key) => key.id === keyId);
      if (ringKey === undefined) return undefined;
      const key = derive(ringKey);
      const data = associatedData(tunnel);
      const nonce = createHmac("sha256", key.nonceKey).update(data).update("\n").update(plaintext).digest();
      return sealWith(key, nonce.subarray(0, BOX_NONCE_BYTES), data, plaintext);
    },
    open(tunnel, token) {
      const bytes = Buffer.from(token, "base64url");
      if (bytes.length < KEY_ID_BYTES + BOX_OVERHEAD_BYTES) return undefined;
      if (bytes.toString("base64url") !== token) return undefined;
      const idBytes = bytes.subarray(0, KEY_ID_BYTES);
      for (const ringKey of ring.sealingKeys()) {
        const candidate = derive(ringKey);
        if (candidate.idBytes.equals(idBytes))
          return openBox(candidate.key, bytes.subarray(KEY_ID_BYTES), associatedData(tunnel));
      }
      return undefined;
    },
  };
}

function deriveKey(kind: TokenKind, residency: string, { id, secret }: SealingKey): DerivedKey {
  const expand = (purpose: string) =>
    Buffer.from(hkdfSync("sha256", secret, residency, `moor-${purpose}-v1 ${kind}`, BOX_KEY_BYTES));
  return {
    idBytes: createHash("sha256").update(id).digest().subarray(0, KEY_ID_BYTES),
    key: expand("token"),
    nonceKey: expand("nonce"),
  };
}

function sealWith(key: DerivedKey, nonce: Uint8Array, data: Buffer, plaintext: Uint8Array): string {
  return Buffer.concat([key.idBytes, sealBox(key.key, nonce, data, plaintext)]).toString("base64url");
}
