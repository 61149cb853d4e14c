// The port by which signatures are made and checked.
// Spec: L10, L28, L29.

/** Whether `signature` (64 bytes) is `key`'s (raw, 32 bytes) over `message`. Never throws or rejects. */
export type VerifySignature = (
  key: Uint8Array<ArrayBuffer>,
  message: Uint8Array<ArrayBuffer>,
  signature: Uint8Array<ArrayBuffer>,
) => boolean | Promise<boolean>;
