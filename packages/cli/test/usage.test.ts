// What the program makes of its command line, run in this process: messages, exit codes, help.

import { parseTunnelId } from "@moor/protocol";
import { afterEach, expect, test, vi } from "vitest";
import { runInProcess } from "./run-in-process.ts";

const UNKNOWN = parseTunnelId(`tunnel_${"0".repeat(32)}`) ?? "";

afterEach(() => {
  vi.restoreAllMocks();
});

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
  [["serve"], "required option '--config <file>' not specified"],
  [["serve", "--config", "/nowhere.json"], "--config: got /nowhere.json (ENOENT), expected a file"],
  [["config", "check", "/nowhere.json"], "--config: got /nowhere.json (ENOENT)"],
  [["config", "print"], "missing required argument 'file'"],
  [["move"], "moor move: got none, expected one of TENANT, --from, --resume and --abort"],
  [["move", UNKNOWN, "--from", "s1"], "moor move: got TENANT and --from, expected one of"],
  [["move", UNKNOWN], "--to: got nothing, expected the shard to move to"],
  [["move", UNKNOWN, "--spread"], "--to: got nothing"],
  [
    ["move", "--from", "s1", "--rate", "5/s"],
    "moor move --from: got no target, expected either --to or --spread",
  ],
  [["move", "--from", "s1", "--to", "s2", "--spread", "--rate", "5/s"], "moor move --from: got both"],
  [["move", "--from", "s1", "--to", "s2"], "--rate: got nothing, expected moves a second, e.g. 50/s"],
  [
    ["move", "--from", "s1", "--to", "s2", "--rate", "5/m"],
    '--rate: got "5/m", expected moves a second from 0.01/s',
  ],
  [["move", "--from", "S1"], '--from: got "S1", expected a shard'],
  [["move", "--resume", "7"], '--resume: got "7", expected job_ and 24 hexadecimal digits'],
  [["moves", "--id", "7"], '--id: got "7", expected move_ and 32 hexadecimal digits'],
  [["where", "Notes"], "TENANT: got a text of 5 characters, expected tunnel_ and 32 characters"],
  [["token-key", "retire", "x"], 'ID: got "x", expected tk_ and hexadecimal digits'],
  [["corrections", "maybe"], "unknown command 'maybe'"],
  [["box", "enrol"], "moor box: got a word that is no verb, expected enroll"],
  [["home", "token", "revoke", "x"], "as `moor home token list` shows it"],
  [["box"], "--endpoint: got nothing, expected wss://"],
  [["box", "--endpoint", "wss://cloud.example"], "--home: got nothing"],
  [["box", "--endpoint", "wss://cloud.example", "--hme", "x"], "Did you mean --home?"],
  [
    ["box", "enroll", "--endpoint", "wss://cloud.example"],
    "required option '--identity <file>' not specified",
  ],
  [
    ["box", "enroll", "--endpoint", "wss://a.b", "--identity", "/nowhere/x", "--service-key", "/nowhere/y"],
    '--service-key: got "/nowhere/y" in a folder that does not exist',
  ],
  [
    ["app", "snd", "--endpoint", "wss://a.b", "--token-file", "x"],
    "Allowed choices are send, once, now, watch",
  ],
  [["app", "now", "--endpoint", "ws://a.b", "--token-file", "x"], "--endpoint: got ws:// to another machine"],
  [["app", "send", "{}", "--endpoint", "wss://a.b", "--token-file", "x"], "--service-key: got nothing"],
  [["app", "send", "{", "--endpoint", "wss://a.b", "--token-file", "x"], "DATA: got a text that is no JSON"],
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
  [["box"]],
  [["box", "enroll"]],
  [["app"]],
  [["tunnel", "create"]],
  [["tunnel", "list"]],
  [["tunnel", "show"]],
  [["tunnel", "update"]],
  [["tunnel", "delete"]],
  [["key", "create"]],
  [["key", "list"]],
  [["key", "revoke"]],
  [["serve"]],
  [["config", "check"]],
  [["config", "print"]],
  [["config", "schema"]],
  [["config", "secret"]],
  [["shards"]],
  [["nodes"]],
  [["where"]],
  [["why"]],
  [["move"]],
  [["moves"]],
  [["corrections", "on"]],
  [["corrections", "off"]],
  [["corrections", "status"]],
  [["home", "create"]],
  [["home", "list"]],
  [["home", "show"]],
  [["home", "delete"]],
  [["home", "enroll"]],
  [["home", "token", "create"]],
  [["home", "token", "list"]],
  [["home", "token", "revoke"]],
  [["service-key", "list"]],
  [["service-key", "add"]],
  [["service-key", "retire"]],
  [["shard", "default"]],
  [["token-key", "add"]],
  [["token-key", "promote"]],
  [["token-key", "retire"]],
  [["token-key", "list"]],
])("help of %j is an answer with an example", async (command) => {
  const help = await runInProcess([...command, "--help"]);
  expect([help.code, help.stderr]).toEqual([0, ""]);
  expect(help.stdout).toMatch(/^Usage: moor/);
  expect(help.stdout).toMatch(/Example/);
});
