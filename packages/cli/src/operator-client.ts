// Speaks the operator API (docs/protocol T1) for the commands.

import { RefusedError, UnreachableError } from "./exit-code.ts";
import type { OperatorAddress } from "./operator-address.ts";

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
  readonly tunnel: string;
  readonly label: string;
  readonly prefix: string;
  readonly created_at: string;
  readonly revoked: boolean;
}

/** A new key with its text. */
export interface CreatedKeyJson extends KeyJson {
  readonly key: string;
}

/** One page of a list. */
export interface ListJson<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

/** Which part of a list: a page of `limit`, or everything when there is no limit. */
export interface ListRequest {
  readonly limit?: number;
  readonly after?: string;
}

/** Longest wait for an answer of the operator listener. Milliseconds. */
const ANSWER_MS = 30_000;

/** Calls the operator API. Methods reject with RefusedError or UnreachableError. */
export class OperatorClient {
  readonly #address: OperatorAddress;

  constructor(address: OperatorAddress) {
    this.#address = address;
  }

  createTunnel(fields: Readonly<Record<string, string>>): Promise<CreatedTunnelJson> {
    return this.#request("POST", "/v1/tunnels", fields);
  }

  showTunnel(id: string): Promise<TunnelJson> {
    return this.#request("GET", `/v1/tunnels/${id}`);
  }

  updateTunnel(id: string, fields: Readonly<Record<string, string>>): Promise<TunnelJson> {
    return this.#request("POST", `/v1/tunnels/${id}`, fields);
  }

  deleteTunnel(id: string): Promise<unknown> {
    return this.#request("DELETE", `/v1/tunnels/${id}`);
  }

  listTunnels(request: ListRequest): Promise<ListJson<TunnelJson>> {
    return this.#list("/v1/tunnels", "tunnels", request, {});
  }

  createKey(fields: Readonly<Record<string, string>>): Promise<CreatedKeyJson> {
    return this.#request("POST", "/v1/keys", fields);
  }

  showKey(id: string): Promise<KeyJson> {
    return this.#request("GET", `/v1/keys/${id}`);
  }

  revokeKey(id: string): Promise<KeyJson> {
    return this.#request("DELETE", `/v1/keys/${id}`);
  }

  listKeys(request: ListRequest & { readonly tunnel?: string }): Promise<ListJson<KeyJson>> {
    const filter: Record<string, string> = request.tunnel === undefined ? {} : { tunnel: request.tunnel };
    return this.#list("/v1/keys", "keys", request, filter);
  }

  async #list<Item>(
    path: string,
    member: string,
    { limit, after }: ListRequest,
    filter: Readonly<Record<string, string>>,
  ): Promise<ListJson<Item>> {
    const items: Item[] = [];
    let cursor = after;
    for (;;) {
      const query = new URLSearchParams({ ...filter, limit: String(limit ?? 500) });
      if (cursor !== undefined) query.set("after", cursor);
      const page = await this.#request<Record<string, unknown>>("GET", `${path}?${query.toString()}`);
      items.push(...(page[member] as Item[]));
      const next = page["next"] as string | null;
      if (next === null || limit !== undefined) return { items, next };
      cursor = next;
    }
  }

  async #request<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
    const response = await this.#fetch(method, path, body);
    const text = await response.text().catch(() => "");
    const json = parseJson(text);
    if (response.ok && json !== undefined) return json as Answer;
    throw refusal(response.status, json);
  }

  async #fetch(method: string, path: string, body: unknown): Promise<Response> {
    const { url, token } = this.#address;
    try {
      return await fetch(url + path, {
        method,
        // A redirect would carry the token elsewhere.
        redirect: "manual",
        signal: AbortSignal.timeout(ANSWER_MS),
        headers: {
          Authorization: `Bearer ${token.reveal()}`,
          Accept: "application/json",
          ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch (error) {
      throw new UnreachableError(
        `cannot reach the operator listener at ${url} (${reasonOf(error)})`,
        "Check that the node runs and that the address is right; --operator or --data names another one.",
      );
    }
  }
}

function refusal(status: number, json: unknown): RefusedError {
  const error = isObject(json) && isObject(json["error"]) ? json["error"] : {};
  const { code, message } = error;
  if (typeof code === "string" && typeof message === "string") return new RefusedError(code, message);
  return new RefusedError(`http_${status}`, "the answer is not one of an operator listener");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** The system's own code, e.g. ECONNREFUSED. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown failure";
  if (error.name === "TimeoutError") return "no answer in time";
  const { cause } = error;
  return cause instanceof Error && "code" in cause ? String(cause.code) : error.message;
}
