// Operator routes that show the fleet: shards with their leases, nodes, where a tenant lives, and why.
//
// Design: "Liveness", "Moves".   I1  Nothing here asks the authority: a directory that is down hides nothing.

import { parseTunnelId, ProtocolError } from "@moor/protocol";
import type { ShardRecord, TenantCounts } from "../directory/directory.ts";
import type { TimelineEvent } from "../moves/mover.ts";
import { nodeJson, shardJson, timelineEventJson, whereJson } from "./fleet-json.ts";
import { ok, type Handler, type OperatorApiOptions, type Route } from "./operator-route.ts";

const NO_TENANTS: TenantCounts = { tunnels: 0, homes: 0 };

/** `/v1/shards`, `/v1/nodes`, `/v1/tenants/{id}` and its timeline. */
export function fleetRoutes(options: OperatorApiOptions): readonly Route[] {
  const { replica, leases } = options;
  const listShards: Handler = () => {
    const counts = replica.countsByShard();
    const describe = (shard: ShardRecord) =>
      shardJson(shard, counts.get(shard.id) ?? NO_TENANTS, leases.ageMs(shard.id), leases.isLate(shard.id));
    return ok({ shards: replica.shards().map(describe), next: null });
  };
  const listNodes: Handler = () => {
    const shards = replica.shards();
    return ok({ nodes: replica.nodes().map((node) => nodeJson(node, shards)), next: null });
  };
  return [
    { path: /^\/v1\/shards$/, methods: { GET: listShards } },
    { path: /^\/v1\/nodes$/, methods: { GET: listNodes } },
    { path: /^\/v1\/tenants\/([^/]+)$/, methods: { GET: (_request, id) => showTenant(options, id) } },
    {
      path: /^\/v1\/tenants\/([^/]+)\/timeline$/,
      methods: { GET: (_request, id) => showTimeline(options, id) },
    },
  ];
}

function showTenant({ replica }: OperatorApiOptions, id: string) {
  const tenant = readTenantId(id);
  const placement = replica.placement(tenant);
  if (placement === undefined) throw new ProtocolError("tunnel_not_found");
  return ok(whereJson(tenant, placement, replica.shard(placement.shard), replica.health));
}

async function showTimeline({ replica, timeline }: OperatorApiOptions, id: string) {
  const tenant = readTenantId(id);
  const { events, unreached } = await timeline.timeline(tenant);
  const moves = replica.movesOf(tenant).map((move): TimelineEvent => ({
    atMs: move.atMs,
    node: "directory",
    event: "moved",
    detail:
      `${move.from ?? "nowhere"} → ${move.to} at revision ${move.revision} by ${move.actor}` +
      (move.reason === "" ? "" : `: ${move.reason}`),
  }));
  const all = [...events, ...moves].toSorted((one, other) => one.atMs - other.atMs);
  // A deleted tenant has no placement, and still a past.
  if (all.length === 0 && replica.placement(tenant) === undefined)
    throw new ProtocolError("tunnel_not_found");
  return ok({ tenant, events: all.map(timelineEventJson), unreached });
}

/** A tunnel's id is the only kind of tenant id yet. Throws `invalid_tunnel_id_format`. */
function readTenantId(text: string): string {
  const id = parseTunnelId(text);
  if (id === undefined) throw new ProtocolError("invalid_tunnel_id_format", { param: "id" });
  return id;
}
