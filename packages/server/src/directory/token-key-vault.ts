// Token keys at rest: sealed under the node secret, so that a stolen directory or export opens no token.
//
// Spec: R23. Text: `v1.` and base64url(nonce 12 ‖ ciphertext 32 ‖ tag 16).
// I1  Associated data = residency and key id: a sealed secret is good for its own row only.
// I2  Another node secret opens nothing, and `open` says only that.

import { createCipheriv, createDecipheriv } from "node:crypto";
import type { Runtime } from "@moor/runtime";

const ALGORITHM = "aes-256-gcm";
const PREFIX = "v1.";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const SECRET_BYTES = 32;

/** Seals and opens the secrets of token keys. */
export class TokenKeyVault {
  readonly #nodeSecret: Uint8Array;
  readonly #runtime: Pick<Runtime, "randomBytes">;

  /** @param nodeSecret 32 bytes */
  constructor(nodeSecret: Uint8Array, runtime: Pick<Runtime, "randomBytes">) {
    this.#nodeSecret = nodeSecret;
    this.#runtime = runtime;
  }

  /** What the directory keeps of a key's secret. */
  seal(residency: string, id: string, secret: Uint8Array): string {
    const nonce = this.#runtime.randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#nodeSecret, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(associatedData(residency, id));
    const sealed = cipher.update(secret);
    cipher.final();
    return PREFIX + Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString("base64url");
  }

  /** A key's secret, 32 bytes; undefined when it was sealed under another node secret, or for another row. */
  open(residency: string, id: string, text: string): Uint8Array | undefined {
    if (!isSealed(text)) return undefined;
    const bytes = Buffer.from(text.slice(PREFIX.length), "base64url");
    if (bytes.length !== NONCE_BYTES + SECRET_BYTES + TAG_BYTES) return undefined;
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv(ALGORITHM, this.#nodeSecret, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(associatedData(residency, id));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    const secret = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
    try {
      decipher.final();
      return new Uint8Array(secret);
    } catch {
      return undefined;
    }
  }
}

/** Whether a stored secret is sealed. Schema 1 kept them bare. */
export function isSealed(text: string): boolean {
  return text.startsWith(PREFIX);
}

function associatedData(residency: string, id: string): Buffer {
  return Buffer.from(`moor-token-key\n${residency}\n${id}`);
}
