// A whole deployment on this machine: several `moor serve` processes on one directory, with the wires between them in
// the test's hand.
//
// Spec: design "Shape".
// I1  Everything is on loopback and in one temporary folder; `stop` leaves no process, port or file.
// I2  A cluster is handed over when every node serves and shows every shard as live.

import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import {
  isBootstrapNode,
  writeNodeConfig,
  type ClusterGround,
  type ClusterNodeSpec,
  type NodePlace,
} from "./cluster-config.ts";
import { ClusterNode } from "./cluster-node.ts";
import type { FleetTunnel } from "./fleet.ts";
import { runMoor } from "./moor-process.ts";
import { claimPort } from "./ports.ts";
import { createTempDir } from "./temp-dir.ts";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";
import { until } from "./within.ts";

export interface ClusterOptions {
  readonly nodes: readonly ClusterNodeSpec[];
  /** `sqlite`: embedded, for one node. Else the URL of an empty PostgreSQL database, or of one that is ready for Moor. */
  readonly directory: "sqlite" | { readonly postgresUrl: string };
  /** Default `global`. */
  readonly residency?: string;
  /** Whether capable polls are corrected. Default false, as everywhere. */
  readonly corrections?: boolean;
  /** Arguments of Node itself for every node, e.g. a memory probe. */
  readonly nodeArgs?: readonly string[];
}

export interface Cluster {
  readonly nodes: readonly ClusterNode[];
  node(id: string): ClusterNode;
  /** Ids of all shards. */
  readonly shards: readonly string[];
  /** File of the secret that its nodes share. */
  readonly nodeSecretFile: string;
  /** Creates tunnels at the first node, and waits until every node knows them. */
  createTunnels(count: number): Promise<readonly FleetTunnel[]>;
  /** Resolves when every node that runs shows `tenant` at `shard`. */
  untilPlaced(tenant: string, shard: string): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the nodes, the first alone since it may have a directory to set up. */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const temp = await createTempDir("cluster");
  const ground: ClusterGround = {
    dir: temp.path,
    residency: options.residency ?? "global",
    isPostgres: options.directory !== "sqlite",
    nodeSecretFile: path.join(temp.path, "node.secret"),
  };
  const nodes: ClusterNode[] = [];
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.remove()));
    await temp.remove();
  };
  try {
    await writeFile(ground.nodeSecretFile, randomBytes(32).toString("base64url"), { mode: 0o600 });
    if (options.directory !== "sqlite") await migrate(options.directory.postgresUrl);
    nodes.push(...(await prepareNodes(ground, options)));
    await nodes[0]?.start();
    await Promise.all(nodes.slice(1).map((node) => node.start()));
    const shards = options.nodes.flatMap((spec) => spec.shards ?? []);
    const informed = nodes.filter((node) => !node.isBootstrap);
    await Promise.all(informed.map((node) => untilShardsLive(node, shards)));
    if (options.corrections === true) await setCorrections(informed, true);
    return { nodes, shards, nodeSecretFile: ground.nodeSecretFile, stop, ...handlesOf(nodes, informed) };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** `informed`: the nodes that have a directory. */
function handlesOf(
  nodes: readonly ClusterNode[],
  informed: readonly ClusterNode[],
): Pick<Cluster, "node" | "createTunnels" | "untilPlaced"> {
  const [first] = informed;
  return {
    node: (id) => {
      const found = nodes.find((node) => node.id === id);
      if (found === undefined) throw new Error(`no node ${id} in this cluster`);
      return found;
    },
    createTunnels: async (count) => {
      if (first === undefined) return [];
      const tunnels: FleetTunnel[] = [];
      for (let at = 0; at < count; at += 1) tunnels.push(await first.operator.createTunnel());
      const last = tunnels.at(-1);
      if (last === undefined) return [];
      // Changes are taken in in order: who knows the last one knows them all.
      await Promise.all(
        informed.map((node) =>
          until(() => node.operator.where(last.id), `node ${node.id} to know the last tunnel`),
        ),
      );
      return tunnels;
    },
    untilPlaced: async (tenant, shard) => {
      await Promise.all(
        informed.map((node) =>
          until(
            async () => (await node.operator.where(tenant))?.shard === shard,
            `node ${node.id} to see ${tenant} at ${shard}`,
          ),
        ),
      );
    },
  };
}

/** Switches corrections at the first node and waits until every node goes by it. */
export async function setCorrections(nodes: readonly ClusterNode[], on: boolean): Promise<void> {
  await nodes[0]?.operator.demand("PUT", "/v1/corrections", { on, reason: "test" });
  await Promise.all(
    nodes.map((node) =>
      until(
        async () => (await node.operator.demand("GET", "/v1/corrections"))["on"] === on,
        `node ${node.id} to have corrections ${on ? "on" : "off"}`,
      ),
    ),
  );
}

/** Finds ports, starts proxies and writes files; starts no node. */
async function prepareNodes(
  ground: ClusterGround,
  { nodes: specs, directory, nodeArgs = [] }: ClusterOptions,
): Promise<ClusterNode[]> {
  const wires: { readonly place: NodePlace; readonly internalProxy: TcpProxy | undefined }[] = [];
  for (const spec of specs) {
    const internalPort = await claimPort();
    const internalProxy =
      spec.hasInternalProxy === true ? await startTcpProxy({ port: internalPort }) : undefined;
    const place = {
      spec,
      publicPort: await claimPort(),
      operatorPort: await claimPort(),
      internalPort,
      dialledPort: internalProxy?.port ?? internalPort,
    };
    wires.push({ place, internalProxy });
  }
  const places = wires.map(({ place }) => place);
  return Promise.all(
    wires.map(async ({ place, internalProxy }) => {
      const files = await writeNodeConfig(place, places, ground);
      const database = await databaseOf(place.spec, directory);
      const node = { id: place.spec.id, isBootstrap: isBootstrapNode(place.spec), ...files, nodeArgs };
      const env = { MOOR_DATABASE_URL: database.url };
      const { inherited = [] } = place.spec;
      return new ClusterNode({ ...node, env, inherited, internalProxy, databaseProxy: database.proxy });
    }),
  );
}

async function databaseOf(
  spec: ClusterNodeSpec,
  directory: ClusterOptions["directory"],
): Promise<{ readonly url: string | undefined; readonly proxy: TcpProxy | undefined }> {
  if (directory === "sqlite" || isBootstrapNode(spec)) return { url: undefined, proxy: undefined };
  if (spec.hasDatabaseProxy !== true) return { url: directory.postgresUrl, proxy: undefined };
  const url = new URL(directory.postgresUrl);
  const proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
  url.hostname = "127.0.0.1";
  url.port = String(proxy.port);
  return { url: url.href, proxy };
}

async function migrate(postgresUrl: string): Promise<void> {
  const run = await runMoor(["directory", "migrate"], { env: { MOOR_DATABASE_URL: postgresUrl } });
  if (run.code !== 0) throw new Error(`moor directory migrate ended with ${run.code}: ${run.stderr}`);
}

async function untilShardsLive(node: ClusterNode, shards: readonly string[]): Promise<void> {
  interface ShardList {
    readonly shards: readonly { readonly id: string; readonly state: string }[];
  }
  await until(async () => {
    const { shards: seen } = await node.operator.demand<ShardList>("GET", "/v1/shards");
    const live = seen.filter(({ state }) => state === "live").map(({ id }) => id);
    return shards.every((id) => live.includes(id));
  }, `node ${node.id} to see ${shards.length} live shards`);
}
