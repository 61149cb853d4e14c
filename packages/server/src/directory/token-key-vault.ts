// Token keys at rest: sealed under the node secret, so that a stolen directory or export opens no token.
//
// Spec: R23. Text: `v1.` and base64url(nonce 12 ‖ ciphertext 32 ‖ tag 16).
// I1  Associated data = residency and key id: a sealed secret is good for its own row only.
// I2  Another node secret opens nothing, and `open` says only that.

import type { Runtime } from "@moor/runtime";
import { BOX_NONCE_BYTES, BOX_OVERHEAD_BYTES, openBox, sealBox } from "../tokens/sealed-box.ts";

const PREFIX = "v1.";
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
    const nonce = this.#runtime.randomBytes(BOX_NONCE_BYTES);
    const box = sealBox(this.#nodeSecret, nonce, associatedData(residency, id), secret);
    return PREFIX + box.toString("base64url");
  }

  /** A key's secret, 32 bytes; undefined when it was sealed under another node secret, or for another row. */
  open(residency: string, id: string, text: string): Uint8Array | undefined {
    if (!isSealed(text)) return undefined;
    const bytes = Buffer.from(text.slice(PREFIX.length), "base64url");
    if (bytes.length !== SECRET_BYTES + BOX_OVERHEAD_BYTES) return undefined;
    const secret = openBox(this.#nodeSecret, bytes, associatedData(residency, id));
    return secret === undefined ? undefined : new Uint8Array(secret);
  }
}

/** Whether a stored secret is sealed. Schema 1 kept them bare. */
export function isSealed(text: string): boolean {
  return text.startsWith(PREFIX);
}

function associatedData(residency: string, id: string): Buffer {
  return Buffer.from(`moor-token-key\n${residency}\n${id}`);
}
