// Token keys and service keys at rest: sealed under the node secret, so that a stolen directory or export opens no token
// and signs nothing.
//
// Spec: R23, L29. Text: `v1.` and base64url(nonce 12 ‖ ciphertext 32 ‖ tag 16).
// I1  Associated data = purpose, residency and key id: a sealed secret is good for its own row only.
// I2  Another node secret opens nothing, and `open` says only that.

import type { Runtime } from "@moor/runtime";
import { BOX_NONCE_BYTES, BOX_OVERHEAD_BYTES, openBox, sealBox } from "../tokens/sealed-box.ts";

const PREFIX = "v1.";
const SECRET_BYTES = 32;

/** What a sealed secret is. */
export type VaultPurpose = "token-key" | "service-key";

/** Seals and opens the secrets of keys. */
export class TokenKeyVault {
  readonly #nodeSecret: Uint8Array;
  readonly #runtime: Pick<Runtime, "randomBytes">;

  /** @param nodeSecret 32 bytes */
  constructor(nodeSecret: Uint8Array, runtime: Pick<Runtime, "randomBytes">) {
    this.#nodeSecret = nodeSecret;
    this.#runtime = runtime;
  }

  /** What the directory keeps of a key's secret. */
  seal(residency: string, id: string, secret: Uint8Array, purpose: VaultPurpose = "token-key"): string {
    const nonce = this.#runtime.randomBytes(BOX_NONCE_BYTES);
    const box = sealBox(this.#nodeSecret, nonce, associatedData(purpose, residency, id), secret);
    return PREFIX + box.toString("base64url");
  }

  /** A key's secret, 32 bytes; undefined when it was sealed under another node secret, or for another row or purpose. */
  open(
    residency: string,
    id: string,
    text: string,
    purpose: VaultPurpose = "token-key",
  ): Uint8Array | undefined {
    if (!isSealed(text)) return undefined;
    const bytes = Buffer.from(text.slice(PREFIX.length), "base64url");
    if (bytes.length !== SECRET_BYTES + BOX_OVERHEAD_BYTES) return undefined;
    const secret = openBox(this.#nodeSecret, bytes, associatedData(purpose, residency, id));
    return secret === undefined ? undefined : new Uint8Array(secret);
  }
}

/** Whether a stored secret is sealed. Schema 1 kept them bare. */
export function isSealed(text: string): boolean {
  return text.startsWith(PREFIX);
}

function associatedData(purpose: VaultPurpose, residency: string, id: string): Buffer {
  return Buffer.from(`moor-${purpose}\n${residency}\n${id}`);
}
