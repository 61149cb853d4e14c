// The configuration files of a cluster's nodes, as an operator would write them.
//
// Spec: R24 (entry modes), design "Shape".   I1  Secrets are in files and environment variables, never in a configuration.

import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";

/** One node as a test names it. */
export interface ClusterNodeSpec {
  readonly id: string;
  /** Default: `entry`, and `shard` when `shards` has any. */
  readonly roles?: readonly ("entry" | "shard")[];
  /** Default none. */
  readonly shards?: readonly string[];
  /** Default `replica`. A `bootstrap` node has no directory and no shards. */
  readonly entryMode?: "replica" | "bootstrap";
  /** Other nodes reach it through a proxy that a test can cut or freeze. */
  readonly hasInternalProxy?: boolean;
  /** It reaches the database through a proxy that a test can cut or freeze. */
  readonly hasDatabaseProxy?: boolean;
  /** Folder with `ca.crt` and its own `ID.crt` and `ID.key`: its peer links are TLS. Default: plain. */
  readonly certificatesDir?: string;
  /** Time that held calls get after SIGTERM. Milliseconds. Default: the program's own. */
  readonly graceMs?: number;
  /** Numbers of sockets that its processes inherit, for `public.fd` 3 and on. Default none. */
  readonly inherited?: readonly number[];
  /** Further settings of its file, laid over the others. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

/** What all nodes of a cluster share. */
export interface ClusterGround {
  readonly dir: string;
  readonly residency: string;
  readonly isPostgres: boolean;
  /** File with the secret that encrypts token keys. */
  readonly nodeSecretFile: string;
}

/** Where a node listens, the same at each of its starts. */
export interface NodePlace {
  readonly spec: ClusterNodeSpec;
  readonly publicPort: number;
  readonly operatorPort: number;
  readonly internalPort: number;
  /** What other nodes dial: its internal port, or the proxy before it. */
  readonly dialledPort: number;
}

/** Writes the node's file and gives its path and its data directory. `places`: all nodes of the cluster. */
export async function writeNodeConfig(
  place: NodePlace,
  places: readonly NodePlace[],
  ground: ClusterGround,
): Promise<{ readonly configFile: string; readonly dataDir: string }> {
  const { id, settings } = place.spec;
  const dataDir = path.join(ground.dir, id);
  const configFile = path.join(ground.dir, `${id}.json`);
  await mkdir(dataDir, { mode: 0o700, recursive: true });
  const config = { ...nodeConfig(place, places, ground), data: dataDir, ...settings };
  await writeFile(configFile, JSON.stringify(config, null, 2));
  return { configFile, dataDir };
}

function nodeConfig(
  place: NodePlace,
  places: readonly NodePlace[],
  { residency, isPostgres, nodeSecretFile }: ClusterGround,
): Record<string, unknown> {
  const { id, shards = [], roles, graceMs } = place.spec;
  const isBootstrap = isBootstrapNode(place.spec);
  const peers = places.filter((other) => other !== place && (isBootstrap || isBootstrapNode(other.spec)));
  return {
    id,
    residency,
    roles: roles ?? (shards.length === 0 ? ["entry"] : ["entry", "shard"]),
    shards,
    entryMode: isBootstrap ? "bootstrap" : "replica",
    public: { port: place.publicPort },
    operator: { port: place.operatorPort },
    internal: {
      port: place.internalPort,
      url: urlOf(place),
      ...peerTls(place.spec),
      ...(peers.length === 0 ? {} : { peers: peers.map((peer) => ({ id: peer.spec.id, url: urlOf(peer) })) }),
    },
    ...(isBootstrap
      ? {}
      : {
          nodeSecretFile,
          directory: isPostgres ? { postgres: { env: "MOOR_DATABASE_URL" } } : { sqlite: true },
        }),
    ...(graceMs === undefined ? {} : { graceMs }),
  };
}

function peerTls({ id, certificatesDir: dir }: ClusterNodeSpec): Record<string, unknown> {
  if (dir === undefined) return {};
  const file = (name: string) => path.join(dir, name);
  return { tls: { caFile: file("ca.crt"), certFile: file(`${id}.crt`), keyFile: file(`${id}.key`) } };
}

/** Whether a node has no directory, and asks its peers. */
export function isBootstrapNode({ entryMode }: ClusterNodeSpec): boolean {
  return entryMode === "bootstrap";
}

function urlOf({ dialledPort }: NodePlace): string {
  return `tcp://127.0.0.1:${dialledPort}`;
}
