// Speaks the operator API for the commands that look after homes and what all homes share.

import type { OperatorAddress } from "./operator-address.ts";
import type { CreatedTunnelJson, KeyJson } from "./operator-client.ts";
import { OperatorHttp, type ListJson, type ListRequest } from "./operator-http.ts";

/** A home as the operator API shows it. */
export interface HomeJson {
  readonly id: string;
  readonly label: string;
  readonly shard: string;
  readonly revision: number;
  readonly box: {
    readonly enrolled: boolean;
    readonly key_id: string | null;
    /** Whether its last hello listed `shard`; null before its first. */
    readonly shard: boolean | null;
    readonly last_seen_at: string | null;
  };
  readonly tunnel: string | null;
  readonly mcp_url: string | null;
  readonly created_at: string;
}

/** A new home, and its tunnel with keys where one was made with it. */
export interface CreatedHomeJson extends HomeJson {
  readonly created_tunnel: CreatedTunnelJson | null;
}

/** Who keeps a home on the default shard. */
export interface BlockerJson {
  readonly kind: string;
  /** The app's instance id; absent for the box. */
  readonly app?: string;
  /** Null: never seen. */
  readonly shard: boolean | null;
  readonly last_seen_at: string | null;
}

/** A link of a home as its owner sees it now. */
export interface LiveLinkJson {
  /** Node that holds it; null if that is not known any more. */
  readonly node: string | null;
  readonly age_ms: number;
  /** Whether its client follows shards. */
  readonly shard: boolean;
}

/** A home's links as its owner sees them now. */
export interface HomeLiveJson {
  /** `online`, `offline` or `unknown`. */
  readonly presence: string;
  readonly since_ms: number;
  readonly box: (LiveLinkJson & { readonly generation: number }) | null;
  readonly apps: readonly (LiveLinkJson & { readonly app: string })[];
  /** While a second box with the same key is held off. */
  readonly duplicate_identity: { readonly remaining_ms: number; readonly held_off: number } | null;
  readonly commands_open: number;
}

/** A home with its links and apps. */
export interface HomeDetailJson extends HomeJson {
  /** Null when its owner is out of reach. */
  readonly live: HomeLiveJson | null;
  readonly apps: readonly { readonly app: string; readonly shard: boolean; readonly last_seen_at: string }[];
  readonly move_blockers: readonly BlockerJson[];
}

/** A token without its text. */
export interface TokenJson {
  readonly id: string;
  readonly kind: string;
  readonly home: string;
  readonly label: string;
  readonly prefix: string;
  readonly created_at: string;
  readonly revoked: boolean;
}

/** A new token with its text. */
export interface CreatedTokenJson extends TokenJson {
  readonly token: string;
}

/** An enrolment code. */
export interface EnrolmentJson {
  readonly home: string;
  readonly code: string;
  readonly expires_at: string;
}

/** A service key: its public half. */
export interface ServiceKeyJson {
  readonly id: string;
  readonly public_key: string;
  readonly state: string;
  readonly created_at: string;
  readonly state_since: string;
  readonly created_by: string;
}

/** Calls the operator API. Methods reject with RefusedError or UnreachableError. */
export class HomeClient {
  readonly #http: OperatorHttp;

  constructor(address: OperatorAddress) {
    this.#http = new OperatorHttp(address);
  }

  createHome(fields: Readonly<Record<string, string>>): Promise<CreatedHomeJson> {
    return this.#http.request("POST", "/v1/homes", fields);
  }

  listHomes(request: ListRequest): Promise<ListJson<HomeJson>> {
    return this.#http.list("/v1/homes", "homes", request);
  }

  showHome(id: string): Promise<HomeDetailJson> {
    return this.#http.request("GET", `/v1/homes/${id}`);
  }

  deleteHome(id: string): Promise<unknown> {
    return this.#http.request("DELETE", `/v1/homes/${id}`);
  }

  createToken(home: string, fields: Readonly<Record<string, string>>): Promise<CreatedTokenJson> {
    return this.#http.request("POST", `/v1/homes/${home}/tokens`, fields);
  }

  listTokens(home: string, request: ListRequest): Promise<ListJson<TokenJson>> {
    return this.#http.list(`/v1/homes/${home}/tokens`, "tokens", request);
  }

  showToken(id: string): Promise<KeyJson> {
    return this.#http.request("GET", `/v1/keys/${id}`);
  }

  revokeToken(id: string): Promise<KeyJson> {
    return this.#http.request("DELETE", `/v1/keys/${id}`);
  }

  createEnrolment(home: string): Promise<EnrolmentJson> {
    return this.#http.request("POST", `/v1/homes/${home}/enrolment`);
  }

  listServiceKeys(): Promise<ListJson<ServiceKeyJson>> {
    return this.#http.list("/v1/service-keys", "service_keys", {});
  }

  addServiceKey(reason?: string): Promise<ServiceKeyJson> {
    return this.#http.request("POST", "/v1/service-keys", { reason });
  }

  retireServiceKey(id: string, reason?: string): Promise<unknown> {
    return this.#http.request("DELETE", `/v1/service-keys/${id}`, { reason });
  }

  setDefaultShard(shard: string, reason?: string): Promise<unknown> {
    return this.#http.request("POST", `/v1/shards/${shard}/default`, { reason });
  }
}
