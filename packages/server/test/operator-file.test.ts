// operator.json: the token is kept, the file is the owner's only and replaced as a whole.

import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createNodeRuntime } from "@moor/runtime";
import { createTempDir } from "@moor/testkit";
import { expect, onTestFinished, test } from "vitest";
import { mintKey } from "../src/directory/keys.ts";
import { loadOperatorToken, OPERATOR_FILE, writeOperatorFile } from "../src/operator/operator-file.ts";

const runtime = createNodeRuntime();

async function newDir(): Promise<string> {
  const temp = await createTempDir("operator-file");
  onTestFinished(() => temp.remove());
  return temp.path;
}

test("the token is kept over starts, the URL is the newest", async () => {
  const dir = await newDir();
  const token = loadOperatorToken(dir, runtime);
  writeOperatorFile(dir, { url: "http://127.0.0.1:1", token });
  const again = loadOperatorToken(dir, runtime);
  expect(again.reveal()).toBe(token.reveal());
  writeOperatorFile(dir, { url: "http://127.0.0.1:2", token: again });
  expect(JSON.parse(readFileSync(join(dir, OPERATOR_FILE), "utf8"))).toEqual({
    url: "http://127.0.0.1:2",
    token: token.reveal(),
  });
});

test("the file is readable by its owner only, even over one that was not, and no draft is left", async () => {
  const dir = await newDir();
  for (const name of [OPERATOR_FILE, `${OPERATOR_FILE}.new`]) {
    writeFileSync(join(dir, name), "{}");
    chmodSync(join(dir, name), 0o644);
  }
  writeOperatorFile(dir, { url: "http://127.0.0.1:1", token: loadOperatorToken(dir, runtime) });
  expect(readdirSync(dir)).toEqual([OPERATOR_FILE]);
  expect(statSync(join(dir, OPERATOR_FILE)).mode & 0o777).toBe(0o600);
});

test("a file without a valid operator token gives a new one", async () => {
  const dir = await newDir();
  const agentKey = mintKey("agent", runtime).key.reveal();
  for (const content of [
    "",
    "[]",
    "{}",
    '{"token":5}',
    '{"token":"guess"}',
    JSON.stringify({ token: agentKey }),
  ]) {
    writeFileSync(join(dir, OPERATOR_FILE), content);
    const token = loadOperatorToken(dir, runtime).reveal();
    expect(token).toMatch(/^moor_operator_/);
    expect(content).not.toContain(token);
  }
});
