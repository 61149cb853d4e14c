// Operator routes of the keys that sign for the service, and of the default shard.
//
// Spec: L22, L28, L29.   I1  No answer has a part of a private key.

import { serviceKeyJson } from "./home-json.ts";
import { parseReasonBody, readShardId } from "./operator-bodies.ts";
import {
  audit,
  change,
  ok,
  orderOf,
  type Handler,
  type OperatorApiOptions,
  type Route,
} from "./operator-route.ts";

/** `/v1/service-keys` and what is below, and `/v1/shards/{id}/default`. */
export function serviceKeyRoutes(options: OperatorApiOptions): readonly Route[] {
  const { directory } = options;
  const list: Handler = async () => {
    const keys = await directory.listServiceKeys();
    return ok({ service_keys: keys.map(serviceKeyJson), next: null });
  };
  const add: Handler = async (request) => {
    const reason = parseReasonBody(request.body);
    const key = await change(options, directory.addServiceKey(orderOf(request, reason)));
    audit(options, "service-key-added", request, { serviceKey: key.id, state: key.state, reason });
    return { status: 201, json: serviceKeyJson(key) };
  };
  const retire: Handler = async (request, id) => {
    const reason = parseReasonBody(request.body);
    await change(options, directory.retireServiceKey(id, orderOf(request, reason)));
    audit(options, "service-key-retired", request, { serviceKey: id, reason });
    return ok({ id, retired: true });
  };
  const setDefault: Handler = async (request, text) => {
    const shard = readShardId(text, "id");
    const reason = parseReasonBody(request.body);
    await change(options, directory.setDefaultShard(shard, orderOf(request, reason)));
    audit(options, "default-shard-set", request, { shard, reason });
    return ok({ id: shard, default: true });
  };
  return [
    { path: /^\/v1\/service-keys$/, methods: { GET: list, POST: add } },
    { path: /^\/v1\/service-keys\/([^/]+)$/, methods: { DELETE: retire } },
    { path: /^\/v1\/shards\/([^/]+)\/default$/, methods: { POST: setDefault } },
  ];
}
