// The configuration of `moor serve`: what a file, the environment and flags make together, and how a bad one is refused.

import { writeFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv2020 } from "ajv/dist/2020.js";
import { ConfigError, createNodeRuntime, createSilentLogger } from "@moor/runtime";
import { createTempDir, verifies } from "@moor/testkit";
import { expect, onTestFinished, test } from "vitest";
import { configNodeOptions } from "../src/config/config-node-options.ts";
import { configJsonSchema } from "../src/config/config-schema.ts";
import { SETTINGS } from "../src/config/config-settings.ts";
import { viewConfig } from "../src/config/config-view.ts";
import { loadConfig, type LoadedConfig } from "../src/config/load-config.ts";

const ALONE = { id: "a", shards: ["s1"], data: "state", directory: { sqlite: true } };
const SHARED = { ...ALONE, directory: { postgres: {} }, nodeSecretFile: "node.secret" };
const BOOTSTRAP = {
  id: "edge",
  roles: ["entry"],
  data: "state",
  entryMode: "bootstrap",
  internal: { peers: [{ id: "b", url: "tcp://127.0.0.1:1" }] },
};
const PASSWORD = "hunter2hunter2";
const DATABASE_URL = `postgres://moor:${PASSWORD}@db.example:5432/moor?password=${PASSWORD}`;

interface Given {
  readonly env?: Readonly<Record<string, string>>;
  readonly flags?: Readonly<Record<string, string>>;
}

async function fileWith(content: unknown): Promise<string> {
  const temp = await createTempDir("config");
  onTestFinished(() => temp.remove());
  const file = join(temp.path, "moor.json");
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

async function load(content: unknown, { env = {}, flags = {} }: Given = {}): Promise<LoadedConfig> {
  const file = await fileWith(content);
  return loadConfig(file, { env, flags: new Map(Object.entries(flags)), workingDir: "/work-dir" });
}

/** The message of the refusal, the file called FILE. */
async function refusalOf(content: unknown, given: Given = {}): Promise<string> {
  const file = await fileWith(content);
  try {
    const sources = {
      env: given.env ?? {},
      flags: new Map(Object.entries(given.flags ?? {})),
      workingDir: "/",
    };
    loadConfig(file, sources);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.replaceAll(file, "FILE");
    throw error;
  }
  return "no refusal";
}

test("the least configuration gets every default", async () => {
  const { config, overrides } = await load(ALONE);
  expect(config).toMatchObject({
    id: "a",
    residency: "global",
    roles: ["entry", "shard"],
    public: { host: "127.0.0.1", port: 8080 },
    operator: { host: "127.0.0.1", port: 7070 },
    entryMode: "replica",
    corsOrigins: [],
    logLevel: "info",
    graceMs: 70_000,
  });
  expect(overrides.size).toBe(0);
});

test("paths of the file start at its folder, paths of variables and flags at the working directory", async () => {
  const file = await fileWith({ ...ALONE, nodeSecretFile: "sub/secret" });
  const sources = {
    env: { MOOR_DATA: "from-env" },
    flags: new Map<string, string>(),
    workingDir: "/work-dir",
  };
  const { config } = loadConfig(file, sources);
  expect(config.nodeSecretFile).toBe(file.replace("moor.json", "sub/secret"));
  expect(config.data).toBe("/work-dir/from-env");
});

test("flags win over the environment, the environment over the file, and what won is told", async () => {
  const given = {
    env: { MOOR_PUBLIC_PORT: "1001", MOOR_LOG_LEVEL: "warn", MOOR_RESIDENCY: "", MOOR_SHARDS: "x1, x2" },
    flags: { "--public-port": "1002" },
  };
  const { config, overrides } = await load({ ...ALONE, public: { port: 1000 }, logLevel: "error" }, given);
  expect(config).toMatchObject({ public: { port: 1002 }, logLevel: "warn", residency: "global" });
  expect(config.shards).toEqual(["x1", "x2"]);
  expect(Object.fromEntries(overrides)).toEqual({
    "public.port": "--public-port",
    logLevel: "MOOR_LOG_LEVEL",
    shards: "MOOR_SHARDS",
  });
});

test("every setting but the schema's name can be overridden, by one rule of names", () => {
  const leaves = leavesOf(configJsonSchema()).filter(
    (leaf) => !/^\$schema$|^directory\.(sqlite|postgres\.env)$/.test(leaf),
  );
  expect(SETTINGS.map(({ at }) => at.join(".")).toSorted()).toEqual(leaves.toSorted());
  expect(SETTINGS.find(({ at }) => at.join(".") === "internal.tls.caFile")).toMatchObject({
    variable: "MOOR_INTERNAL_TLS_CA_FILE",
    flag: "--internal-tls-ca-file",
  });
});

test("a shared port and an inherited socket come from file, variable or flag alike", async () => {
  const { config } = await load(ALONE, { env: { MOOR_PUBLIC_REUSE_PORT: "true", MOOR_PUBLIC_FD: "4" } });
  expect(config.public).toMatchObject({ reusePort: true, fd: 4 });
  const options = configNodeOptions(config, surroundings());
  expect(options).toMatchObject({ isPortShared: true, publicFd: 4 });
  const refusal = await refusalOf(ALONE, { flags: { "--public-reuse-port": "yes" } });
  expect(refusal).toBe('--public-reuse-port: got "yes", expected true or false');
});

interface SchemaNode {
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly description?: string;
  readonly default?: unknown;
}

function describedLeaves({ properties = {} }: SchemaNode, prefix = ""): { name: string; node: SchemaNode }[] {
  return Object.entries(properties).flatMap(([key, node]) => {
    const name = prefix + key;
    if (name === "$schema") return [];
    return node.properties === undefined ? [{ name, node }] : describedLeaves(node, `${name}.`);
  });
}

function leavesOf({ properties = {} }: SchemaNode, prefix = ""): string[] {
  return Object.entries(properties).flatMap(([key, node]) =>
    node.properties === undefined ? [prefix + key] : leavesOf(node, `${prefix}${key}.`),
  );
}

test.each<[string, unknown, Given, string]>([
  [
    "unknown key",
    { ...ALONE, publc: {} },
    {},
    "FILE: publc: got an unknown key, expected one of id, residency",
  ],
  [
    "unknown inner key",
    { ...ALONE, public: { prt: 1 } },
    {},
    "FILE: public.prt: got an unknown key, expected one of host, port, reusePort, fd, url, tls",
  ],
  ["misspelt required key", { ...ALONE, id: undefined, ID: "a" }, {}, "FILE: ID: got an unknown key"],
  ["missing id", { ...ALONE, id: undefined }, {}, "FILE: id: got nothing, expected 1–63 characters"],
  ["bad id", { ...ALONE, id: "A" }, {}, 'FILE: id: got "A", expected 1–63 characters'],
  [
    "bad port",
    { ...ALONE, public: { port: 70_000 } },
    {},
    "FILE: public.port: got 70000, expected an integer from 0",
  ],
  [
    "port as text",
    { ...ALONE, public: { port: "80" } },
    {},
    'FILE: public.port: got "80", expected an integer',
  ],
  [
    "port of the environment",
    ALONE,
    { env: { MOOR_PUBLIC_PORT: "tcp://1" } },
    'MOOR_PUBLIC_PORT: got "tcp://1"',
  ],
  [
    "port of a flag",
    ALONE,
    { flags: { "--public-port": "-1" } },
    "--public-port: got -1, expected an integer",
  ],
  [
    "role of the environment",
    ALONE,
    { env: { MOOR_ROLES: "entry,shad" } },
    'MOOR_ROLES: got "shad", expected one of',
  ],
  ["public a number", { ...ALONE, public: 1 }, {}, "FILE: public: got 1, expected an object"],
  ["shards a text", { ...ALONE, shards: "s1" }, {}, 'FILE: shards: got "s1", expected a list'],
  [
    "shard twice",
    { ...ALONE, shards: ["s1", "s1"] },
    {},
    'FILE: shards: got ["s1","s1"], expected each shard once',
  ],
  ["no shard", { ...ALONE, shards: [] }, {}, "FILE: shards: got [], expected at least one shard"],
  ["shards of an entry", { ...SHARED, roles: ["entry"] }, {}, 'expected none, since roles lacks "shard"'],
  [
    "edge on SQLite",
    { ...ALONE, roles: ["entry"], shards: [] },
    {},
    'FILE: roles: got ["entry"], expected "shard"',
  ],
  [
    "no directory at all",
    { ...ALONE, directory: undefined },
    {},
    "FILE: directory: got nothing, expected exactly one",
  ],
  [
    "shards at a bootstrap entry",
    { ...BOOTSTRAP, roles: ["entry", "shard"], shards: ["s"] },
    {},
    'expected ["entry"]',
  ],
  [
    "a directory at a bootstrap entry",
    { ...BOOTSTRAP, directory: { sqlite: true } },
    {},
    "FILE: directory: got a value",
  ],
  [
    "nobody to ask",
    { ...BOOTSTRAP, internal: {} },
    {},
    "FILE: internal.peers: got nothing, expected at least one node",
  ],
  [
    "a peer of the environment",
    BOOTSTRAP,
    { env: { MOOR_INTERNAL_PEERS: "b" } },
    'MOOR_INTERNAL_PEERS: got ""',
  ],
  [
    "no directory",
    { ...ALONE, directory: {} },
    {},
    "FILE: directory: got a value of type object, expected exactly one",
  ],
  [
    "sqlite false",
    { ...ALONE, directory: { sqlite: false } },
    {},
    "directory.sqlite: got a value of type boolean",
  ],
  ["no node secret", { ...SHARED, nodeSecretFile: undefined }, {}, "FILE: nodeSecretFile: got nothing"],
  ["operator abroad", { ...ALONE, operator: { host: "0.0.0.0" } }, {}, 'FILE: operator.host: got "0.0.0.0"'],
  ["peers in clear", { ...ALONE, internal: { host: "10.0.0.1" } }, {}, "FILE: internal.tls: got nothing"],
  [
    "half of TLS",
    { ...ALONE, public: { tls: { certFile: "c" } } },
    {},
    "FILE: public.tls.keyFile: got nothing",
  ],
  [
    "path in the URL",
    { ...ALONE, public: { url: "https://x/y" } },
    {},
    'FILE: public.url: got "https://x/y"',
  ],
  [
    "a shard domain with an empty label",
    { ...ALONE, shardDomain: "moor..example" },
    {},
    'FILE: shardDomain: got "moor..example"',
  ],
  [
    "a public URL whose host ends with a dot",
    { ...ALONE, public: { url: "https://moor.example." } },
    {},
    'FILE: public.url: got "https://moor.example."',
  ],
  [
    "a shard whose host no client may be sent to",
    { ...ALONE, shards: ["s-"] },
    {},
    'FILE: shards: got ["s-"], expected names that make hosts',
  ],
  [
    "a shard whose host is too long for clients",
    { ...ALONE, shards: ["s".repeat(60)], shardDomain: `${"x".repeat(63)}.example` },
    {},
    "FILE: shards: got",
  ],
  ["no object", [], {}, "FILE: got JSON that is no object, expected a JSON object"],
  ["no JSON", `{"id": "${PASSWORD}" x`, {}, "FILE: got text that is no JSON"],
])("%s is refused by name, with what was got and what is expected", async (_what, content, given, said) => {
  const message = await refusalOf(content, given);
  expect(message).toContain(said);
  expect(message).not.toContain(PASSWORD);
});

test.each([
  { postgres: DATABASE_URL },
  { postgres: { url: DATABASE_URL } },
  DATABASE_URL,
  { sqlite: DATABASE_URL },
])("a database URL typed into the configuration is refused and not repeated (%#)", async (directory) => {
  const message = await refusalOf({ ...ALONE, directory });
  expect(message).toMatch(/^FILE: directory/);
  expect(message).not.toContain(PASSWORD);
});

test("a file that is not there is named", () => {
  const sources = { env: {}, flags: new Map<string, string>(), workingDir: "/" };
  expect(() => loadConfig("/nowhere/moor.json", sources)).toThrow(
    "--config: got /nowhere/moor.json (ENOENT)",
  );
});

test("MOOR_DATABASE_URL stands for the directory, whatever the file says, and is shown without its password", async () => {
  const env = { MOOR_DATABASE_URL: DATABASE_URL };
  const loaded = await load({ ...SHARED, directory: { sqlite: true } }, { env });
  const view = viewConfig(loaded, env);
  expect(view.config["directory"]).toEqual({ postgres: { env: "MOOR_DATABASE_URL" } });
  expect(view.overrides).toEqual({ directory: "MOOR_DATABASE_URL" });
  expect(view.databaseUrl).toBe("postgres://moor:***@db.example:5432/moor");
  expect(JSON.stringify(view)).not.toContain(PASSWORD);
});

const surroundings = (env: Readonly<Record<string, string>> = {}) => ({
  env,
  version: "1.2.3",
  runtime: createNodeRuntime(),
  logger: createSilentLogger(),
});

test("a configuration becomes a node's options", async () => {
  const secret = await fileWith(Buffer.alloc(32, 0xab).toString("base64url"));
  const { config } = await load({
    ...SHARED,
    shards: ["s1", "s2"],
    nodeSecretFile: secret,
    public: { host: "0.0.0.0", port: 1, url: "https://moor.example" },
  });
  const options = configNodeOptions(config, surroundings({ MOOR_DATABASE_URL: DATABASE_URL }));
  expect(options).toMatchObject({
    node: {
      id: "a",
      roles: ["entry", "shard"],
      entryMode: "replica",
      shards: [
        { id: "s1", publicHost: "s1.moor.example" },
        { id: "s2", publicHost: "s2.moor.example" },
      ],
    },
    version: "1.2.3",
    baseHost: "moor.example",
    residency: "global",
    internal: { host: "127.0.0.1", port: 0 },
    host: "0.0.0.0",
    port: 1,
    publicUrl: "https://moor.example",
  });
  expect(options.nodeSecret).toEqual(new Uint8Array(32).fill(0xab));
  expect(options.directory.kind === "postgres" && options.directory.url.reveal()).toBe(DATABASE_URL);
  expect(JSON.stringify(options.directory)).not.toContain(PASSWORD);
});

test("a bootstrap entry has peers and no directory, whatever database the environment names", async () => {
  const env = { MOOR_DATABASE_URL: DATABASE_URL, MOOR_INTERNAL_PEERS: "b=tcp://[::1]:1, c=tcp://h:2" };
  const { config } = await load(BOOTSTRAP, { env });
  const options = configNodeOptions(config, surroundings(env));
  expect([options.directory, options.node.entryMode]).toEqual([{ kind: "none" }, "bootstrap"]);
  expect(options.internal?.peers).toEqual([
    { id: "b", internalUrl: "tcp://[::1]:1" },
    { id: "c", internalUrl: "tcp://h:2" },
  ]);
});

test("a node alone has no peers, and its shards are hosts of this machine", async () => {
  const options = configNodeOptions((await load(ALONE)).config, surroundings());
  expect(options.internal).toBeUndefined();
  expect(options.nodeSecret).toBeUndefined();
  expect(options.node.shards).toEqual([{ id: "s1", publicHost: "s1.moor.localhost" }]);
});

verifies(
  "L4",
  "the base host is the shard domain, else the public URL's host, an address too, else this machine's",
  async () => {
    const baseOf = async (more: object) => {
      const { baseHost, node } = configNodeOptions(
        (await load({ ...ALONE, ...more })).config,
        surroundings(),
      );
      return [baseHost, node.shards[0]?.publicHost];
    };
    expect(await baseOf({})).toEqual(["moor.localhost", "s1.moor.localhost"]);
    const url = "https://moor.example:8443";
    expect(await baseOf({ public: { url } })).toEqual(["moor.example", "s1.moor.example"]);
    const beside = { public: { url }, shardDomain: "shards.example" };
    expect(await baseOf(beside)).toEqual(["shards.example", "s1.shards.example"]);
    expect((await baseOf({ public: { url: "http://10.0.0.5:8080" } }))[0]).toBe("10.0.0.5");
  },
);

test("secrets and certificates that cannot be used are refused before anything starts, without a part of them", async () => {
  const good = await fileWith(Buffer.alloc(32, 7).toString("base64url"));
  const bad = await fileWith(PASSWORD);
  const optionsOf = async (content: object, env: Readonly<Record<string, string>> = {}) =>
    configNodeOptions((await load(content)).config, surroundings(env));
  const shared = { ...SHARED, nodeSecretFile: good };
  await expect(optionsOf(shared)).rejects.toThrow(
    "MOOR_DATABASE_URL: got nothing, expected a postgres:// URL",
  );
  await expect(optionsOf(shared, { MOOR_DATABASE_URL: PASSWORD })).rejects.toThrow(
    "MOOR_DATABASE_URL: got something else (not shown)",
  );
  await expect(
    optionsOf({ ...SHARED, nodeSecretFile: bad }, { MOOR_DATABASE_URL: DATABASE_URL }),
  ).rejects.toThrow(`nodeSecretFile: got ${bad}, which holds no node secret`);
  const tls = { certFile: good, keyFile: "absent.pem" };
  await expect(optionsOf({ ...ALONE, public: { tls } })).rejects.toThrow(
    /^public\.tls\.keyFile: got .*\(ENOENT\)/,
  );
});

const readRepository = (path: string) =>
  readFileSync(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), "utf8");

test("the manual has a row for every setting, with its variable, default and meaning", () => {
  const manual = readRepository("docs/operations/configuration.md");
  const rows = describedLeaves(configJsonSchema()).map(({ name, node }) => {
    const variable = SETTINGS.find(({ at }) => at.join(".") === name)?.variable;
    const code = (text: string | undefined) => (text === undefined ? "" : `\`${text}\``);
    const standard = node.default === undefined ? undefined : JSON.stringify(node.default);
    return `| ${code(name)} | ${code(variable)} | ${code(standard)} | ${node.description ?? "NOTHING"} |`;
  });
  expect(manual.split("\n").filter((line) => line.startsWith("| `"))).toEqual(rows);
});

test("the manual's examples are configurations that can be used", async () => {
  const manual = readRepository("docs/operations/serve-several-nodes.md");
  const examples = [...manual.matchAll(/```json\n([^]*?)```/g)].map(([, text = ""]) => text);
  expect(examples.length).toBe(2);
  for (const example of examples) await expect(load(example)).resolves.toBeDefined();
});

test("the published schema is the one that is enforced, and takes the examples", () => {
  const path = fileURLToPath(new URL("../moor.schema.json", import.meta.url));
  const published: unknown = JSON.parse(readFileSync(path, "utf8"));
  expect(published, "write it anew: moor config schema > packages/server/moor.schema.json").toEqual(
    configJsonSchema(),
  );
  const isValid = new Ajv2020({ allErrors: true }).compile(configJsonSchema());
  expect([isValid(ALONE), isValid(SHARED), isValid({ ...ALONE, publc: 1 })]).toEqual([true, true, false]);
});
