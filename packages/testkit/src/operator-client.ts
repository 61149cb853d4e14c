// The operator API of one node as tests use it: JSON in and out, no interpretation.
//
// Spec: T1. I1  Every answer is given with its status: a refusal is a value, since tests ask for refusals too.

import { readFile } from "node:fs/promises";
import path from "node:path";
import type { FleetTunnel } from "./fleet.ts";

/** An answer of the operator listener. */
export interface OperatorReply<Body = Record<string, unknown>> {
  readonly status: number;
  readonly body: Body;
}

/** The error in a reply's body: its code and message; empty for a success. */
export interface OperatorError {
  readonly code: string;
  readonly message: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

/** Longest wait for an answer. Milliseconds: above the 5 s of a database statement and its read-back. */
const REPLY_WAIT_MS = 30_000;

export class OperatorClient {
  readonly #url: string;
  readonly #token: string;

  constructor(url: string, token: string) {
    this.#url = url;
    this.#token = token;
  }

  /** Sends one request; rejects only when no answer comes. */
  async request<Body = Record<string, unknown>>(
    method: string,
    target: string,
    body?: unknown,
  ): Promise<OperatorReply<Body>> {
    const answer = await fetch(`${this.#url}${target}`, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, "content-type": "application/json" },
      signal: AbortSignal.timeout(REPLY_WAIT_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    const isJson = answer.headers.get("content-type")?.startsWith("application/json") === true;
    return { status: answer.status, body: (isJson ? JSON.parse(text) : { text }) as Body };
  }

  /** As `request`, and throws for anything but a success. */
  async demand<Body = Record<string, unknown>>(
    method: string,
    target: string,
    body?: unknown,
  ): Promise<Body> {
    const reply = await this.request<Body>(method, target, body);
    if (reply.status < 300) return reply.body;
    throw new Error(`${method} ${target}: ${reply.status} ${errorOf(reply)?.code ?? ""}`);
  }

  /** Creates a tunnel. */
  async createTunnel(fields: Readonly<Record<string, unknown>> = {}): Promise<FleetTunnel> {
    const made = await this.demand<{ id: string; agent_key: string; connector_key: string | null }>(
      "POST",
      "/v1/tunnels",
      fields,
    );
    return { id: made.id, agentKey: made.agent_key, connectorKey: made.connector_key };
  }

  /** Shard and revision of a tenant as this node sees them; undefined when it knows no such tenant. */
  async where(tenant: string): Promise<{ shard: string; revision: number; node: string } | undefined> {
    const reply = await this.request<{ shard: string; revision: number; node: string }>(
      "GET",
      `/v1/tenants/${tenant}`,
    );
    return reply.status === 200 ? reply.body : undefined;
  }

  /** Orders a move. `force`: of a home too that L22 would keep. */
  move(tenant: string, to: string, reason = "test", force = false): Promise<OperatorReply> {
    return this.request("POST", "/v1/moves", { tenant, to, reason, ...(force ? { force } : {}) });
  }

  /** Creates a home on the default shard; gives its name. */
  async createHome(fields: Readonly<Record<string, unknown>> = {}): Promise<string> {
    return (await this.demand<{ id: string }>("POST", "/v1/homes", fields)).id;
  }

  /** A home as `GET /v1/homes/{id}` shows it, its apps and `move_blockers` included. */
  showHome(home: string): Promise<Record<string, unknown>> {
    return this.demand("GET", `/v1/homes/${home}`);
  }

  /** Deletes a home. */
  deleteHome(home: string): Promise<OperatorReply> {
    return this.request("DELETE", `/v1/homes/${home}`);
  }

  /** Creates a token `<home>.<secret>`. */
  createHomeToken(
    home: string,
    kind: "app" | "extension" = "app",
  ): Promise<{ readonly id: string; readonly token: string }> {
    return this.demand("POST", `/v1/homes/${home}/tokens`, { kind });
  }

  /** Revokes a key or a token. */
  revokeKey(id: string): Promise<OperatorReply> {
    return this.request("DELETE", `/v1/keys/${id}`);
  }

  /** Makes a code for `POST /v1/enroll`. */
  async createEnrolment(home: string): Promise<string> {
    return (await this.demand<{ code: string }>("POST", `/v1/homes/${home}/enrolment`)).code;
  }

  /** The service's raw public keys, base64url, the signing one first. */
  async serviceKeys(): Promise<readonly string[]> {
    const { service_keys: keys } = await this.demand<{ service_keys: { public_key: string }[] }>(
      "GET",
      "/v1/service-keys",
    );
    return keys.map((key) => key.public_key);
  }

  /** Places new homes on a shard from now on. */
  setDefaultShard(shard: string): Promise<OperatorReply> {
    return this.request("POST", `/v1/shards/${shard}/default`, {});
  }

  /** The value of an unlabelled metric; NaN when there is none. */
  async metric(name: string): Promise<number> {
    const { text = "" } = await this.demand<{ text?: string }>("GET", "/metrics");
    return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1] ?? Number.NaN);
  }
}

/** The error a reply carries, if any. */
export function errorOf(reply: OperatorReply<unknown>): OperatorError | undefined {
  return (reply.body as { readonly error?: OperatorError } | undefined)?.error;
}

/** A client of the node whose data directory this is, as its `operator.json` says. */
export async function openOperator(dataDir: string): Promise<OperatorClient> {
  const text = await readFile(path.join(dataDir, "operator.json"), "utf8");
  const { url, token } = JSON.parse(text) as { readonly url: string; readonly token: string };
  return new OperatorClient(url, token);
}
