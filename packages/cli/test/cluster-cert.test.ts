// `moor cluster cert`: files that nodes take, keys that nobody else reads, nothing replaced unasked.

import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createNodeRuntime, createSilentLogger } from "@moor/runtime";
import { createTempDir, type TempDir } from "@moor/testkit";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { TlsFiles } from "../../server/src/peer/transport/tls-files.ts";
import { runInProcess, type ProgramRun } from "./run-in-process.ts";

let dir: TempDir;

beforeEach(async () => {
  dir = await createTempDir("certs");
});

afterEach(async () => {
  vi.restoreAllMocks();
  await dir.remove();
});

function cert(...args: readonly string[]): Promise<ProgramRun> {
  return runInProcess(["cluster", "cert", ...args, "--dir", dir.path]);
}

function at(name: string): string {
  return path.join(dir.path, name);
}

test("P5 · a node starts with the files made for it, and with no other's", async () => {
  expect((await cert("ca", "--residency", "eu")).code).toBe(0);
  expect((await cert("node", "n1", "--host", "a.example", "10.0.0.1", "--days", "30")).code).toBe(0);
  const paths = { caFile: at("ca.crt"), certFile: at("n1.crt"), keyFile: at("n1.key") };
  const start = (nodeId: string) =>
    new TlsFiles(paths, { nodeId, residency: "eu" }, createNodeRuntime(), createSilentLogger()).current();
  expect(start("n1").cert.toString()).toContain("BEGIN CERTIFICATE");
  expect(() => start("n2")).toThrow("for moor://eu/node/n1");
  const certificate = new X509Certificate(readFileSync(at("n1.crt")));
  expect(certificate.subjectAltName).toBe("URI:moor://eu/node/n1, DNS:a.example, IP Address:10.0.0.1");
});

test("keys are in files of mode 0600 and in no output; --json is one object", async () => {
  const [ca, node] = [await cert("ca", "--json"), await cert("node", "n1", "--json")];
  expect(JSON.parse(node.stdout)).toEqual({
    certificate: at("n1.crt"),
    key: at("n1.key"),
    for: "moor://global/node/n1",
    expiresAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
  });
  for (const name of ["ca.key", "n1.key"]) expect(statSync(at(name)).mode & 0o777).toBe(0o600);
  for (const { stdout, stderr } of [ca, node, await cert("node", "n2")]) {
    expect(stdout + stderr).not.toContain("PRIVATE KEY");
  }
});

test("what exists stays, unless forced; then it is kept as .old", async () => {
  await cert("ca");
  await cert("node", "n1");
  const before = [readFileSync(at("n1.crt"), "utf8"), readFileSync(at("n1.key"), "utf8")];
  const now = () => [readFileSync(at("n1.crt"), "utf8"), readFileSync(at("n1.key"), "utf8")];
  const refused = await cert("node", "n1");
  expect([refused.code, refused.stdout, now()]).toEqual([2, "", before]);
  expect(refused.stderr).toContain("n1.key, which exists, expected other files, or --force");
  expect((await cert("node", "n1", "--force")).code).toBe(0);
  expect(now()).not.toEqual(before);
  expect([readFileSync(at("n1.crt.old"), "utf8"), readFileSync(at("n1.key.old"), "utf8")]).toEqual(before);
  expect(existsSync(at("n1.key.new"))).toBe(false);
});

test.each([
  [["ca", "n1"], 'NAME: got "n1", expected none for ca'],
  [["ca", "--residency", "EU"], '--residency: got "EU"'],
  [["ca", "--days", "0"], '--days: got "0"'],
  [["node"], "NAME: got nothing"],
  [["node", "N1"], 'NAME: got "N1"'],
  [["node", "ca"], 'NAME: got "ca"'],
  [["node", "n1", "--residency", "us"], "expected global, the residency of the authority"],
  [["other"], "Allowed choices are ca, node"],
])("%j is refused, with exit code 2 and nothing written", async (args, said) => {
  await cert("ca");
  const before = readFileSync(at("ca.crt"), "utf8");
  const run = await cert(...args);
  expect([run.code, run.stdout, readFileSync(at("ca.crt"), "utf8")]).toEqual([2, "", before]);
  expect(run.stderr).toContain(said);
  expect(existsSync(at("n1.crt"))).toBe(false);
});

test("without an authority, or with one that is none, the message says what is wanted", async () => {
  expect((await cert("node", "n1")).stderr).toContain("ca.crt (ENOENT), expected the authority's files");
  writeFileSync(at("ca.crt"), "x");
  writeFileSync(at("ca.key"), "x");
  const run = await cert("node", "n1");
  expect([run.code, existsSync(at("n1.crt"))]).toEqual([2, false]);
  expect(run.stderr).toContain("expected those that `moor cluster cert ca` made");
});
