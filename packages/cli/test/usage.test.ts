// What the program makes of its command line, run in this process: messages, exit codes, help.

import { parseTunnelId } from "@moor/protocol";
import { afterEach, expect, test, vi } from "vitest";
import { runProgram } from "../src/main.ts";

const UNKNOWN = parseTunnelId(`tunnel_${"0".repeat(32)}`) ?? "";

afterEach(() => {
  vi.restoreAllMocks();
});

async function runInProcess(
  args: readonly string[],
): Promise<{ code: number; stdout: string; stderr: string }> {
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    vi.spyOn(process[name], "write").mockImplementation((text) => {
      written[name] += String(text);
      return true;
    });
  }
  const code = await runProgram(args);
  vi.restoreAllMocks();
  return { code, ...written };
}

test.each([
  [["tunel", "list"], "Did you mean tunnel?"],
  [["tunnel", "lst"], "Did you mean list?"],
  [["tunnel", "list", "--jsn"], "Did you mean --json?"],
  [["tunnel", "create", "--access", "all"], "Allowed choices are key, passthrough, open"],
  [["tunnel", "create", "--deadline", "soon"], '--deadline: got "soon", expected a duration'],
  [["tunnel", "update", UNKNOWN], "expected --name, --description, --access or --deadline"],
  [["tunnel", "show"], "missing required argument 'id'"],
  [["tunnel", "show", "notes"], "ID: got a text of 5 characters, expected tunnel_ and 32 characters"],
  [["tunnel", "list", "extra"], "too many arguments"],
  [
    ["tunnel", "list", "--operator", "http://127.0.0.1:9", "--data", "x"],
    "cannot be used with option '--data <dir>'",
  ],
  [["key", "create", "--kind", "agent"], "required option '--tunnel <id>' not specified"],
  [["key", "create", "--tunnel", UNKNOWN, "--kind", "operator"], "Allowed choices are agent, connector"],
  [["dev", "--port", "99999"], '--port: got "99999", expected an integer from 0 to 65535'],
  [["dev", "--shards", "0"], '--shards: got "0", expected an integer from 1 to 64'],
  [[], "Usage: moor"],
])("%j is wrong usage: exit code 2, nothing on stdout, and said why", async (args, said) => {
  const run = await runInProcess(args);
  expect([run.code, run.stdout]).toEqual([2, ""]);
  expect(run.stderr).toContain(said);
});

test("a key typed in the wrong place is not repeated", async () => {
  const key = `moor_agent_${"k".repeat(43)}_abcdef`;
  for (const args of [
    [`--key=${key}`],
    ["tunnel", "show", key],
    ["tunnel", "list", `--limit=${key}`],
    [key],
  ]) {
    const run = await runInProcess(args);
    expect(run.code).toBe(2);
    expect(run.stdout + run.stderr).not.toContain("kkkk");
  }
});

test.each([
  [[]],
  [["dev"]],
  [["agent"]],
  [["tunnel", "create"]],
  [["tunnel", "list"]],
  [["tunnel", "show"]],
  [["tunnel", "update"]],
  [["tunnel", "delete"]],
  [["key", "create"]],
  [["key", "list"]],
  [["key", "revoke"]],
])("help of %j is an answer with an example", async (command) => {
  const help = await runInProcess([...command, "--help"]);
  expect([help.code, help.stderr]).toEqual([0, ""]);
  expect(help.stdout).toMatch(/^Usage: moor/);
  expect(help.stdout).toMatch(/Example/);
});
