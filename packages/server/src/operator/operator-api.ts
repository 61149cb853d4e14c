// The operator API: tunnels and keys, as a function from request to answer.
//
// Spec: T1 (operator routes), T3.
// I1  No answer is a redirect.   I2  Every change leaves an audit line, without secrets.

import { ProtocolError } from "@moor/protocol";
import type { Logger, LogFields } from "@moor/runtime";
import type { Directory, PageRequest, Replica } from "../directory/directory.ts";
import { PAGE_LIMIT_DEFAULT } from "../directory/page.ts";
import type { Metrics } from "./metrics.ts";
import { parseKeyBody, parseTunnelBody, readTunnelId } from "./operator-bodies.ts";
import { createdKeyJson, createdTunnelJson, keyJson, tunnelJson, type JsonObject } from "./operator-json.ts";

/** An authorised request. */
export interface OperatorRequest {
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The whole body; empty when there is none. */
  readonly body: Uint8Array;
  readonly requestId: string;
}

/** The success answer to one. */
export interface OperatorAnswer {
  readonly status: 200 | 201;
  readonly json: JsonObject;
}

/** What the API works on. */
export interface OperatorApiOptions {
  readonly directory: Directory;
  readonly replica: Pick<Replica, "key">;
  readonly metrics: Pick<Metrics, "directoryMutations">;
  readonly logger: Logger;
  /** The endpoint that agents and callers reach, e.g. `http://127.0.0.1:8080`. */
  readonly publicUrl: () => string;
}

type Handler = (request: OperatorRequest, id: string) => Promise<OperatorAnswer>;

interface Route {
  readonly path: RegExp;
  readonly methods: Readonly<Record<string, Handler>>;
}

/** The API's routes over one directory. Handlers reject with ProtocolError. */
export class OperatorApi {
  readonly #options: OperatorApiOptions;
  readonly #routes: readonly Route[];

  constructor(options: OperatorApiOptions) {
    this.#options = options;
    this.#routes = [
      { path: /^\/v1\/tunnels$/, methods: { GET: this.#listTunnels, POST: this.#createTunnel } },
      {
        path: /^\/v1\/tunnels\/([^/]+)$/,
        methods: { GET: this.#showTunnel, POST: this.#updateTunnel, DELETE: this.#deleteTunnel },
      },
      { path: /^\/v1\/keys$/, methods: { GET: this.#listKeys, POST: this.#createKey } },
      { path: /^\/v1\/keys\/([^/]+)$/, methods: { GET: this.#showKey, DELETE: this.#revokeKey } },
    ];
  }

  /** The methods of a path, or undefined when there is nothing at it. */
  methodsAt(path: string): readonly string[] | undefined {
    const route = this.#routes.find((candidate) => candidate.path.test(path));
    return route === undefined ? undefined : Object.keys(route.methods);
  }

  /** Runs a request. Rejects with ProtocolError. */
  async run(request: OperatorRequest): Promise<OperatorAnswer> {
    for (const route of this.#routes) {
      const match = route.path.exec(request.path);
      const handler = match === null ? undefined : route.methods[request.method];
      if (handler !== undefined) return handler(request, match?.[1] ?? "");
    }
    throw new ProtocolError("not_found");
  }

  #listTunnels: Handler = async ({ query }) => {
    const page = await this.#options.directory.listTunnels(readPage(query));
    const publicUrl = this.#options.publicUrl();
    return ok({ tunnels: page.items.map((tunnel) => tunnelJson(tunnel, publicUrl)), next: page.next });
  };

  #createTunnel: Handler = async (request) => {
    const input = parseTunnelBody(request.body);
    const created = await this.#change(this.#options.directory.createTunnel(input));
    const { id, access } = created.tunnel;
    this.#audit("tunnel-created", request, { tunnel: id, access });
    return { status: 201, json: createdTunnelJson(created, this.#options.publicUrl()) };
  };

  #showTunnel: Handler = async (_request, id) => {
    const tunnel = await this.#options.directory.getTunnel(readTunnelId(id, "id"));
    return ok(tunnelJson(tunnel, this.#options.publicUrl()));
  };

  #updateTunnel: Handler = async (request, id) => {
    const tunnelId = readTunnelId(id, "id");
    const fields = parseTunnelBody(request.body);
    const tunnel = await this.#change(this.#options.directory.updateTunnel(tunnelId, fields));
    this.#audit("tunnel-updated", request, { tunnel: tunnelId, fields: Object.keys(fields).join(",") });
    return ok(tunnelJson(tunnel, this.#options.publicUrl()));
  };

  #deleteTunnel: Handler = async (request, id) => {
    const tunnelId = readTunnelId(id, "id");
    await this.#change(this.#options.directory.deleteTunnel(tunnelId));
    this.#audit("tunnel-deleted", request, { tunnel: tunnelId });
    return ok({ id: tunnelId, deleted: true });
  };

  #listKeys: Handler = async ({ query }) => {
    const text = query.get("tunnel");
    const page = readPage(query);
    if (text === null) {
      const all = await this.#options.directory.listKeys(page);
      return ok({ keys: all.items.map(keyJson), next: all.next });
    }
    const tunnel = readTunnelId(text, "tunnel");
    await this.#options.directory.getTunnel(tunnel);
    const keys = await this.#options.directory.listKeys({ ...page, tunnel });
    return ok({ keys: keys.items.map(keyJson), next: keys.next });
  };

  #showKey: Handler = async (_request, id) => {
    const key = this.#options.replica.key(id);
    if (key === undefined) throw new ProtocolError("key_not_found");
    return ok(keyJson(key));
  };

  #createKey: Handler = async (request) => {
    const input = parseKeyBody(request.body);
    const { record, key } = await this.#change(this.#options.directory.createKey(input));
    this.#audit("key-created", request, { keyId: record.id, kind: record.kind, tunnel: record.tenant });
    return { status: 201, json: createdKeyJson(record, key) };
  };

  #revokeKey: Handler = async (request, id) => {
    const record = await this.#change(this.#options.directory.revokeKey(id));
    this.#audit("key-revoked", request, { keyId: record.id, kind: record.kind, tunnel: record.tenant });
    return ok(keyJson(record));
  };

  async #change<Value>(mutation: Promise<Value>): Promise<Value> {
    const { directoryMutations } = this.#options.metrics;
    try {
      const value = await mutation;
      directoryMutations.inc("committed");
      return value;
    } catch (error) {
      const isDown = error instanceof ProtocolError && error.code === "directory_unavailable";
      directoryMutations.inc(isDown ? "unavailable" : "refused");
      throw error;
    }
  }

  #audit(event: string, request: OperatorRequest, fields: LogFields): void {
    this.#options.logger.info(event, { ...fields, requestId: request.requestId });
  }
}

function ok(json: JsonObject): OperatorAnswer {
  return { status: 200, json };
}

function readPage(query: URLSearchParams): PageRequest {
  const text = query.get("limit") ?? String(PAGE_LIMIT_DEFAULT);
  // Anything but digits becomes a limit that the list itself refuses.
  const limit = /^[0-9]{1,4}$/.test(text) ? Number(text) : 0;
  const after = query.get("after");
  return after === null ? { limit } : { limit, after };
}
