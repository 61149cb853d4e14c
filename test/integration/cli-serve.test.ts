// `moor serve` as a process: what it prints, how it ends, what it refuses before anything is opened.

import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  createTempDir,
  createTunnel,
  claimPort,
  isPortTaken,
  runMoor,
  startMoor,
  until,
  verifies,
  type RunningProcess,
  type TempDir,
} from "@moor/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";

let temp: TempDir;
beforeEach(async () => {
  temp = await createTempDir("cli-serve");
});
afterEach(() => temp.remove());

interface Served {
  readonly process: RunningProcess;
  readonly endpoint: string;
  readonly operator: string;
  readonly dataDir: string;
}

async function configFile(settings: object = {}): Promise<string> {
  const file = join(temp.path, "moor.json");
  const config = {
    id: "n1",
    shards: ["a", "b"],
    data: "data",
    directory: { sqlite: true },
    public: { port: 0 },
    operator: { port: 0 },
    ...settings,
  };
  await writeFile(file, JSON.stringify(config));
  return file;
}

async function serve(settings: object = {}, args: readonly string[] = []): Promise<Served> {
  const file = await configFile(settings);
  const process = await startMoor(["serve", "--config", file, "--json", ...args]);
  const ready: unknown = JSON.parse(await process.stdout.waitFor('"ready"'));
  const { endpoint, operator, data } = ready as Record<"endpoint" | "operator" | "data", string>;
  expect(ready).toEqual({ event: "ready", node: "n1", endpoint, operator, data });
  return { process, endpoint, operator, dataDir: data };
}

test("with --json it prints one ready line with its node, and on SIGTERM ends with 0 and frees its ports", async () => {
  const { process, endpoint, operator, dataDir } = await serve();
  expect(dataDir).toBe(join(temp.path, "data"));
  for (const url of [endpoint, operator]) expect((await fetch(`${url}/readyz`)).status).toBe(200);
  const shards = await runMoor(["shards", "--json", "--data", dataDir]);
  const { items } = JSON.parse(shards.stdout) as { items: Record<string, unknown>[] };
  expect(items.map(({ id, node, state, late }) => [id, node, state, late])).toEqual([
    ["a", "n1", "live", false],
    ["b", "n1", "live", false],
  ]);
  expect(items.map(({ publicHost }) => publicHost)).toEqual(["a.moor.localhost", "b.moor.localhost"]);
  expect(await process.stop()).toEqual({ kind: "exited", code: 0 });
  await process.expectGroupEmpty();
  expect(process.stdout.lines).toHaveLength(1);
  for (const url of [endpoint, operator]) expect(await isPortTaken(Number(new URL(url).port))).toBe(false);
});

test("without --json it says in words which node it is, and its flags win over its file", async () => {
  const file = await configFile({ logLevel: "info" });
  const process = await startMoor(["serve", "--config", file, "--id", "n2", "--log-level", "silent"]);
  await process.stdout.waitFor(/operator listener/);
  expect(process.stdout.text()).toMatch(/^Node n2 of residency global serves at http:\/\/127\.0\.0\.1:\d+$/m);
  expect(process.stderr.text()).toBe("");
  await process.stop();
});

test("a bad configuration ends with 2, names what is wrong, and leaves nothing behind", async () => {
  const file = await configFile({ public: { prt: 1 } });
  const run = await runMoor(["serve", "--config", file]);
  expect([run.code, run.stdout]).toEqual([2, ""]);
  expect(run.stderr.trimEnd()).toBe(
    `moor: ${file}: public.prt: got an unknown key, expected one of host, port, reusePort, fd, url, tls, trustedProxies`,
  );
  expect(existsSync(join(temp.path, "data"))).toBe(false);
});

test("a port that is taken is named as the setting it is, and the data directory is free again", async () => {
  const { process, endpoint } = await serve();
  const { port } = new URL(endpoint);
  const file = await configFile({ data: "other", public: { port: Number(port) } });
  const run = await runMoor(["serve", "--config", file]);
  expect([run.code, run.stdout]).toEqual([2, ""]);
  expect(run.stderr).toContain(`public.port: got 127.0.0.1:${port} (EADDRINUSE)`);
  await process.stop();
  const again = await serve({ data: "other" });
  await again.process.stop();
});

test("a database that is not there ends the start by name and without its password", async () => {
  const port = await claimPort();
  const secret = join(temp.path, "node.secret");
  expect((await runMoor(["config", "secret", secret])).code).toBe(0);
  const file = await configFile({ directory: { postgres: {} }, nodeSecretFile: secret });
  const run = await runMoor(["serve", "--config", file], {
    env: { MOOR_DATABASE_URL: `postgres://moor:hunter2hunter2@127.0.0.1:${port}/moor` },
  });
  expect([run.code, run.stdout]).toEqual([3, ""]);
  expect(run.stderr).toContain("cannot open the directory");
  expect(run.stderr).not.toContain("hunter2hunter2");
});

test("another residency than the directory's own is refused with 2", async () => {
  await (await serve()).process.stop();
  const file = await configFile({ residency: "eu" });
  const run = await runMoor(["serve", "--config", file]);
  expect([run.code, run.stderr]).toEqual([
    2,
    expect.stringContaining('residency: got "eu" for a directory of "global"'),
  ]);
});

verifies(
  "T4",
  "on SIGTERM a waiting poll ends with 204 and Connection: close, and readiness is off",
  async () => {
    const { process, endpoint, dataDir } = await serve();
    const tunnel = await createTunnel({ dataDir });
    const poll = fetch(`${endpoint}/v1/tunnels/${tunnel.id}/poll?timeout_ms=25000`, {
      headers: { Authorization: `Bearer ${tunnel.agentKey}` },
    });
    await untilPolling(dataDir);
    process.signal("SIGTERM");
    const answer = await poll;
    expect([answer.status, answer.headers.get("connection")]).toEqual([204, "close"]);
    expect(await process.ended).toEqual({ kind: "exited", code: 0 });
  },
);

test("a second signal ends it soon with 1, whatever it holds; its callers are told that the outcome is unknown", async () => {
  const { process, endpoint, dataDir } = await serve();
  const tunnel = await createTunnel({ dataDir });
  const agent = { Authorization: `Bearer ${tunnel.agentKey}` };
  const poll = fetch(`${endpoint}/v1/tunnels/${tunnel.id}/poll?timeout_ms=25000`, { headers: agent });
  await untilPolling(dataDir);
  const call = fetch(tunnel.connectorUrl, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${String(tunnel.connectorKey)}`,
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
  }).catch(() => undefined);
  expect((await poll).status).toBe(200);
  process.signal("SIGTERM");
  await process.stderr.waitFor('"node-leaving"');
  process.signal("SIGTERM");
  expect(await process.ended).toEqual({ kind: "exited", code: 1 });
  expect((await call)?.status).toBe(502);
});

/** Waits until the node's metrics show one waiting poll. */
async function untilPolling(dataDir: string): Promise<void> {
  const { url, token } = JSON.parse(readFileSync(join(dataDir, "operator.json"), "utf8")) as Record<
    "url" | "token",
    string
  >;
  await until(async () => {
    const metrics = await fetch(`${url}/metrics`, { headers: { Authorization: `Bearer ${token}` } });
    return /^moor_polls_waiting 1$/m.test(await metrics.text());
  }, "a waiting poll");
}
