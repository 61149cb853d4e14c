// Whether a hello_ok is what this dial asked for, and what must be verified before it is believed.
//
// Spec: L10, L28, L29.   Pure.
// I1  The host signed must be the host dialled, the home this client's, the nonce this dial's: a hello_ok of another dial
//     verifies nowhere.

import { decodeBase64url, linkHelloOkBytes, type HelloOkFrame, type LinkTrouble } from "@moor/protocol";
import type { ServiceKeys } from "./service-keys.ts";

/** What this dial expects. */
export interface HelloOkExpectation {
  readonly host: string;
  readonly home: string;
  /** hello's nonce. */
  readonly clientNonce: string;
  readonly keys: ServiceKeys;
}

/** What is to be verified, or why nothing need be. */
export type HelloOkVerdict =
  | {
      readonly kind: "to-verify";
      readonly key: Uint8Array<ArrayBuffer>;
      readonly message: Uint8Array<ArrayBuffer>;
      readonly signature: Uint8Array<ArrayBuffer>;
    }
  | { readonly kind: "refused"; readonly trouble: LinkTrouble };

/** Judges a hello_ok before its signature. */
export function judgeHelloOk(frame: HelloOkFrame, expected: HelloOkExpectation): HelloOkVerdict {
  const { host, home, clientNonce, keys } = expected;
  if (frame.host !== host || frame.home !== home) return { kind: "refused", trouble: "wrong-host" };
  const key = keys.find(frame.key);
  if (key === undefined) return { kind: "refused", trouble: "unknown-key" };
  const signature = decodeBase64url(frame.sig);
  if (signature === undefined) return { kind: "refused", trouble: "bad-signature" };
  const { generation, next_key: nextKey } = frame;
  return {
    kind: "to-verify",
    key,
    message: linkHelloOkBytes({ host, home, clientNonce, generation, nextKey }),
    signature,
  };
}
