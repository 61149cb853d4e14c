// What the tests of whole clusters share: clusters that end with their test, single calls, and an MCP server whose
// answers wait for the test.

import { HEADER } from "@moor/protocol";
import {
  encodeCall,
  readAnswer,
  startCluster,
  until,
  within,
  type CallEnding,
  type CallForm,
  type Cluster,
  type ClusterOptions,
  type FleetTunnel,
  type PostgresServer,
} from "@moor/testkit";
import { startHttpHost } from "@moor/testkit/http-host";
import { onTestFinished } from "vitest";
import { QUICK_PACE, type Pace } from "../prove/scenario.ts";

/** Seconds of load: what the scenarios of `npm run prove` show in minutes. */
export const SHORT_PACE: Pace = {
  warmUpMs: 1_000,
  measuredMs: 5_000,
  moveTimes: 3,
  tunnels: 10,
  callsPerS: 100,
  sdkClients: 2,
  outageMs: 5_000,
  scaleTunnels: 500,
  links: QUICK_PACE.links,
};

let databaseCount = 0;

/** A cluster that is stopped when its test ends. `server`: PostgreSQL to make a database on; without one, SQLite. */
export async function startTestCluster(
  options: Omit<ClusterOptions, "directory">,
  server?: PostgresServer,
): Promise<Cluster> {
  databaseCount += 1;
  const directory =
    server === undefined
      ? "sqlite"
      : { postgresUrl: await server.createDatabase(`cluster_${process.pid}_${databaseCount}`) };
  const cluster = await startCluster({ ...options, directory });
  onTestFinished(() => cluster.stop());
  return cluster;
}

/** One new tunnel, placed on `shard` in every node's eyes. */
export async function tunnelOn(cluster: Cluster, shard: string): Promise<FleetTunnel> {
  const [tunnel] = (await cluster.createTunnels(1)) as [FleetTunnel];
  await place(cluster, tunnel, shard);
  return tunnel;
}

/** Moves a tunnel to `shard` unless it is there, and waits until every node sees it. */
export async function place(cluster: Cluster, tunnel: FleetTunnel, shard: string): Promise<void> {
  const { operator } = cluster.nodes.find((node) => !node.isBootstrap) ?? cluster.node("");
  if ((await operator.where(tunnel.id))?.shard !== shard) {
    await operator.demand("POST", "/v1/moves", { tenant: tunnel.id, to: shard });
  }
  await cluster.untilPlaced(tunnel.id, shard);
}

let callCount = 0;

/** A call's name, unique in this process. */
export function callName(): string {
  callCount += 1;
  return `call-${callCount}`;
}

/** Sends one call and reads its answer. */
export async function callOnce(
  endpoint: string,
  tunnel: FleetTunnel,
  options: { readonly form?: CallForm; readonly name?: string } = {},
): Promise<CallEnding> {
  const { form = "json", name = callName() } = options;
  const answer = await fetch(`${endpoint}/v1/mcp/${tunnel.id}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${tunnel.connectorKey ?? ""}`,
      "content-type": "application/json",
      accept: form === "json" ? "application/json" : "application/json, text/event-stream",
    },
    body: encodeCall(name, form),
  });
  return readAnswer(name, answer.status, answer.headers.get("content-type") ?? "", await answer.text());
}

/** An MCP server that notes each call at once and answers when the test says so. */
export interface GatedServer {
  readonly url: string;
  /** Names of the calls executed so far, in order. */
  readonly executed: readonly string[];
  /** Resolves when `count` calls were executed. */
  untilExecuted(count: number): Promise<void>;
  /** Answers what waits, and everything that comes later at once. */
  open(): void;
}

/** Starts one; closed when the test ends. */
export async function startGatedServer(isOpenAtFirst = false): Promise<GatedServer> {
  const executed: string[] = [];
  let waiting: (() => void)[] = [];
  let isOpen = isOpenAtFirst;
  const host = await startHttpHost((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { id } = JSON.parse(Buffer.concat(chunks).toString("utf8")) as { readonly id: string };
      executed.push(id);
      const result = { content: [{ type: "text", text: id }] };
      const answer = () => {
        response.writeHead(200, { "Content-Type": "application/json" });
        response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
      };
      if (isOpen) answer();
      else waiting.push(answer);
    });
  });
  onTestFinished(() => host.close());
  return {
    url: `${host.origin}/mcp`,
    executed,
    untilExecuted: async (count) => {
      await until(() => executed.length >= count, `${count} calls to be executed`);
    },
    open: () => {
      isOpen = true;
      for (const answer of waiting) answer();
      waiting = [];
    },
  };
}

/** The first answer that is 200, asked again and again: for "it heals", never for "it does not fail". */
export function untilServed(endpoint: string, tunnel: FleetTunnel): Promise<unknown> {
  return within(
    until(
      async () => (await callOnce(endpoint, tunnel).catch(() => undefined))?.kind === "answered",
      "service",
    ),
    `calls of ${tunnel.id} to be served`,
  );
}

/** How one poll by hand is made. */
export interface OnePoll {
  /** Default: the tunnel's agent key. */
  readonly key?: string;
  readonly token?: string;
  /** 32 hexadecimal digits. Default: one that no node has met. */
  readonly instance?: string;
  /** Declares `wrong-cluster-v1`. Default false. */
  readonly isCapable?: boolean;
}

let instanceCount = 0;

/** A poll by hand that does not wait. */
export function pollOnce(endpoint: string, tunnel: FleetTunnel, poll: OnePoll = {}): Promise<Response> {
  instanceCount += 1;
  const { key = tunnel.agentKey, token, instance = instanceCount.toString(16).padStart(32, "0") } = poll;
  return fetch(`${endpoint}/v1/tunnels/${tunnel.id}/poll?timeout_ms=1`, {
    headers: {
      authorization: `Bearer ${key}`,
      [HEADER.instanceId]: instance,
      ...(poll.isCapable === true ? { [HEADER.capabilities]: "wrong-cluster-v1" } : {}),
      ...(token === undefined ? {} : { [HEADER.shardToken]: token }),
    },
  });
}
