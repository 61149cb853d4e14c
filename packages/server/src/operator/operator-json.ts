// Directory records as the operator API shows them. Key texts are in none of these but `createdTunnelJson` and
// `createdKeyJson`, the answers that create them.
//
// Spec: T1.

import { encodeResponseTimeout } from "@moor/protocol";
import type { Secret } from "@moor/runtime";
import type { CreatedTunnel, KeyRecord, TunnelRecord } from "../directory/directory.ts";

/** A plain JSON object of an answer. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** A tunnel. `publicUrl` is the endpoint that callers reach. */
export function tunnelJson(tunnel: TunnelRecord, publicUrl: string): JsonObject {
  return {
    id: tunnel.id,
    name: tunnel.name,
    description: tunnel.description,
    access: tunnel.access,
    deadline: encodeResponseTimeout(tunnel.deadlineMs),
    created_at: new Date(tunnel.createdAtMs).toISOString(),
    seen: tunnel.isSeen,
    shard: tunnel.placement.shard,
    connector_url: `${publicUrl.replace(/\/+$/, "")}/v1/mcp/${tunnel.id}`,
  };
}

/** A tunnel just created, with its keys. */
export function createdTunnelJson(created: CreatedTunnel, publicUrl: string): JsonObject {
  return {
    ...tunnelJson(created.tunnel, publicUrl),
    agent_key: created.agentKey.reveal(),
    connector_key: created.connectorKey?.reveal() ?? null,
  };
}

/** A key without its text. */
export function keyJson(key: KeyRecord): JsonObject {
  return {
    id: key.id,
    kind: key.kind,
    ...(isHomeKey(key) ? { tunnel: null, home: key.tenant } : { tunnel: key.tenant }),
    label: key.label,
    prefix: key.prefix,
    created_at: new Date(key.createdAtMs).toISOString(),
    revoked: key.isRevoked,
  };
}

/** Whether a key is a token of a home. Spec L7. */
function isHomeKey({ kind }: KeyRecord): boolean {
  return kind === "app" || kind === "extension";
}

/** A key just created, with its text. */
export function createdKeyJson(record: KeyRecord, key: Secret): JsonObject {
  return { ...keyJson(record), key: key.reveal() };
}
