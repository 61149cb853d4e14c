// Ids of what is placed on shards: tunnels and homes.

import { parseHomeId, parseTunnelId, type HomeId, type TunnelId } from "@moor/protocol";

/** A tunnel or a home. No home's id begins with `tunnel_`, so one text names one tenant. */
export type TenantId = TunnelId | HomeId;

/** Reads a tenant's id; `undefined` for any other text. */
export function parseTenantId(text: string): TenantId | undefined {
  return text.startsWith("tunnel_") ? parseTunnelId(text) : parseHomeId(text);
}

/** Whether a tenant is a tunnel; else it is a home. */
export function isTunnelId(tenant: TenantId): tenant is TunnelId {
  return tenant.startsWith("tunnel_");
}
