// The names of the link plane: paths, close codes, and the ids that travel in its frames.
// Spec: L1–L3, L6, L23, L27–L31, L33, L34.
//
// I1  An id of a branded type has passed its parser: code that takes one never validates it again.

import type { Branded } from "./names.ts";

/** Paths of the link plane, appended to the endpoint's own path. Spec L1, L2, L9, L33, L34. */
export const LINK_PATH = {
  box: "/v1/box",
  app: "/v1/app",
  once: "/v1/app/once",
  now: "/v1/now",
  enroll: "/v1/enroll",
} as const;

/** WebSocket close codes of the link plane. Spec L1, L3, L23, L27, L28. */
export const CLOSE_CODE = {
  /** A frame that is none, or of the wrong kind at this point. Spec L27. */
  protocol: 4400,
  /** A bad token or proof, an unknown home, or an identity that was replaced or revoked. Spec L28, L30. */
  auth: 4401,
  /** hello or proof did not come in time. Spec L27. */
  helloTimeout: 4408,
  /** Another box of this home has linked since. Spec L23. */
  replaced: 4409,
  /** The home is held by the host that the reason names. Spec L1. */
  wrongShard: 4421,
  /** No link for this client now; it may come back. Spec L23, L25. */
  busy: 4429,
  /** The service restarts; the reason is a spread in milliseconds. Spec L3. */
  restart: 4503,
} as const;

/** Status of a one-shot whose home is held elsewhere. Spec L2. */
export const STATUS_WRONG_SHARD = 421;

/** Capability of clients that follow a redirect, in `hello.caps`. Spec L6. */
export const CAPABILITY_SHARD = "shard";

/** Version of the link wire, `hello.v`. Spec L28. */
export const LINK_VERSION = 1;

/** The part of a home's link that speaks: the box in the home, an app, or the service. */
export type LinkSender = "box" | "app" | "service";

/** A home: `^[a-z0-9][a-z0-9_-]{0,63}$`. Spec L28. */
export type HomeId = Branded<"HomeId">;

/** Reads a home id; `undefined` for any other text. Spec L28. */
export function parseHomeId(text: string): HomeId | undefined {
  return /^[a-z0-9][a-z0-9_-]{0,63}$/.test(text) ? (text as HomeId) : undefined;
}

/** A command of a home, named by its app: 1–64 characters of `[0-9A-Za-z_-]`. Spec L31. */
export type CommandId = Branded<"CommandId">;

/** Reads a command id; `undefined` for any other text. Spec L31. */
export function parseCommandId(text: string): CommandId | undefined {
  return /^[0-9A-Za-z_-]{1,64}$/.test(text) ? (text as CommandId) : undefined;
}

/** One installation of an app, hello's `app`: 1–64 characters of `[0-9A-Za-z_-]`. Spec L30. */
export type AppInstance = Branded<"AppInstance">;

/** Reads an app instance; `undefined` for any other text. Spec L30. */
export function parseAppInstance(text: string): AppInstance | undefined {
  return /^[0-9A-Za-z_-]{1,64}$/.test(text) ? (text as AppInstance) : undefined;
}

/** 32 bytes as 43 characters of canonical base64url: a nonce or a raw public key. Spec L28. */
export type Base64url32 = Branded<"Base64url32">;

/** Reads a nonce (or raw key): its last character holds 4 bits and two zeros, so one text stands for one value. Spec L28. */
export function parseNonce(text: string): Base64url32 | undefined {
  return /^[0-9A-Za-z_-]{42}[AEIMQUYcgkosw048]$/.test(text) ? (text as Base64url32) : undefined;
}

/** 64 bytes as 86 characters of canonical base64url: an Ed25519 signature. Spec L28. */
export type Base64url64 = Branded<"Base64url64">;

/** Reads a signature's text; `undefined` for any other length or a last character with bits to spare. Spec L28. */
export function parseSignature(text: string): Base64url64 | undefined {
  return /^[0-9A-Za-z_-]{85}[AQgw]$/.test(text) ? (text as Base64url64) : undefined;
}

/** First 16 characters of base64url(SHA-256(raw key)). Spec L28. */
export type ServiceKeyId = Branded<"ServiceKeyId">;

/** Reads a service key's id; `undefined` for any other text. Spec L28. */
export function parseServiceKeyId(text: string): ServiceKeyId | undefined {
  return /^[0-9A-Za-z_-]{16}$/.test(text) ? (text as ServiceKeyId) : undefined;
}

/** A link generation as the wire writes it: a decimal integer below 2^53. Only rises. Spec L23, L28. */
export type LinkGeneration = Branded<"LinkGeneration">;

/** Reads a generation: `^(0|[1-9][0-9]{0,15})$` below 2^53; `undefined` for any other text. Compare as numbers. Spec L28. */
export function parseGeneration(text: string): LinkGeneration | undefined {
  if (!/^(0|[1-9][0-9]{0,15})$/.test(text)) return undefined;
  return Number.isSafeInteger(Number(text)) ? (text as LinkGeneration) : undefined;
}
