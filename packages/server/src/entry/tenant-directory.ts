// What an entry must know of a tunnel and a key before it lets a request in.
//
// Spec: T2, T10, L26. An entry with a replica reads it; a bootstrap entry asks a node that has one.
// I1  A key is looked up by its hash only: its text never leaves the entry.

import { parseTunnelId, type HomeId, type TunnelId } from "@moor/protocol";
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
  /**
   * Facts of a tunnel, or of a home's own tunnel (L26), and of the key with this SHA-256, at once where the entry has a
   * replica.
   */
  lookUp(
    tenant: TunnelId | HomeId,
    keyHash: Uint8Array | undefined,
  ): TenantFacts | Promise<TenantFacts | FactsUnavailable>;
}

/** The tunnel that an id names: a tunnel's own, or that of the home whose id it is. Spec L26. */
export function tunnelOf(
  replica: Pick<Replica, "tunnel" | "home">,
  tenant: TunnelId | HomeId,
): TunnelRecord | undefined {
  if (parseTunnelId(tenant) !== undefined) return replica.tunnel(tenant);
  const own = replica.home(tenant)?.tunnel;
  return own === undefined || own === null ? undefined : replica.tunnel(own);
}

/** Facts from this node's own replica. */
export function replicaTenants(replica: Pick<Replica, "tunnel" | "home" | "keyByHash">): TenantDirectory {
  return {
    lookUp: (tenant, keyHash) => ({
      kind: "facts",
      tunnel: tunnelOf(replica, tenant),
      key: keyHash === undefined ? undefined : replica.keyByHash(keyHash),
    }),
  };
}
