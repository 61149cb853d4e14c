// A configuration as the options a node is started with.
//
// I1  Secrets and files are read here, before the node opens anything: a bad one ends the start with exit code 2.

import { accessSync, constants } from "node:fs";
import type { BaseHost } from "@moor/protocol";
import { ConfigError, errorCodeOf, invariant, type Logger, type Runtime } from "@moor/runtime";
import { configBaseHost, shardHost } from "../base-host.ts";
import { readNodeSecret } from "../directory/node-secret.ts";
import { parseShardId, type ShardId } from "../directory/records.ts";
import type { DirectoryOption, InternalOptions, NodeOptions, NodeShard, TlsFiles } from "../node-options.ts";
import type { NodeConfig } from "./config-schema.ts";
import { readDatabaseUrl } from "./database-url.ts";
import { findInheritedSocket } from "./inherited-socket.ts";

/** What options need besides the configuration. */
export interface NodeSurroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Version of the program. */
  readonly version: string;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

/** The options that `config` means. Throws ConfigError for a secret or file that cannot be used. */
export function configNodeOptions(
  config: NodeConfig,
  { env, version, runtime, logger }: NodeSurroundings,
): NodeOptions {
  const { public: listener, operator, nodeSecretFile } = config;
  const internal = internalOptions(config);
  const baseHost = configBaseHost(config);
  invariant(baseHost !== undefined, "C1 the schema takes no base host that clients cannot use");
  assertReadable("public.tls", listener.tls);
  assertReadable("internal.tls", internal?.tls);
  return {
    node: {
      id: config.id,
      roles: config.roles,
      shards: shardsOf(config, baseHost),
      entryMode: config.entryMode,
    },
    version,
    baseHost,
    residency: config.residency,
    directory: directoryOption(config, env),
    ...(nodeSecretFile === undefined ? {} : { nodeSecret: readNodeSecret(nodeSecretFile) }),
    host: listener.host,
    port: listener.port,
    isPortShared: listener.reusePort,
    ...inheritedSocket(listener.fd, env),
    ...(listener.tls === undefined ? {} : { publicTls: listener.tls }),
    operatorHost: operator.host,
    operatorPort: operator.port,
    ...(internal === undefined ? {} : { internal }),
    dataDir: config.data,
    ...(listener.url === undefined ? {} : { publicUrl: listener.url }),
    trustedProxies: listener.trustedProxies,
    corsOrigins: config.corsOrigins,
    optionNames: { publicPort: "public.port", operatorPort: "operator.port" },
    runtime,
    logger,
  };
}

function inheritedSocket(asked: number | undefined, env: NodeSurroundings["env"]) {
  const publicFd = findInheritedSocket(asked, env, process.pid);
  return publicFd === undefined ? {} : { publicFd };
}

function directoryOption({ directory }: NodeConfig, env: NodeSurroundings["env"]): DirectoryOption {
  if (directory === undefined) return { kind: "none" };
  if (directory.postgres === undefined) return { kind: "sqlite" };
  return { kind: "postgres", url: readDatabaseUrl(directory.postgres, env) };
}

/** A node of a shared directory has peers: without settings it listens for them on loopback. */
function internalOptions({ internal, directory }: NodeConfig): InternalOptions | undefined {
  if (internal === undefined) {
    return directory?.postgres === undefined ? undefined : { host: "127.0.0.1", port: 0 };
  }
  const { host, port, url, tls } = internal;
  const peers = internal.peers.map((peer) => ({ id: peer.id, internalUrl: peer.url }));
  return { host, port, peers, ...(url === undefined ? {} : { url }), ...(tls === undefined ? {} : { tls }) };
}

function shardsOf({ shards }: NodeConfig, base: BaseHost): NodeShard[] {
  return shards.map((name) => ({ id: parseShardId(name) as ShardId, publicHost: shardHost(name, base) }));
}

function assertReadable(option: string, files: TlsFiles | undefined): void {
  for (const [key, file] of Object.entries({ ...files })) {
    try {
      accessSync(file, constants.R_OK);
    } catch (error) {
      const reason = errorCodeOf(error, "unreadable");
      throw new ConfigError(`${option}.${key}`, `${file} (${reason})`, "a PEM file this user can read");
    }
  }
}
