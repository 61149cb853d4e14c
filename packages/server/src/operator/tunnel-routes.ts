// Operator routes of tunnels.
//
// Spec: T1.

import { parseTunnelBody, readTunnelId } from "./operator-bodies.ts";
import { createdTunnelJson, tunnelJson } from "./operator-json.ts";
import { audit, change, ok, readPage, type OperatorApiOptions, type Route } from "./operator-route.ts";

/** `/v1/tunnels` and `/v1/tunnels/{id}`. */
export function tunnelRoutes(options: OperatorApiOptions): readonly Route[] {
  const { directory, publicUrl } = options;
  return [
    {
      path: /^\/v1\/tunnels$/,
      methods: {
        GET: async ({ query }) => {
          const page = await directory.listTunnels(readPage(query));
          const url = publicUrl();
          return ok({ tunnels: page.items.map((tunnel) => tunnelJson(tunnel, url)), next: page.next });
        },
        POST: async (request) => {
          const created = await change(options, directory.createTunnel(parseTunnelBody(request.body)));
          const { id, access } = created.tunnel;
          audit(options, "tunnel-created", request, { tunnel: id, access });
          return { status: 201, json: createdTunnelJson(created, publicUrl()) };
        },
      },
    },
    {
      path: /^\/v1\/tunnels\/([^/]+)$/,
      methods: {
        GET: async (_request, id) => {
          return ok(tunnelJson(await directory.getTunnel(readTunnelId(id, "id")), publicUrl()));
        },
        POST: async (request, id) => {
          const tunnelId = readTunnelId(id, "id");
          const fields = parseTunnelBody(request.body);
          const tunnel = await change(options, directory.updateTunnel(tunnelId, fields));
          audit(options, "tunnel-updated", request, {
            tunnel: tunnelId,
            fields: Object.keys(fields).join(","),
          });
          return ok(tunnelJson(tunnel, publicUrl()));
        },
        DELETE: async (request, id) => {
          const tunnelId = readTunnelId(id, "id");
          await change(options, directory.deleteTunnel(tunnelId));
          audit(options, "tunnel-deleted", request, { tunnel: tunnelId });
          return ok({ id: tunnelId, deleted: true });
        },
      },
    },
  ];
}
