// A program that acts on commands: what becomes a result, and that it always does.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { RawJson, type BoxCommand } from "@moor/client";
import { createTempDir, expectGroupEmpty, until, verifies } from "@moor/testkit";
import { expect, onTestFinished, test } from "vitest";
import { createExecHandler } from "../src/box-exec.ts";

const command: BoxCommand = {
  id: "c1",
  app: "phone-1",
  ttlMs: 5_000,
  data: new RawJson('{"a" : 1.0}'),
  signal: new AbortController().signal,
};

verifies(
  "L31",
  "a program gets the data byte for byte, and its JSON is the result byte for byte",
  async () => {
    expect(await createExecHandler("cat; printf '\\n'")(command)).toEqual(new RawJson('{"a" : 1.0}'));
    const told = createExecHandler(`echo "\\"$MOOR_COMMAND_ID $MOOR_APP $MOOR_TTL_MS\\""`);
    expect(await told(command)).toEqual(new RawJson('"c1 phone-1 5000"'));
  },
);

test.each([
  ["exit 3", { error: "exit", code: 3 }],
  ["echo no json", { error: "not_json" }],
  ["true", { error: "not_json" }],
  ["head -c 70000 /dev/zero; sleep 1000", { error: "result_too_large" }],
  ["/nowhere/program 2>&-", { error: "exit", code: 127 }],
  ["kill -9 $$", { error: "exit", code: null }],
  ["printf '\"\\377\"'", { error: "not_json" }],
])("a program that fails (%s) gives a result that says so", async (program, result) => {
  expect(await createExecHandler(program)(command)).toEqual(result);
});

verifies("L31", "a program that outlives its command's time is killed with all it started", async () => {
  const folder = await createTempDir("exec");
  onTestFinished(() => folder.remove());
  const pidFile = path.join(folder.path, "pid");
  const ending = new AbortController();
  const handle = createExecHandler(
    `sleep 1000 & echo $$ > ${pidFile}.new; mv ${pidFile}.new ${pidFile}; wait`,
  );
  const result = handle({ ...command, signal: ending.signal });
  const readPid = async () => Number(await readFile(pidFile, "utf8").catch(() => "")) || undefined;
  const group = await until(readPid, "a process id");
  ending.abort();
  expect(await result).toEqual({ error: "timed_out" });
  await expectGroupEmpty(group);
});

verifies("L31", "what leaves the program's group, and holds its stdout, holds no result back", async () => {
  const folder = await createTempDir("exec");
  onTestFinished(() => folder.remove());
  const pidFile = path.join(folder.path, "pid");
  const ending = new AbortController();
  const left = `echo $$ > ${pidFile}.new; mv ${pidFile}.new ${pidFile}; exec sleep 1000`;
  const result = createExecHandler(`setsid sh -c '${left}' & echo 1`)({ ...command, signal: ending.signal });
  const readPid = async () => Number(await readFile(pidFile, "utf8").catch(() => "")) || undefined;
  const pid = await until(readPid, "a process id");
  onTestFinished(() => void process.kill(pid, "SIGKILL"));
  ending.abort();
  expect(await result).toEqual({ error: "timed_out" });
});
