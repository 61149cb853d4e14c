// The service keys a client trusts: those it was configured with, and those that verified hello_oks announced.
//
// Spec: L10, L28, L29.
// I1  A configured key is never displaced (L29). I2  Only a hello_ok that has verified teaches a key.
// I3  At most LEARNED_KEYS_MAX learned keys, the newest first, then the one that signs: it is not pushed out by next keys
//     that come to nothing.

import {
  decodeBase64url,
  encodeBase64url,
  parseNonce,
  serviceKeyId,
  type HelloOkFrame,
} from "@moor/protocol";
import { sha256 } from "@noble/hashes/sha2.js";
import { ConfigError } from "@moor/runtime/portable";

/** Learned keys that are kept: the one in use, the next one, and two of rotations that came to nothing. */
const LEARNED_KEYS_MAX = 4;

type RawKey = Uint8Array<ArrayBuffer>;

/** The keys of one client. */
export class ServiceKeys {
  readonly #configured: ReadonlyMap<string, RawKey>;
  /** Raw keys, base64url, newest first. */
  #learned: readonly string[] = [];
  #learnedById: ReadonlyMap<string, RawKey> = new Map();

  /**
   * @param option the setting as its user writes it, for the error
   * @param keys raw keys, base64url, at least one
   * @throws ConfigError for none, and for a text that is no raw key
   */
  constructor(option: string, keys: readonly string[]) {
    if (keys.length === 0) throw new ConfigError(option, "no key", "at least one service key");
    this.#configured = new Map(keys.map((key, index) => keyedById(option, key, index)));
  }

  /** Learned keys as they are kept over restarts. */
  get learned(): readonly string[] {
    return this.#learned;
  }

  /** Takes over what a record kept; texts that are no keys, and configured ones, are left out. */
  recall(keys: readonly string[]): void {
    const ids = new Map<string, RawKey>();
    const learned: string[] = [];
    for (const key of keys) {
      if (learned.length === LEARNED_KEYS_MAX) break;
      const raw = rawKey(key);
      const id = raw && serviceKeyId(sha256(raw));
      if (raw === undefined || id === undefined || this.#configured.has(id) || ids.has(id)) continue;
      ids.set(id, raw);
      learned.push(key);
    }
    this.#learned = learned;
    this.#learnedById = ids;
  }

  /** The key with this id; a configured one before a learned one. */
  find(id: string): RawKey | undefined {
    return this.#configured.get(id) ?? this.#learnedById.get(id);
  }

  /** Takes what a verified hello_ok announces. */
  learn({ key: signer, next_key: nextKey }: HelloOkFrame): void {
    if (nextKey === undefined) return;
    const signing = this.#learnedById.get(signer);
    const first = signing === undefined ? [nextKey] : [nextKey, encodeBase64url(signing)];
    this.recall([...first, ...this.#learned]);
  }
}

function keyedById(option: string, key: string, index: number): readonly [string, RawKey] {
  const raw = rawKey(key);
  if (raw === undefined) {
    throw new ConfigError(
      option,
      `key ${index + 1}, a text of ${key.length} characters`,
      "a raw Ed25519 public key: 43 characters of base64url",
    );
  }
  return [serviceKeyId(sha256(raw)), raw];
}

function rawKey(text: string): RawKey | undefined {
  return parseNonce(text) === undefined ? undefined : decodeBase64url(text);
}
