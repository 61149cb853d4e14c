// Operator routes of drains: what one would do, the order, and what became of it.
//
// Spec: L24; design "Drains and restarts".

import { ProtocolError } from "@moor/protocol";
import { parseShardId, type ShardId } from "../directory/directory.ts";
import { parseDrainBody } from "./operator-bodies.ts";
import { audit, ok, type Handler, type OperatorApiOptions, type Route } from "./operator-route.ts";

/** `/v1/shards/{id}/drain`. */
export function drainRoutes(options: OperatorApiOptions): readonly Route[] {
  const { drains } = options;
  const show: Handler = async (_request, id) => ok({ ...(await drains.report(readShard(id))) });
  const order: Handler = async (request, id) => {
    const { dryRun: isDryRun = false, spreadMs, reason = "" } = parseDrainBody(request.body);
    const shard = readShard(id);
    const { actor } = request;
    const forecast = await drains.order({ shard, spreadMs, isDryRun, actor, reason });
    if (!isDryRun) audit(options, "shard-drain-ordered", request, { shard, node: forecast.node, reason });
    return ok({ ...forecast, ordered: !isDryRun });
  };
  return [{ path: /^\/v1\/shards\/([^/]+)\/drain$/, methods: { GET: show, POST: order } }];
}

function readShard(text: string): ShardId {
  const shard = parseShardId(text);
  if (shard === undefined) throw new ProtocolError("shard_not_found");
  return shard;
}
