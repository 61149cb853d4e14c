// Operator routes of keys.
//
// Spec: T2.   I1  A key's text is in the answer that creates it and in no other.

import { ProtocolError } from "@moor/protocol";
import { parseKeyBody, readTunnelId } from "./operator-bodies.ts";
import { createdKeyJson, keyJson } from "./operator-json.ts";
import {
  audit,
  change,
  ok,
  readPage,
  type Handler,
  type OperatorApiOptions,
  type Route,
} from "./operator-route.ts";

/** `/v1/keys` and `/v1/keys/{id}`. */
export function keyRoutes(options: OperatorApiOptions): readonly Route[] {
  const { directory, replica } = options;
  const list: Handler = async ({ query }) => {
    const text = query.get("tunnel");
    const page = readPage(query);
    if (text === null) {
      const all = await directory.listKeys(page);
      return ok({ keys: all.items.map(keyJson), next: all.next });
    }
    const tunnel = readTunnelId(text, "tunnel");
    await directory.getTunnel(tunnel);
    const keys = await directory.listKeys({ ...page, tunnel });
    return ok({ keys: keys.items.map(keyJson), next: keys.next });
  };
  const create: Handler = async (request) => {
    const { record, key } = await change(options, directory.createKey(parseKeyBody(request.body)));
    audit(options, "key-created", request, { keyId: record.id, kind: record.kind, tunnel: record.tenant });
    return { status: 201, json: createdKeyJson(record, key) };
  };
  const show: Handler = (_request, id) => {
    const key = replica.key(id);
    if (key === undefined) throw new ProtocolError("key_not_found");
    return ok(keyJson(key));
  };
  const revoke: Handler = async (request, id) => {
    const record = await change(options, directory.revokeKey(id));
    const { kind, tenant } = record;
    const owner = kind === "app" || kind === "extension" ? { home: tenant } : { tunnel: tenant };
    audit(options, "key-revoked", request, { keyId: record.id, kind, ...owner });
    return ok(keyJson(record));
  };
  return [
    { path: /^\/v1\/keys$/, methods: { GET: list, POST: create } },
    { path: /^\/v1\/keys\/([^/]+)$/, methods: { GET: show, DELETE: revoke } },
  ];
}
