// What settings owe each other. Each rule names the setting to change and what it would accept.
//
// Design: "Listeners", "Peer link". I1  What leaves this machine is protected: the operator listener does not, the peer
// listener does only with mutual TLS.

import type { z } from "zod";
import { isLoopbackHost } from "@moor/protocol";
import { configBaseHost, isShardHostUsable } from "../base-host.ts";
import type { NodeConfig } from "./config-schema.ts";

interface Rule {
  readonly at: readonly string[];
  readonly expected: string;
  readonly isBroken: (config: NodeConfig) => boolean;
}

function isBootstrap({ entryMode }: NodeConfig): boolean {
  return entryMode === "bootstrap";
}

const RULES: readonly Rule[] = [
  {
    at: ["shards"],
    expected: 'at least one shard, since roles has "shard"',
    isBroken: ({ roles, shards }) => roles.includes("shard") && shards.length === 0,
  },
  {
    at: ["shards"],
    expected: 'none, since roles lacks "shard"',
    isBroken: ({ roles, shards }) => !roles.includes("shard") && shards.length > 0,
  },
  {
    at: ["shards"],
    expected: "each shard once",
    isBroken: ({ shards }) => new Set(shards).size < shards.length,
  },
  {
    at: ["shardDomain"],
    expected: "a lower-case host name of at most 123 characters without a dot at its end",
    isBroken: (config) => config.shardDomain !== undefined && configBaseHost(config) === undefined,
  },
  {
    at: ["public", "url"],
    expected:
      "an origin whose host has at most 123 characters and no dot at its end, or a shardDomain beside it",
    isBroken: (config) => config.shardDomain === undefined && configBaseHost(config) === undefined,
  },
  {
    at: ["shards"],
    expected:
      "names that make hosts of at most 123 characters together with the base host, without - at the end",
    isBroken: (config) => {
      const base = configBaseHost(config);
      return base !== undefined && !config.shards.every((shard) => isShardHostUsable(shard, base));
    },
  },
  {
    at: ["roles"],
    expected: '["entry"], since entryMode is bootstrap',
    isBroken: (config) => isBootstrap(config) && (config.roles.length > 1 || config.roles[0] !== "entry"),
  },
  {
    at: ["directory"],
    expected: "none, since entryMode is bootstrap: such an entry asks internal.peers",
    isBroken: (config) => isBootstrap(config) && config.directory !== undefined,
  },
  {
    at: ["internal", "peers"],
    expected: "at least one node to ask, since entryMode is bootstrap",
    isBroken: (config) => isBootstrap(config) && (config.internal?.peers ?? []).length === 0,
  },
  {
    at: ["directory"],
    expected: 'exactly one of {"sqlite":true} and {"postgres":{…}}',
    isBroken: (config) =>
      !isBootstrap(config) &&
      (config.directory?.sqlite === undefined) === (config.directory?.postgres === undefined),
  },
  {
    at: ["directory", "postgres"],
    expected: "at most one of urlFile and env",
    isBroken: ({ directory }) =>
      directory?.postgres?.urlFile !== undefined && directory.postgres.env !== undefined,
  },
  {
    at: ["roles"],
    expected: '"shard" among them: a directory of one node is used by that node alone',
    isBroken: ({ directory, roles }) => directory?.sqlite === true && !roles.includes("shard"),
  },
  {
    at: ["nodeSecretFile"],
    expected: "a file with 32 bytes that every node of the residency has, since directory is postgres",
    isBroken: ({ directory, nodeSecretFile }) =>
      directory?.postgres !== undefined && nodeSecretFile === undefined,
  },
  {
    at: ["operator", "host"],
    expected: "a loopback address: the operator listener speaks plain HTTP",
    isBroken: ({ operator }) => !isLoopbackHost(operator.host),
  },
  {
    at: ["internal", "tls"],
    expected: "caFile, certFile and keyFile, since internal.host is no loopback address",
    isBroken: ({ internal }) =>
      internal !== undefined && !isLoopbackHost(internal.host) && internal.tls === undefined,
  },
  {
    at: ["internal", "url"],
    expected: "the address that other nodes dial, since internal.host is every address of this machine",
    isBroken: ({ internal }) =>
      internal !== undefined && ["0.0.0.0", "::"].includes(internal.host) && internal.url === undefined,
  },
];

/** Adds an issue for each broken rule. */
export function checkRules(config: NodeConfig, context: z.RefinementCtx<NodeConfig>): void {
  for (const { at, expected, isBroken } of RULES) {
    if (isBroken(config)) context.addIssue({ code: "custom", path: [...at], message: expected });
  }
}
