// The CLI's parts: default folder, options, where the operator listener is found, files for keys.

import fs, { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { createTempDir } from "@moor/testkit";
import { expect, onTestFinished, test, vi } from "vitest";
import { commandName } from "../src/command-name.ts";
import { defaultDataDir } from "../src/data-dir.ts";
import { findOperator } from "../src/operator-address.ts";
import { durationOption, integerOption, keyIdOption, tunnelIdOption } from "../src/option-parsers.ts";
import { redactKeys } from "../src/redact.ts";
import { claimSecretFile } from "../src/secret-file.ts";
import { nextSignal } from "../src/signals.ts";
import { startFakeOperator } from "./fake-operator.ts";
import { runInProcess } from "./run-in-process.ts";

const KEY = `moor_agent_${"k".repeat(43)}_abcdef`;

async function newDir(): Promise<string> {
  const temp = await createTempDir("cli");
  onTestFinished(() => temp.remove());
  return temp.path;
}

test("the default data directory is the platform's folder for state", () => {
  expect(defaultDataDir({ XDG_STATE_HOME: "/x/state" }, "linux", "/home/u")).toBe("/x/state/moor");
  expect(defaultDataDir({}, "linux", "/home/u")).toBe("/home/u/.local/state/moor");
  expect(defaultDataDir({ XDG_STATE_HOME: "relative" }, "linux", "/home/u")).toBe(
    "/home/u/.local/state/moor",
  );
  expect(defaultDataDir({ XDG_STATE_HOME: "/x" }, "darwin", "/Users/u")).toBe(
    "/Users/u/Library/Application Support/moor",
  );
});

test("hints call the program as its reader does", () => {
  expect(commandName({ npm_command: "exec" })).toBe("npx moor");
  expect(commandName({})).toBe("moor");
});

test("an integer option takes its range and nothing else", () => {
  const port = integerOption("--port", 0, 65_535);
  expect([port("0"), port("65535")]).toEqual([0, 65_535]);
  for (const text of ["", "-1", "65536", "1.5", "1e3", "0x10", " 1", "٣"]) {
    expect(() => port(text)).toThrow(/^--port: got .*expected an integer from 0 to 65535$/);
  }
});

test("durations and ids are checked before anything is sent, and what was got is not repeated", () => {
  expect(durationOption("--deadline")("1500ms")).toBe("1500ms");
  expect(() => durationOption("--deadline")("soon")).toThrow(/--deadline: got "soon", expected a duration/);
  const tunnel = `tunnel_${"a".repeat(32)}`;
  expect(tunnelIdOption("ID")(tunnel)).toBe(tunnel);
  for (const read of [tunnelIdOption("ID"), keyIdOption("KEY_ID")]) {
    expect(() => read(KEY)).toThrow(/a text of 61 characters/);
    expect(() => read(KEY)).not.toThrow(/kkkk/);
  }
});

test("keys in a message are redacted, ids are not", () => {
  expect(redactKeys(`unknown option '--key=${KEY}'`)).toBe("unknown option '--key=[secret]'");
  expect(redactKeys("key_0123456789abcdef01234567 of tunnel_x")).toContain("key_0123456789abcdef01234567");
});

test("a data directory without a node is unreachable, with what to do", async () => {
  const dir = await newDir();
  expect(() => findOperator({ data: dir })).toThrow(/cannot find a node: .*ENOENT[^]*dev --data/);
});

test("operator.json gives address and token; a broken one is a configuration error", async () => {
  const dir = await newDir();
  const path = join(dir, "operator.json");
  writeFileSync(path, JSON.stringify({ url: "http://127.0.0.1:7070", token: "t", more: 1 }));
  const found = findOperator({ data: dir });
  expect([found.url, found.token.reveal()]).toEqual(["http://127.0.0.1:7070", "t"]);
  for (const content of ["", "{", "[]", '{"url":5,"token":"t"}', '{"url":"http://127.0.0.1:1"}']) {
    writeFileSync(path, content);
    expect(() => findOperator({ data: dir })).toThrow(expect.objectContaining({ name: "ConfigError" }));
  }
});

test("--operator needs a token from the environment, and sends it in clear to loopback only", () => {
  const env = { MOOR_OPERATOR_TOKEN: "t\n" };
  expect(findOperator({ operator: "http://localhost:1/" }, env).url).toBe("http://localhost:1");
  expect(findOperator({ operator: "https://moor.example/x/" }, env).url).toBe("https://moor.example/x");
  expect(findOperator({ operator: "http://[::1]:1" }, env).token.reveal()).toBe("t");
  expect(() => findOperator({ operator: "http://127.0.0.1:1" }, {})).toThrow(
    /^MOOR_OPERATOR_TOKEN: got nothing/,
  );
  for (const operator of [
    "http://moor.example",
    "ftp://127.0.0.1",
    "nonsense",
    "https://u:p@x",
    "https://x/?a=1",
  ]) {
    expect(() => findOperator({ operator }, env)).toThrow(/^--operator: got /);
  }
});

test("a token that cannot be sent is refused before it is, and no part of it is repeated", async () => {
  const dir = await newDir();
  for (const token of ["planted\ntoken", "planted token", "plänted", " "]) {
    const env = { MOOR_OPERATOR_TOKEN: token };
    const fromEnvironment = () => findOperator({ operator: "http://127.0.0.1:1" }, env);
    expect(fromEnvironment).toThrow(/^MOOR_OPERATOR_TOKEN: got a token with/);
    expect(fromEnvironment).not.toThrow(/pl.nted/);
    writeFileSync(join(dir, "operator.json"), JSON.stringify({ url: "http://127.0.0.1:1", token }));
    expect(() => findOperator({ data: dir })).toThrow(expect.objectContaining({ name: "ConfigError" }));
  }
});

test.each(["{}", '{"tunnels":{},"next":null}', '{"tunnels":[]}', "[]", "null", '"text"'])(
  "a list that is answered with %s is no answer of an operator listener",
  async (json) => {
    const { args } = await startFakeOperator(() => [200, JSON.parse(json)]);
    const run = await runInProcess(["tunnel", "list", ...args]);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining("not one of an operator listener")]);
  },
);

test("a file that a nearly full disk takes in pieces is written whole", async () => {
  const { writeSync } = fs;
  vi.spyOn(fs, "writeSync").mockImplementation((file: number, data: string) =>
    writeSync(file, data.slice(0, 7)),
  );
  syncBuiltinESMExports();
  onTestFinished(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });
  const path = join(await newDir(), "agent.key");
  claimSecretFile("--out", path).fill(KEY);
  expect(readFileSync(path, "utf8")).toBe(`${KEY}\n`);
});

test("a file on a full disk is refused before there is a key for it, and not left behind", async () => {
  const { writeFileSync: write } = fs;
  vi.spyOn(fs, "writeFileSync").mockImplementation((file, data, options) => {
    write(file, "", options);
    throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
  });
  syncBuiltinESMExports();
  onTestFinished(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });
  const path = join(await newDir(), "agent.key");
  expect(() => claimSecretFile("--out", path)).toThrow(
    expect.objectContaining({ name: "ConfigError", message: expect.stringContaining("(ENOSPC)") as unknown }),
  );
  expect(existsSync(path)).toBe(false);
});

test("a key's file is new, the owner's only, and gone again when the key was not made", async () => {
  const path = join(await newDir(), "agent.key");
  claimSecretFile("--out", path).fill(KEY);
  expect(readFileSync(path, "utf8")).toBe(`${KEY}\n`);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  chmodSync(path, 0o644);
  expect(() => claimSecretFile("--out", path)).toThrow(
    /EEXIST.*expected the path of a file that does not exist yet/,
  );
  expect(readFileSync(path, "utf8")).toBe(`${KEY}\n`);
  const abandoned = `${path}.2`;
  claimSecretFile("--out", abandoned).abandon();
  expect(existsSync(abandoned)).toBe(false);
});

test("the first signal resolves, further ones run what was asked, released ones are Node's again", async () => {
  const before = process.listenerCount("SIGUSR2");
  const watch = nextSignal(["SIGUSR2"]);
  const further: number[] = [];
  process.emit("SIGUSR2", "SIGUSR2");
  expect(await watch.first).toBe("SIGUSR2");
  watch.onFurther((count) => void further.push(count));
  process.emit("SIGUSR2", "SIGUSR2");
  process.emit("SIGUSR2", "SIGUSR2");
  expect(further).toEqual([2, 3]);
  watch.release();
  expect(process.listenerCount("SIGUSR2")).toBe(before);
});
