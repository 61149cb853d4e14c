// `moor tunnel …` and `moor key …` as processes against a real node: answers, messages, exit codes.

import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  createTempDir,
  createTunnel,
  runMoor,
  startMoorDev,
  verifies,
  type MoorDev,
  type MoorRun,
  type TempDir,
} from "@moor/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { postTunnel } from "./cli-kit.ts";

let dev: MoorDev;
let temp: TempDir;

beforeAll(async () => {
  [dev, temp] = await Promise.all([startMoorDev(), createTempDir("cli-files")]);
});
afterAll(async () => {
  await dev.stop();
  await temp.remove();
});

const UNKNOWN = `tunnel_${"0".repeat(32)}`;
const at = () => ["--data", dev.dataDir];
const moor = (...args: string[]): Promise<MoorRun> => runMoor([...args, ...at()]);

async function json(...args: string[]): Promise<Record<string, unknown>> {
  const run = await moor(...args, "--json");
  expect([run.code, run.stderr]).toEqual([0, ""]);
  return JSON.parse(run.stdout) as Record<string, unknown>;
}

/** Whether a key opens an agent route of a tunnel. */
async function opens(tunnel: string, key: unknown): Promise<number> {
  const headers = { Authorization: `Bearer ${String(key)}` };
  return (await fetch(`${dev.endpoint}/v1/tunnels/${tunnel}`, { headers })).status;
}

verifies(
  "T1",
  "a tunnel created by command works at once, and its other verbs do what they say",
  async () => {
    const created = await json("tunnel", "create", "--name", "notes", "--deadline", "2m");
    const { id, agentKey, connectorKey, connectorUrl, ...rest } = created;
    expect(id).toMatch(/^tunnel_[0-9a-f]{32}$/);
    expect([agentKey, connectorKey].map(String)).toEqual([
      expect.stringMatching(/^moor_agent_/),
      expect.stringMatching(/^moor_connector_/),
    ]);
    expect(connectorUrl).toBe(`${dev.endpoint}/v1/mcp/${String(id)}`);
    expect(await opens(String(id), agentKey)).toBe(200);
    expect(await json("tunnel", "show", String(id))).toEqual({ id, connectorUrl, ...rest });
    expect(await json("tunnel", "update", String(id), "--name", "other")).toMatchObject({
      id,
      name: "other",
      deadline: "120s",
    });
    const list = await json("tunnel", "list");
    expect(Object.keys(list)).toEqual(["items", "next"]);
    expect(list["items"]).toContainEqual(expect.objectContaining({ id, name: "other" }));
    const dryRun = await json("tunnel", "delete", String(id), "--dry-run");
    expect(dryRun).toMatchObject({ id, deleted: false, dryRun: true });
    expect(dryRun["keys"]).toHaveLength(2);
    expect(await opens(String(id), agentKey)).toBe(200);
    expect(await json("tunnel", "delete", String(id))).toMatchObject({ id, deleted: true });
    expect(await opens(String(id), agentKey)).toBe(401);
  },
);

test("access other than key comes without a connector key", async () => {
  expect(await json("tunnel", "create", "--access", "open")).toMatchObject({
    access: "open",
    connectorKey: null,
  });
});

verifies("T2", "keys are created and revoked by command, with effect at once", async () => {
  const tunnel = await createTunnel(dev);
  const made = await json("key", "create", "--tunnel", tunnel.id, "--kind", "agent", "--label", "spare");
  expect(made).toMatchObject({ kind: "agent", tunnel: tunnel.id, label: "spare" });
  expect(await opens(tunnel.id, made["key"])).toBe(200);
  const connector = await json("key", "create", "--tunnel", tunnel.id, "--kind", "connector");
  expect(await opens(tunnel.id, connector["key"])).toBe(401);
  const list = await json("key", "list", "--tunnel", tunnel.id);
  expect(list["next"]).toBeNull();
  expect(list["items"]).toHaveLength(4);
  expect(JSON.stringify(list)).not.toContain(String(made["key"]));
  expect(await json("key", "revoke", String(made["id"]), "--dry-run")).toMatchObject({ revoked: false });
  expect(await opens(tunnel.id, made["key"])).toBe(200);
  expect(await json("key", "revoke", String(made["id"]))).toMatchObject({ revoked: true });
  expect(await opens(tunnel.id, made["key"])).toBe(401);
  expect(await opens(tunnel.id, tunnel.agentKey)).toBe(200);
});

test("keys go to new files of the owner's only, and are then not printed", async () => {
  const agentFile = join(temp.path, "agent.key");
  const tunnel = await json("tunnel", "create", "--agent-key-out", agentFile);
  expect(tunnel).toMatchObject({ agentKey: null, agentKeyFile: agentFile });
  expect(statSync(agentFile).mode & 0o777).toBe(0o600);
  expect(await opens(String(tunnel["id"]), readFileSync(agentFile, "utf8").trim())).toBe(200);
  const again = await moor("tunnel", "create", "--agent-key-out", agentFile);
  expect([again.code, again.stdout]).toEqual([2, ""]);
  const keyFile = join(temp.path, "spare.key");
  const run = await moor(
    "key",
    "create",
    "--tunnel",
    String(tunnel["id"]),
    "--kind",
    "agent",
    "--out",
    keyFile,
  );
  expect(run.code).toBe(0);
  const key = readFileSync(keyFile, "utf8").trim();
  expect(await opens(String(tunnel["id"]), key)).toBe(200);
  expect(run.stdout + run.stderr).not.toContain(key);
  const refusedFile = join(temp.path, "refused.key");
  expect(
    (await moor("key", "create", "--tunnel", UNKNOWN, "--kind", "agent", "--out", refusedFile)).code,
  ).toBe(1);
  expect(existsSync(refusedFile)).toBe(false);
});

test("without --json people get tables and sentences, the keys once", async () => {
  const created = await moor("tunnel", "create", "--name", "for people");
  const id = /tunnel_[0-9a-f]{32}/.exec(created.stdout)?.[0] ?? "";
  expect(created.stdout).toMatch(/^agent key {2,}moor_agent_\S+$/m);
  expect(created.stderr).toContain(`agent --endpoint ${dev.endpoint} --tunnel ${id}`);
  expect(created.stderr).not.toContain("moor_agent_");
  const list = await moor("tunnel", "list");
  expect(list.stdout).toMatch(/^ID +NAME +ACCESS +DEADLINE +SEEN$/m);
  expect(list.stdout).toMatch(new RegExp(`^${id} +for people +key +55s +no$`, "m"));
  const deleted = await moor("tunnel", "delete", id);
  expect(deleted.stdout).toContain(`deleted ${id} (for people)`);
  expect(deleted.stderr).toContain("cannot be undone");
});

test("--limit and --after give pages", async () => {
  await Promise.all([postTunnel(dev), postTunnel(dev), postTunnel(dev)]);
  const first = await json("tunnel", "list", "--limit", "2");
  expect(first["items"]).toHaveLength(2);
  const second = await json("tunnel", "list", "--limit", "2", "--after", String(first["next"]));
  expect(second["items"]).not.toContainEqual((first["items"] as unknown[])[1]);
});

test("--operator with its token in the environment reaches the same node", async () => {
  const run = await runMoor(["tunnel", "list", "--json", "--operator", dev.operatorUrl], {
    env: { MOOR_OPERATOR_TOKEN: dev.operatorToken },
  });
  expect(run.code).toBe(0);
  const wrong = await runMoor(["tunnel", "list", "--operator", dev.operatorUrl], {
    env: { MOOR_OPERATOR_TOKEN: "wrong" },
  });
  expect([wrong.code, wrong.stdout]).toEqual([1, ""]);
  expect(wrong.stderr).toContain("refused (unauthorized)");
});

test("a refusal of the service is exit code 1 with its code and message", async () => {
  const run = await moor("tunnel", "show", UNKNOWN);
  expect([run.code, run.stdout]).toEqual([1, ""]);
  expect(run.stderr).toContain("refused (tunnel_not_found)");
  expect((await moor("tunnel", "create", "--deadline", "16m")).stderr).toContain(
    "refused (invalid_request): deadline",
  );
});

test("wrong usage is exit code 2, with nothing on stdout", async () => {
  const run = await moor("tunnel", "lst");
  expect([run.code, run.stdout]).toEqual([2, ""]);
  expect(run.stderr).toContain("Did you mean list?");
});

test("an unreachable node is exit code 3, with its address and what to check", async () => {
  const gone = await runMoor(["tunnel", "list", "--operator", "http://127.0.0.1:59"], {
    env: { MOOR_OPERATOR_TOKEN: "t" },
  });
  expect([gone.code, gone.stdout]).toEqual([3, ""]);
  expect(gone.stderr).toContain("cannot reach the operator listener at http://127.0.0.1:59 (ECONNREFUSED)");
  const nowhere = await runMoor(["tunnel", "list", "--data", join(temp.path, "nowhere")]);
  expect([nowhere.code, nowhere.stdout]).toEqual([3, ""]);
  expect(nowhere.stderr).toContain("nowhere/operator.json (ENOENT)");
});

test("--version and --help are answers on stdout with exit code 0", async () => {
  const version = await runMoor(["--version"]);
  expect([version.code, version.stderr]).toEqual([0, ""]);
  expect(version.stdout).toMatch(/^\d+\.\d+\.\d+$/);
  const help = await runMoor(["tunnel", "create", "--help"]);
  expect([help.code, help.stderr]).toEqual([0, ""]);
  expect(help.stdout).toContain("Examples:");
});
