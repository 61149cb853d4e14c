// Signs hello_ok with the service key that signs now, and announces the next one.
//
// Spec: L28, L29. A signature costs 0.03 ms and is made only for a client that has proved who it is.

import { sign, type KeyObject } from "node:crypto";
import {
  encodeLinkFrame,
  linkHelloOkBytes,
  type Base64url32,
  type Base64url64,
  type HomeId,
  type LinkGeneration,
  type ServiceKeyId,
} from "@moor/protocol";

/** The keys a signer finds in the replica. */
export interface SigningKeys {
  /** The one that signs, and the raw public key of the next one, base64url. */
  readonly active: { readonly id: string; readonly privateKey: KeyObject };
  readonly next?: string | undefined;
}

/** What a hello_ok says beside what every one of this node says. */
export interface HelloOkFacts {
  /** The host dialled. */
  readonly host: string;
  readonly home: HomeId;
  readonly clientNonce: string;
  /** Of a box's link; an app's is 0. Spec L23. */
  readonly generation: number;
  readonly pingMs: number;
  readonly spreadMs: number;
}

export interface HelloSigner {
  /** Whether there is a key to sign with. */
  readonly isReady: boolean;
  /** The frame's text; undefined without a key. */
  helloOk(facts: HelloOkFacts): string | undefined;
}

/** @param keys the service keys as they are at each use; undefined in a copy of a directory that has none yet */
export function createHelloSigner(keys: () => SigningKeys | undefined): HelloSigner {
  return {
    get isReady() {
      return keys() !== undefined;
    },
    helloOk({ host, home, clientNonce, generation, pingMs, spreadMs }) {
      const known = keys();
      if (known === undefined) return undefined;
      const { active, next } = known;
      const text = String(generation) as LinkGeneration;
      const bytes = linkHelloOkBytes({ host, home, clientNonce, generation: text, nextKey: next });
      const signature = sign(null, bytes, active.privateKey).toString("base64url");
      return encodeLinkFrame({
        t: "hello_ok",
        host,
        home,
        generation: text,
        key: active.id as ServiceKeyId,
        sig: signature as Base64url64,
        ping_ms: pingMs,
        spread_ms: spreadMs,
        ...(next === undefined ? {} : { next_key: next as Base64url32 }),
      });
    },
  };
}
