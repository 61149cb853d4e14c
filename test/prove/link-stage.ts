// What link scenarios run on: real nodes, and homes whose boxes are enrolled.
//
// I1  Nodes with an embedded directory have just started when the stage is set: what making homes leaves behind is not in
//     any figure.
// I2  `strike` leaves nothing: no process, no database, no file.

import { Secret } from "@moor/runtime";
import { startCluster, type Cluster } from "@moor/testkit/cluster";
import type { ClusterNodeSpec } from "@moor/testkit/cluster-config";
import type { ClusterNode } from "@moor/testkit/cluster-node";
import { holdSocket, type HeldSocket } from "@moor/testkit/held-socket";
import { plantHomes, type PlantedHomes } from "@moor/testkit/link-homes";
import type { ListenerCertificate } from "@moor/testkit/listener-certificate";
import { claimPort } from "@moor/testkit/ports";
import { startPostgres, type PostgresServer } from "@moor/testkit/postgres";
import { createTempDir } from "@moor/testkit/temp-dir";
import { until } from "@moor/testkit/within";

/** Host that clients are configured with; every name under `.localhost` is loopback. */
export const BASE_HOST = "moor.localhost";

/** `one-shard`, `two-shards`: one node, embedded directory. `two-nodes`: a shard each, on PostgreSQL. */
export type LinkLayout = "one-shard" | "two-shards" | "two-nodes";

export interface LinkStageOptions {
  /** Homes to make, each with an enrolled box, all on the first shard. */
  readonly homes: number;
  /** Default `one-shard`. */
  readonly layout?: LinkLayout;
  /** Links over TLS with this certificate; one node only. Default: plain. */
  readonly certificate?: ListenerCertificate | undefined;
  /** The public listener's socket outlives its process, as with systemd's socket activation; one node only. */
  readonly isPortHeld?: boolean;
  /** Arguments of Node itself. */
  readonly nodeArgs?: readonly string[];
  /** Whether each home gets an app token. Default false. */
  readonly hasAppTokens?: boolean;
  /** With `two-nodes`: a server to make the database on. Default: one of its own. */
  readonly server?: PostgresServer;
}

export interface LinkStage extends PlantedHomes {
  readonly cluster: Cluster;
  /** The first node. */
  readonly node: ClusterNode;
  /** What clients are configured with at the first node: `ws://moor.localhost:40001`. */
  readonly endpoint: string;
  /** The same for each node. */
  readonly endpoints: readonly string[];
  /** The first node's listener by its address, for clients that choose their own: `ws://127.0.0.1:40001`. */
  readonly addressEndpoint: string;
  strike(): Promise<void>;
}

const LAYOUTS: Readonly<Record<LinkLayout, readonly ClusterNodeSpec[]>> = {
  "one-shard": [{ id: "a", shards: ["s1"] }],
  "two-shards": [{ id: "a", shards: ["s1", "s2"] }],
  "two-nodes": [
    { id: "a", shards: ["s1"] },
    { id: "b", shards: ["s2"] },
  ],
};

/** Number that a process finds the first socket under which it inherits. */
const FIRST_INHERITED = 3;

let databaseCount = 0;

/** Sets the stage. */
export async function setLinkStage(options: LinkStageOptions): Promise<LinkStage> {
  const { layout = "one-shard", server } = options;
  const postgres = layout === "two-nodes" ? (server ?? (await startPostgres())) : undefined;
  const socket = options.isPortHeld === true ? holdSocket() : undefined;
  const removeServer = async () => {
    socket?.close();
    if (server === undefined) await postgres?.remove();
  };
  try {
    databaseCount += 1;
    const url = await postgres?.createDatabase(`links_${process.pid}_${databaseCount}`);
    const cluster = await startCluster({
      nodes: await nodesOf(options, socket),
      directory: url === undefined ? "sqlite" : { postgresUrl: url },
      ...(options.nodeArgs === undefined ? {} : { nodeArgs: options.nodeArgs }),
    });
    try {
      const planted = await plant(cluster, url, options);
      const strike = async () => {
        await cluster.stop();
        await removeServer();
      };
      return { ...planted, cluster, strike, ...endpointsOf(cluster, options) };
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  } catch (error) {
    await removeServer();
    throw error;
  }
}

async function nodesOf(
  { layout = "one-shard", certificate }: LinkStageOptions,
  socket: HeldSocket | undefined,
): Promise<readonly ClusterNodeSpec[]> {
  if (certificate === undefined && socket === undefined) return LAYOUTS[layout];
  const listener =
    socket === undefined ? { port: await claimPort() } : { fd: FIRST_INHERITED, port: socket.port };
  const tls =
    certificate === undefined
      ? {}
      : { tls: { certFile: certificate.certFile, keyFile: certificate.keyFile } };
  const inherited = socket === undefined ? [] : [socket.fd];
  return LAYOUTS[layout].map((spec) => ({
    ...spec,
    inherited,
    settings: { public: { ...listener, ...tls } },
  }));
}

/** The embedded directory is its node's alone: that is stopped meanwhile. */
async function plant(
  cluster: Cluster,
  postgresUrl: string | undefined,
  { homes: count, hasAppTokens = false }: LinkStageOptions,
): Promise<PlantedHomes> {
  const common = { nodeSecretFile: cluster.nodeSecretFile, count, hasAppTokens };
  const node = cluster.nodes[0] as ClusterNode;
  if (postgresUrl === undefined) {
    await node.stop();
    const planted = await plantHomes({ ...common, location: { kind: "sqlite", dir: node.dataDir } });
    await node.start();
    return planted;
  }
  const temp = await createTempDir("plant");
  try {
    const location = { kind: "postgres", url: new Secret(postgresUrl), dir: temp.path } as const;
    const planted = await plantHomes({ ...common, location });
    const last = planted.homes.at(-1)?.home ?? "";
    for (const { operator, id } of cluster.nodes) {
      await until(() => operator.where(last), `node ${id} to know the last home`);
    }
    return planted;
  } finally {
    await temp.remove();
  }
}

function endpointsOf(
  { nodes }: Cluster,
  { certificate }: LinkStageOptions,
): Pick<LinkStage, "node" | "endpoint" | "endpoints" | "addressEndpoint"> {
  const scheme = certificate === undefined ? "ws" : "wss";
  const ports = nodes.map(({ endpoint }) => new URL(endpoint).port);
  const endpoints = ports.map((port) => `${scheme}://${BASE_HOST}:${port}`);
  const [endpoint = ""] = endpoints;
  return {
    node: nodes[0] as ClusterNode,
    endpoint,
    endpoints,
    addressEndpoint: `${scheme}://127.0.0.1:${ports[0]}`,
  };
}
