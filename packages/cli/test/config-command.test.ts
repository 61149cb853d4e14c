// `moor config`: what it says of good and bad configurations, and the secret it makes.

import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createTempDir } from "@moor/testkit";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { runInProcess } from "./run-in-process.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

async function newDir(): Promise<string> {
  const temp = await createTempDir("config-command");
  onTestFinished(() => temp.remove());
  return temp.path;
}

async function fileWith(config: object): Promise<string> {
  const file = join(await newDir(), "moor.json");
  writeFileSync(file, JSON.stringify(config));
  return file;
}

const ALONE = { id: "a", shards: ["s1"], data: "state", directory: { sqlite: true } };

test("check says what the node would be, in words and as JSON", async () => {
  const file = await fileWith(ALONE);
  const run = await runInProcess(["config", "check", file]);
  expect(run).toEqual({
    code: 0,
    stdout: `${file} can be used: node a of residency global, roles entry, shard, shards s1\n`,
    stderr: "",
  });
  const json = await runInProcess(["config", "check", file, "--json", "--id", "b"]);
  expect(JSON.parse(json.stdout)).toEqual({
    ok: true,
    id: "b",
    residency: "global",
    roles: ["entry", "shard"],
    shards: ["s1"],
  });
});

test("check ends with 2 and names what is wrong in the file, the environment or a flag", async () => {
  const file = await fileWith({ ...ALONE, publc: {} });
  const wrong = await runInProcess(["config", "check", file]);
  expect([wrong.code, wrong.stdout]).toEqual([2, ""]);
  expect(wrong.stderr).toContain(`moor: ${file}: publc: got an unknown key, expected one of id, residency`);
  const good = await fileWith(ALONE);
  vi.stubEnv("MOOR_PUBLIC_PORT", "http");
  const variable = await runInProcess(["config", "check", good]);
  expect([variable.code, variable.stderr]).toEqual([
    2,
    'moor: MOOR_PUBLIC_PORT: got "http", expected an integer from 0 to 65535\n',
  ]);
  const flag = await runInProcess(["config", "check", good, "--public-port", "x"]);
  expect(flag.stderr).toBe('moor: --public-port: got "x", expected an integer from 0 to 65535\n');
});

test("print shows what is in effect, where it came from, and no password", async () => {
  const file = await fileWith({ ...ALONE, nodeSecretFile: "s" });
  vi.stubEnv("MOOR_DATABASE_URL", "postgres://moor:hunter2@db/moor");
  const run = await runInProcess(["config", "print", file, "--public-port", "0"]);
  expect(JSON.parse(run.stdout)).toMatchObject({ public: { port: 0 }, directory: { postgres: {} } });
  expect(run.stderr.split("\n")).toEqual([
    "public.port: from --public-port",
    "directory: from MOOR_DATABASE_URL",
    "database: postgres://moor:***@db/moor",
    "",
  ]);
  expect(run.stdout + run.stderr).not.toContain("hunter2");
});

test("secret makes a file of its owner's own, and never overwrites one", async () => {
  const dir = await newDir();
  const path = join(dir, "node.secret");
  const run = await runInProcess(["config", "secret", path]);
  expect(run).toEqual({ code: 0, stdout: `a node secret is in ${path}\n`, stderr: "" });
  const text = readFileSync(path, "utf8");
  expect([text, statSync(path).mode & 0o777]).toEqual([expect.stringMatching(/^[\w-]{43}\n$/), 0o600]);
  const again = await runInProcess(["config", "secret", path]);
  expect([again.code, readFileSync(path, "utf8")]).toEqual([2, text]);
  expect(again.stderr).toContain("(EEXIST)");
  vi.stubEnv("MOOR_DATABASE_URL", "postgres://moor@db/moor");
  const file = await fileWith({ ...ALONE, nodeSecretFile: path });
  expect((await runInProcess(["config", "check", file])).code).toBe(0);
});
