// Speaks the operator API for the commands that look after shards, moves and what a residency shares.

import type { DrainForecast, DrainReport } from "@moor/server/drains";
import type { OperatorAddress } from "./operator-address.ts";
import { OperatorHttp, type ListJson, type ListRequest } from "./operator-http.ts";

/** A shard as the operator API shows it. */
export interface ShardJson {
  readonly id: string;
  readonly state: string;
  readonly node: string;
  readonly public_host: string;
  readonly tunnels: number;
  readonly homes: number;
  /** Null for a shard whose lease was never seen. */
  readonly lease_age_ms: number | null;
  readonly late: boolean;
  /** New homes are placed on it. */
  readonly default: boolean;
}

/** A node. */
export interface NodeJson {
  readonly id: string;
  readonly state: string;
  readonly roles: readonly string[];
  readonly shards: readonly string[];
  readonly internal_url: string;
  readonly incarnation: string;
  readonly version: string;
}

/** Where a tenant lives. */
export interface WhereJson {
  readonly tenant: string;
  readonly shard: string;
  readonly state: string;
  readonly node: string;
  readonly public_host: string;
  readonly revision: number;
  /** `current`, `behind` or `regressed`: how far the node's knowledge can be trusted. */
  readonly view: string;
}

/** A tenant's past. */
export interface TimelineJson {
  readonly tenant: string;
  readonly events: readonly {
    readonly at: string;
    readonly node: string;
    readonly event: string;
    readonly detail: string;
  }[];
  readonly unreached: readonly string[];
}

/** A move with its audit. */
export interface MoveJson {
  readonly id: string;
  readonly tenant: string;
  readonly from: string | null;
  readonly to: string;
  readonly revision: number;
  readonly at: string;
  readonly actor: string;
  readonly reason: string;
  readonly job: string | null;
}

/** A job with its progress. */
export interface JobJson {
  readonly id: string;
  readonly kind: string;
  readonly from: string;
  readonly to: string | null;
  readonly spread: boolean;
  readonly rate: number;
  readonly state: "running" | "done" | "aborted" | "failed";
  readonly forced: boolean;
  readonly moved: number;
  /** Homes that stayed where they are because L22 keeps them, and the first of them. */
  readonly blocked: number;
  readonly blocked_tenants: readonly string[];
  readonly total: number;
  readonly actor: string;
  readonly reason: string;
  readonly created_at: string;
  readonly error: string | null;
}

/** A token key, never its bytes. */
export interface TokenKeyJson {
  readonly id: string;
  readonly state: string;
  readonly created_at: string;
  readonly state_since: string;
  readonly created_by: string;
  readonly placements: number;
}

/** The switch of corrections. */
export interface CorrectionsJson {
  readonly residency: string;
  readonly on: boolean;
}

/** Longest wait for the retirement of a token key, which places anew what it sealed. Milliseconds. */
const RETIRE_ANSWER_MS = 600_000;

/** Calls the operator API. Methods reject with RefusedError or UnreachableError. */
export class FleetClient {
  readonly #http: OperatorHttp;

  constructor(address: OperatorAddress) {
    this.#http = new OperatorHttp(address);
  }

  listShards(): Promise<ListJson<ShardJson>> {
    return this.#http.list("/v1/shards", "shards", {});
  }

  listNodes(): Promise<ListJson<NodeJson>> {
    return this.#http.list("/v1/nodes", "nodes", {});
  }

  where(tenant: string): Promise<WhereJson> {
    return this.#http.request("GET", `/v1/tenants/${tenant}`);
  }

  timeline(tenant: string): Promise<TimelineJson> {
    return this.#http.request("GET", `/v1/tenants/${tenant}/timeline`);
  }

  move(order: {
    readonly tenant: string;
    readonly to: string;
    readonly reason?: string;
    readonly force?: boolean;
  }): Promise<MoveJson & { readonly acked: boolean }> {
    return this.#http.request("POST", "/v1/moves", order);
  }

  showMove(id: string): Promise<MoveJson> {
    return this.#http.request("GET", `/v1/moves/${id}`);
  }

  listMoves(request: ListRequest & { readonly tenant?: string }): Promise<ListJson<MoveJson>> {
    return this.#http.list("/v1/moves", "moves", request, { tenant: request.tenant });
  }

  createJob(order: {
    readonly from: string;
    readonly to?: string;
    readonly spread?: boolean;
    readonly rate: number;
    readonly reason?: string;
    readonly force?: boolean;
  }): Promise<JobJson> {
    return this.#http.request("POST", "/v1/jobs", { kind: "move", ...order });
  }

  showJob(id: string): Promise<JobJson> {
    return this.#http.request("GET", `/v1/jobs/${id}`);
  }

  abortJob(id: string, reason?: string): Promise<JobJson> {
    return this.#http.request("POST", `/v1/jobs/${id}/abort`, { reason });
  }

  /** Tells the shard's node to leave, or asks what that would do. */
  orderDrain(
    shard: string,
    order: {
      readonly dryRun: boolean;
      readonly spreadMs?: number | undefined;
      readonly reason?: string | undefined;
    },
  ): Promise<DrainForecast> {
    const { dryRun, spreadMs, reason } = order;
    const body = { kind: "restart", dry_run: dryRun, spread_ms: spreadMs, reason };
    return this.#http.request("POST", `/v1/shards/${shard}/drain`, body);
  }

  drainReport(shard: string): Promise<DrainReport> {
    return this.#http.request("GET", `/v1/shards/${shard}/drain`);
  }

  corrections(): Promise<CorrectionsJson> {
    return this.#http.request("GET", "/v1/corrections");
  }

  setCorrections(on: boolean, reason?: string): Promise<CorrectionsJson> {
    return this.#http.request("PUT", "/v1/corrections", { on, reason });
  }

  listTokenKeys(): Promise<ListJson<TokenKeyJson>> {
    return this.#http.list("/v1/token-keys", "token_keys", {});
  }

  addTokenKey(reason?: string): Promise<TokenKeyJson> {
    return this.#http.request("POST", "/v1/token-keys", { reason });
  }

  promoteTokenKey(id: string, reason?: string): Promise<TokenKeyJson> {
    return this.#http.request("POST", `/v1/token-keys/${id}/promote`, { reason });
  }

  retireTokenKey(id: string, reason?: string): Promise<unknown> {
    return this.#http.request("DELETE", `/v1/token-keys/${id}`, { reason }, RETIRE_ANSWER_MS);
  }
}
