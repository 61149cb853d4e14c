// The clusters that scenarios run on: an embedded directory with its edges, or PostgreSQL with three nodes.
//
// Design "Shape".   I1  `strike` leaves nothing: no process, no database, no file.

import { startCluster, type Cluster } from "@moor/testkit/cluster";
import type { ClusterNodeSpec } from "@moor/testkit/cluster-config";
import type { ClusterNode } from "@moor/testkit/cluster-node";
import type { OperatorClient } from "@moor/testkit/operator-client";
import { startPostgres, type PostgresServer } from "@moor/testkit/postgres";

export interface StageOptions {
  readonly directory: "sqlite" | "postgres";
  /** How the entries that clients use find owners. */
  readonly entryMode: "replica" | "bootstrap";
  readonly nodeArgs?: readonly string[];
  /** A server to make the database on; it is not taken down with the stage. Default: one of its own. */
  readonly server?: PostgresServer;
}

export interface Stage {
  readonly cluster: Cluster;
  /** Present with PostgreSQL. */
  readonly postgres: PostgresServer | undefined;
  /** Entries that clients use. */
  readonly endpoints: readonly string[];
  /** Operator APIs of the nodes that have a directory. */
  readonly operators: readonly OperatorClient[];
  strike(): Promise<void>;
}

/** Starts a cluster with corrections on; with PostgreSQL a server of its own. */
export async function setStage(options: StageOptions): Promise<Stage> {
  const isShared = options.server !== undefined;
  const postgres = options.directory === "postgres" ? (options.server ?? (await startPostgres())) : undefined;
  const removeServer = async () => {
    if (!isShared) await postgres?.remove();
  };
  try {
    const cluster = await startCluster({
      nodes: nodesOf(options),
      directory: postgres === undefined ? "sqlite" : { postgresUrl: await newDatabase(postgres) },
      corrections: true,
      ...(options.nodeArgs === undefined ? {} : { nodeArgs: options.nodeArgs }),
    });
    return {
      cluster,
      postgres,
      endpoints: clientEntries(cluster, options).map(({ endpoint }) => endpoint),
      operators: cluster.nodes.filter((node) => !node.isBootstrap).map(({ operator }) => operator),
      strike: async () => {
        await cluster.stop();
        await removeServer();
      },
    };
  } catch (error) {
    await removeServer();
    throw error;
  }
}

/** An empty database that no other stage of this process uses; gives its URL. */
function newDatabase(server: PostgresServer): Promise<string> {
  databaseCount += 1;
  return server.createDatabase(`stage_${databaseCount}`);
}

let databaseCount = 0;

/** The nodes that clients use: the bootstrap ones where there are any, else all. */
function clientEntries(cluster: Cluster, { entryMode }: StageOptions): readonly ClusterNode[] {
  return entryMode === "replica" ? cluster.nodes : cluster.nodes.filter((node) => node.isBootstrap);
}

function nodesOf({ directory, entryMode }: StageOptions): readonly ClusterNodeSpec[] {
  if (directory === "sqlite") {
    const alone = { id: "a", shards: ["s1", "s2"] };
    if (entryMode === "replica") return [alone];
    return [alone, { id: "edge1", entryMode }, { id: "edge2", entryMode }];
  }
  return [
    { id: "a", shards: ["s1"] },
    { id: "b", shards: ["s2"] },
    { id: "edge", entryMode },
  ];
}
