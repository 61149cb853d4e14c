// The configuration of `moor serve` as a schema: the one definition that loading, `moor config` and the published JSON
// Schema (packages/server/moor.schema.json) share.
//
// I1  Every object is strict: an unknown key is an error, never ignored.
// I2  A message of the schema is what was expected; what was got is added by config-refusal.ts.
// I3  No setting holds a secret: secrets come from files or environment variables that a setting names.

import { LOG_LEVELS } from "@moor/runtime";
import { z } from "zod";
import { NODE_ROLES } from "../directory/records.ts";
import { parseProxies } from "../entry/client-address.ts";
import { ENTRY_MODES, SHARDS_PER_NODE_MAX } from "../node-options.ts";
import { CLOSE_GRACE_MS } from "../server-limits.ts";
import { checkRules } from "./config-rules.ts";

/** Longest grace a node may be given, milliseconds: the longest command (T7) and a minute. */
const GRACE_MS_MAX = 960_000;

const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;
const NAME_EXPECTED = "1–63 characters of a–z, 0–9 and -, not starting with -";

const text = (expected: string, pattern: RegExp) => z.string(expected).regex(pattern, expected);
const choice = <const Values extends readonly string[]>(values: Values) =>
  z.enum(values, `one of ${values.join(", ")}`);
const integer = (min: number, max: number) => {
  const expected = `an integer from ${min} to ${max}`;
  return z.int(expected).min(min, expected).max(max, expected);
};
const host = () => text("an address or host name", /^[0-9A-Za-z.:_-]{1,253}$/);
const path = () => text("a path", /^[^\0]{1,4096}$/);
const listOf = <Item extends z.ZodType>(item: Item) => z.array(item, "a list");
const group = <Shape extends z.core.$ZodLooseShape>(shape: Shape) => z.strictObject(shape, "an object");

const tcpUrl = () => text("tcp://HOST:PORT", /^tcp:\/\/(\[[0-9a-fA-F:.]+\]|[0-9A-Za-z._-]+):[0-9]{1,5}$/);

const PROXY_EXPECTED = "an address or a network such as 10.0.0.0/8";

const publicListener = group({
  host: host().default("127.0.0.1").describe("Address that agents and callers reach."),
  port: integer(0, 65_535).default(8080).describe("0 takes any free one."),
  reusePort: z
    .boolean("true or false")
    .default(false)
    .describe("Let the next process of this node listen at the port before this one leaves it."),
  fd: integer(3, 1_023)
    .optional()
    .describe("Number of an inherited listening socket, instead of host and port."),
  url: text("an http:// or https:// origin without a path", /^https?:\/\/[^/?#@\s]+$/)
    .optional()
    .describe("Origin that clients use, where it is not the listener's own, e.g. behind a proxy."),
  tls: group({
    certFile: path().describe("Certificate, PEM, with its chain."),
    keyFile: path().describe("Private key, PEM."),
  })
    .optional()
    .describe("PEM files; without them the listener speaks plain HTTP."),
  trustedProxies: listOf(
    z.string(PROXY_EXPECTED).refine((text) => parseProxies([text]) !== undefined, PROXY_EXPECTED),
  )
    .default([])
    .describe("Proxies whose X-Forwarded-For tells a client's address: addresses or networks."),
});

const operatorListener = group({
  host: host().default("127.0.0.1").describe("A loopback address."),
  port: integer(0, 65_535).default(7070).describe("0 takes any free one."),
});

const internalListener = group({
  host: host().default("127.0.0.1").describe("Address that other nodes reach."),
  port: integer(0, 65_535).default(0).describe("0 takes any free one."),
  url: tcpUrl().optional().describe("What other nodes dial, where it is not the bound address."),
  tls: group({
    caFile: path().describe("Authority that signs the nodes, PEM; several may stand in one file."),
    certFile: path().describe("Certificate that names this node, PEM."),
    keyFile: path().describe("Private key, PEM."),
  })
    .optional()
    .describe("Mutual TLS between nodes; needed off loopback."),
  peers: listOf(group({ id: text(NAME_EXPECTED, NAME), url: tcpUrl() }))
    .default([])
    .describe("Nodes the directory does not tell of: at a bootstrap entry those to ask, elsewhere its like."),
});

const directory = group({
  sqlite: z.literal(true, "true").optional().describe("In the data directory: one node alone."),
  postgres: group({
    urlFile: path().optional().describe("File with the postgres:// URL."),
    env: text("the name of an environment variable", /^[A-Za-z_][A-Za-z0-9_]{0,127}$/)
      .optional()
      .describe("Variable with the postgres:// URL. Default MOOR_DATABASE_URL."),
  })
    .optional()
    .describe("Shared by all nodes of a residency."),
});

const fields = group({
  $schema: z.string("a URL or path").optional().describe("For editors."),
  id: text(NAME_EXPECTED, NAME).describe("Name of this node: unique, the same at each start."),
  residency: text("1–32 characters of a–z, 0–9 and -", /^[a-z0-9-]{1,32}$/)
    .default("global")
    .describe("An independent deployment; nothing crosses to another one."),
  roles: listOf(choice(NODE_ROLES))
    .min(1, "at least one role")
    .default(["entry", "shard"])
    .describe("entry: holds clients' connections; shard: owns tunnels."),
  shards: listOf(text(NAME_EXPECTED, NAME))
    .max(SHARDS_PER_NODE_MAX, `at most ${SHARDS_PER_NODE_MAX} shards`)
    .default([])
    .describe("Names of the shards this node runs, unique in the residency."),
  shardDomain: text("a host name in lower case", /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/)
    .optional()
    .describe(
      "Base host that boxes and apps are configured with; a shard's own host is SHARD.shardDomain. Default: the host of public.url, else moor.localhost.",
    ),
  public: publicListener.prefault({}).describe("Listener for agents and callers."),
  operator: operatorListener.prefault({}).describe("Listener for commands, metrics and health."),
  internal: internalListener.optional().describe("Listener for other nodes."),
  data: path().describe("Data directory; made with mode 0700 if absent."),
  directory: directory
    .optional()
    .describe("Where placements, tunnels and keys are durable: one of the two; none at a bootstrap entry."),
  nodeSecretFile: path()
    .optional()
    .describe("File with 32 bytes that encrypt token keys: the same at every node; needed with postgres."),
  entryMode: choice(ENTRY_MODES)
    .default("replica")
    .describe("replica: the entry knows the directory; bootstrap: it knows only its peers."),
  corsOrigins: listOf(text("an http:// or https:// origin", /^https?:\/\/[^/?#@\s]+$/))
    .default([])
    .describe("Origins whose pages may call connectors."),
  logLevel: choice(LOG_LEVELS).default("info").describe("Least severe log line."),
  graceMs: integer(0, GRACE_MS_MAX)
    .default(CLOSE_GRACE_MS)
    .describe("Milliseconds that held calls get after SIGTERM."),
});

/** The schema of a configuration with its defaults and the rules between its settings. */
export const CONFIG_SCHEMA = fields.superRefine(checkRules);

/** A configuration that can be used: every default filled in. */
export type NodeConfig = z.output<typeof fields>;

/** The published JSON Schema: what a file may say before the environment and flags are added. */
export function configJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(fields, { io: "input" });
  return { title: "Configuration of moor serve", ...schema };
}

/** The keys an object of the configuration may have; undefined when `at` is no object of it. */
export function keysAt(at: readonly PropertyKey[]): readonly string[] | undefined {
  let schema: JsonSchemaNode | undefined = configJsonSchema();
  for (const key of at) schema = schema?.properties?.[String(key)];
  return schema?.properties === undefined ? undefined : Object.keys(schema.properties);
}

interface JsonSchemaNode {
  readonly properties?: Readonly<Record<string, JsonSchemaNode>>;
}
