// What an entry must know of a tunnel and a key before it lets a request in.
//
// Spec: T2, T10. An entry with a replica reads it; a bootstrap entry asks a node that has one.
// I1  A key is looked up by its hash only: its text never leaves the entry.

import type { TunnelId } from "@moor/protocol";
import type { KeyRecord, Replica, TunnelRecord } from "../directory/directory.ts";

/** What is known of a tunnel and of a key, each on its own. */
export interface TenantFacts {
  readonly kind: "facts";
  readonly tunnel: TunnelRecord | undefined;
  /** The key with the hash asked for, unless revoked. */
  readonly key: KeyRecord | undefined;
}

/** Nobody who knows could be asked: try again. */
export interface FactsUnavailable {
  readonly kind: "unavailable";
}

export interface TenantDirectory {
  /** Facts of `tunnel` and of the key with this SHA-256, at once where the entry has a replica. */
  lookUp(
    tunnel: TunnelId,
    keyHash: Uint8Array | undefined,
  ): TenantFacts | Promise<TenantFacts | FactsUnavailable>;
}

/** Facts from this node's own replica. */
export function replicaTenants(replica: Pick<Replica, "tunnel" | "keyByHash">): TenantDirectory {
  return {
    lookUp: (tunnel, keyHash) => ({
      kind: "facts",
      tunnel: replica.tunnel(tunnel),
      key: keyHash === undefined ? undefined : replica.keyByHash(keyHash),
    }),
  };
}
