// A node that cannot start leaves nothing behind: neither a lock nor a thread that would keep its process alive.

import { join } from "node:path";
import { createNodeRuntime, createSilentLogger } from "@moor/runtime";
import { createTempDir, type TempDir } from "@moor/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { BASE_HOST_DEFAULT } from "../src/base-host.ts";
import { startNode } from "../src/node.ts";
import type { NodeOptions } from "../src/node-options.ts";

let temp: TempDir;

beforeEach(async () => {
  temp = await createTempDir("node-start");
});
afterEach(() => temp.remove());

test("a node whose peer certificate is missing lets go of its directory", async () => {
  const options: NodeOptions = {
    node: { id: "n1", roles: ["entry"], shards: [], entryMode: "replica" },
    baseHost: BASE_HOST_DEFAULT,
    directory: { kind: "sqlite" },
    dataDir: join(temp.path, "data"),
    host: "127.0.0.1",
    port: 0,
    operatorHost: "127.0.0.1",
    operatorPort: 0,
    runtime: createNodeRuntime(),
    logger: createSilentLogger(),
  };
  const missing = join(temp.path, "missing");
  const tls = { caFile: missing, certFile: missing, keyFile: missing };
  const refused = startNode({ ...options, internal: { host: "127.0.0.1", port: 0, tls } });
  await expect(refused).rejects.toMatchObject({ name: "ConfigError", option: "internal.tls" });
  const node = await startNode(options);
  await node.close({ graceMs: 0 });
});
