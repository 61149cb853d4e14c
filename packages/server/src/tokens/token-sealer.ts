// Sealed tokens: texts that only this residency's nodes can read or make.
//
// Spec: T5 (command tokens), T8 (session ids). AES-256-GCM, one derived key per kind and ring key.
// Text: base64url(key id hash 4 bytes ‖ nonce 12 ‖ ciphertext ‖ tag 16).
// I1  Associated data = kind, residency, tunnel: a token of another kind, residency or tunnel does not open.
// I2  `open` says only yes or no: why a token fails is nobody's business.
// I3  Canonical base64url only: two texts never open to the same token.

import { createCipheriv, createDecipheriv, createHash, hkdfSync } from "node:crypto";
import type { TunnelId } from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import type { Replica, SealingKey } from "../directory/directory.ts";

/** What a token is for; each kind has keys of its own. */
export type TokenKind = "command" | "session";

const ALGORITHM = "aes-256-gcm";
const KEY_ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;

interface DerivedKey {
  readonly idBytes: Buffer;
  readonly key: Buffer;
}

export interface TokenSealer {
  /** A token for `plaintext`, bound to `tunnel`. */
  seal(tunnel: TunnelId, plaintext: Uint8Array): string;
  /** The plaintext of a token sealed for `tunnel` by any accepted key, else `undefined`. */
  open(tunnel: TunnelId, token: string): Uint8Array | undefined;
}

/** A sealer of one kind, on the key ring that the replica shows at each use. */
export function createTokenSealer(
  kind: TokenKind,
  replica: Pick<Replica, "sealingKeys" | "residency">,
  runtime: Pick<Runtime, "randomBytes">,
): TokenSealer {
  const derived = new Map<string, DerivedKey>();
  const derive = (sealing: SealingKey): DerivedKey => {
    let known = derived.get(sealing.id);
    if (known === undefined) {
      const salt = replica.residency();
      known = {
        idBytes: createHash("sha256").update(sealing.id).digest().subarray(0, KEY_ID_BYTES),
        key: Buffer.from(hkdfSync("sha256", sealing.secret, salt, `moor-token-v1 ${kind}`, KEY_BYTES)),
      };
      derived.set(sealing.id, known);
    }
    return known;
  };
  const associatedData = (tunnel: TunnelId) => Buffer.from(`${kind}\n${replica.residency()}\n${tunnel}`);

  return {
    seal(tunnel, plaintext) {
      const sealing = replica.sealingKeys().find((key) => key.state === "sealing");
      if (sealing === undefined) throw new Error("invariant broken: a key ring has a sealing key");
      const { idBytes, key } = derive(sealing);
      const nonce = runtime.randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(associatedData(tunnel));
      const sealed = cipher.update(plaintext);
      cipher.final();
      return Buffer.concat([idBytes, nonce, sealed, cipher.getAuthTag()]).toString("base64url");
    },
    open(tunnel, token) {
      const bytes = Buffer.from(token, "base64url");
      if (bytes.length < KEY_ID_BYTES + NONCE_BYTES + TAG_BYTES) return undefined;
      if (bytes.toString("base64url") !== token) return undefined;
      const idBytes = bytes.subarray(0, KEY_ID_BYTES);
      for (const ringKey of replica.sealingKeys()) {
        const candidate = derive(ringKey);
        if (candidate.idBytes.equals(idBytes)) return openWith(candidate.key, bytes, associatedData(tunnel));
      }
      return undefined;
    },
  };
}

function openWith(key: Buffer, bytes: Buffer, associatedData: Buffer): Uint8Array | undefined {
  const nonceEnd = KEY_ID_BYTES + NONCE_BYTES;
  const tagStart = bytes.length - TAG_BYTES;
  const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(KEY_ID_BYTES, nonceEnd), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(associatedData);
  decipher.setAuthTag(bytes.subarray(tagStart));
  const plaintext = decipher.update(bytes.subarray(nonceEnd, tagStart));
  try {
    decipher.final();
    return plaintext;
  } catch {
    return undefined;
  }
}
