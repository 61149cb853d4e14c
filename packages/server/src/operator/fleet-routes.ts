// Operator routes that show the fleet: shards with their leases, nodes, where a tenant lives, and why.
//
// Design: "Liveness", "Moves".   I1  Nothing here asks the authority: a directory that is down hides nothing.

import { parseTunnelId, ProtocolError, type HomeId, type TunnelId } from "@moor/protocol";
import type { ShardRecord, TenantCounts } from "../directory/directory.ts";
import type { TimelineEvent } from "../moves/mover.ts";
import { nodeJson, shardJson, timelineEventJson, whereJson } from "./fleet-json.ts";
import { readTenantId } from "./operator-bodies.ts";
import { ok, type Handler, type OperatorApiOptions, type Route } from "./operator-route.ts";

const NO_TENANTS: TenantCounts = { tunnels: 0, homes: 0 };

/** `/v1/shards`, `/v1/nodes`, `/v1/tenants/{id}` and its timeline. */
export function fleetRoutes(options: OperatorApiOptions): readonly Route[] {
  const { replica, leases } = options;
  const listShards: Handler = () => {
    const counts = replica.countsByShard();
    const describe = (shard: ShardRecord) => {
      const [ageMs, isLate] = [leases.ageMs(shard.id), leases.isLate(shard.id)];
      const isDefault = shard.id === replica.defaultShard();
      return shardJson(shard, counts.get(shard.id) ?? NO_TENANTS, ageMs, isLate, isDefault);
    };
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
  const tenant = readTenantId(id, "id");
  const placement = replica.placement(tenant);
  if (placement === undefined) throw unknownTenant(tenant);
  return ok(whereJson(tenant, placement, replica.shard(placement.shard), replica.health));
}

async function showTimeline({ replica, timeline }: OperatorApiOptions, id: string) {
  const tenant = readTenantId(id, "id");
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
  if (all.length === 0 && replica.placement(tenant) === undefined) throw unknownTenant(tenant);
  return ok({ tenant, events: all.map(timelineEventJson), unreached });
}

function unknownTenant(tenant: TunnelId | HomeId): ProtocolError {
  return new ProtocolError(parseTunnelId(tenant) === undefined ? "home_not_found" : "tunnel_not_found");
}
