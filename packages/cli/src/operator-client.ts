// Speaks the operator API (docs/protocol T1) for the commands that look after tunnels and keys.

import type { OperatorAddress } from "./operator-address.ts";
import { OperatorHttp, type ListJson, type ListRequest } from "./operator-http.ts";

/** A tunnel as the operator API shows it. */
export interface TunnelJson {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly access: string;
  readonly deadline: string;
  readonly created_at: string;
  readonly seen: boolean;
  readonly shard: string;
  readonly connector_url: string;
}

/** A new tunnel with its keys. */
export interface CreatedTunnelJson extends TunnelJson {
  readonly agent_key: string;
  readonly connector_key: string | null;
}

/** A key without its text. */
export interface KeyJson {
  readonly id: string;
  readonly kind: string;
  /** Null for a token of a home. */
  readonly tunnel: string | null;
  /** The home a token is of; absent for keys of tunnels. */
  readonly home?: string;
  readonly label: string;
  readonly prefix: string;
  readonly created_at: string;
  readonly revoked: boolean;
}

/** A new key with its text. */
export interface CreatedKeyJson extends KeyJson {
  readonly key: string;
}

/** Calls the operator API. Methods reject with RefusedError or UnreachableError. */
export class OperatorClient {
  readonly #http: OperatorHttp;

  constructor(address: OperatorAddress) {
    this.#http = new OperatorHttp(address);
  }

  createTunnel(fields: Readonly<Record<string, string>>): Promise<CreatedTunnelJson> {
    return this.#http.request("POST", "/v1/tunnels", fields);
  }

  showTunnel(id: string): Promise<TunnelJson> {
    return this.#http.request("GET", `/v1/tunnels/${id}`);
  }

  updateTunnel(id: string, fields: Readonly<Record<string, string>>): Promise<TunnelJson> {
    return this.#http.request("POST", `/v1/tunnels/${id}`, fields);
  }

  deleteTunnel(id: string): Promise<unknown> {
    return this.#http.request("DELETE", `/v1/tunnels/${id}`);
  }

  listTunnels(request: ListRequest): Promise<ListJson<TunnelJson>> {
    return this.#http.list("/v1/tunnels", "tunnels", request);
  }

  createKey(fields: Readonly<Record<string, string>>): Promise<CreatedKeyJson> {
    return this.#http.request("POST", "/v1/keys", fields);
  }

  showKey(id: string): Promise<KeyJson> {
    return this.#http.request("GET", `/v1/keys/${id}`);
  }

  revokeKey(id: string): Promise<KeyJson> {
    return this.#http.request("DELETE", `/v1/keys/${id}`);
  }

  listKeys(request: ListRequest & { readonly tunnel?: string }): Promise<ListJson<KeyJson>> {
    return this.#http.list("/v1/keys", "keys", request, { tunnel: request.tunnel });
  }
}
