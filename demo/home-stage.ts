// The parts of the demo's third act: a node with two shards and one certificate for all their hosts, a home whose box
// is enrolled and linked, and the settings of an app.
//
// I1  Whatever was started is taken down again, in any ending, and that nothing is left is looked up, not assumed.

import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { makeLinkCertificates } from "@moor/testkit/link-certificates";
import { MOOR_BIN, runMoor, startMoor } from "@moor/testkit/moor-process";
import { claimPort, isPortTaken } from "@moor/testkit/ports";
import { listProcessGroup } from "@moor/testkit/process-group";
import { startProcess, type RunningProcess } from "@moor/testkit/processes";
import { createTempDir } from "@moor/testkit/temp-dir";
import type { Narrator } from "./narrator.ts";

/** Every shard's host is one label below it. */
const BASE = "moor.localhost";
export const HOME = "lighthouse";

export interface HomeStage {
  /** What box and app are configured with. */
  readonly endpoint: string;
  readonly settings: {
    readonly endpoint: string;
    readonly token: string;
    readonly serviceKeys: readonly string[];
  };
  /** Authority of its certificate, PEM. */
  readonly ca: string;
  /** SHA-256 of the certificate's public key, base64. */
  readonly spkiHash: string;
  readonly box: RunningProcess;
  /** Numbers of the commands the box has acted on, in order. */
  ledger(): readonly number[];
  /** Runs `moor …args` on the node; gives what it printed. */
  operate(args: readonly string[]): Promise<string>;
  /** Starts the node's next process, which takes the port over; resolves when it serves and the old one has ended. */
  restart(): Promise<void>;
  /** Takes everything down; gives what is left, in words. */
  strike(): Promise<readonly string[]>;
}

/** Starts everything and says so. When a part does not start, those before it are stopped. */
export async function setHomeStage(narrator: Narrator): Promise<HomeStage> {
  const dir = await createTempDir("home");
  const file = (name: string) => path.join(dir.path, name);
  const started: RunningProcess[] = [];
  const port = await claimPort();
  const endpoint = `wss://${BASE}:${port}`;

  const certificates = makeLinkCertificates([BASE, `*.${BASE}`]);
  const { cert, key } = certificates.get("good");
  writeFileSync(file("ca.pem"), certificates.ca);
  writeFileSync(file("node.pem"), cert);
  writeFileSync(file("node.key"), key, { mode: 0o600 });
  const config = {
    id: "shore",
    shards: ["s1", "s2"],
    shardDomain: BASE,
    data: file("data"),
    directory: { sqlite: true },
    public: { port, reusePort: true, tls: { certFile: file("node.pem"), keyFile: file("node.key") } },
    operator: { port: 0 },
    logLevel: "warn",
  };
  writeFileSync(file("node.json"), JSON.stringify(config));

  const startNode = async (args: readonly string[] = []) => {
    const node = await startMoor(["serve", "--config", file("node.json"), "--json", ...args]);
    started.push(node);
    await node.stdout.waitFor('"ready"');
    return node;
  };
  const operate = async (args: readonly string[]) => {
    const run = await runMoor([...args, "--data", file("data")]);
    if (run.code !== 0) throw new Error(`moor ${args.join(" ")} ended with ${run.code}: ${run.stderr}`);
    return run.stdout;
  };
  const strike = async () => {
    for (const running of started.toReversed()) await running.stop();
    const left = await leftovers(started, port);
    await dir.remove();
    return left;
  };

  try {
    let node = await startNode();
    narrator.say(`A node with two shards serves at ${endpoint}: one certificate, for ${BASE} and *.${BASE}.`);
    await operate(["home", "create", HOME]);
    const { code } = JSON.parse(await operate(["home", "enroll", HOME, "--json"])) as { code: string };
    const enrolled = await enroll(endpoint, code, file);
    narrator.say(`Home ${HOME} is there; its box has made a key and enrolled with a code that is good once.`);
    const box = await startBox(endpoint, file);
    started.push(box);
    narrator.say("The box is linked (moor box).");
    const token = JSON.parse(await operate(["home", "token", "create", HOME, "--kind", "app", "--json"])) as {
      token: string;
    };
    return {
      endpoint,
      settings: { endpoint, token: token.token, serviceKeys: enrolled },
      ca: certificates.ca,
      spkiHash: certificates.spkiHash,
      box,
      ledger: () => readFileSync(file("ledger"), "utf8").split("\n").filter(Boolean).map(Number),
      operate,
      restart: async () => {
        const before = node;
        node = await startNode(["--take-over"]);
        await before.ended;
      },
      strike,
    };
  } catch (error) {
    await strike();
    throw error;
  }
}

async function enroll(
  endpoint: string,
  code: string,
  file: (name: string) => string,
): Promise<readonly string[]> {
  writeFileSync(file("code"), code, { mode: 0o600 });
  const run = await runMoor([
    "box",
    "enroll",
    "--json",
    `--endpoint=${endpoint}`,
    `--code-file=${file("code")}`,
    `--identity=${file("box.pem")}`,
    `--service-key=${file("service.keys")}`,
    `--ca-file=${file("ca.pem")}`,
  ]);
  if (run.code !== 0) throw new Error(`moor box enroll ended with ${run.code}: ${run.stderr}`);
  return (JSON.parse(run.stdout) as { serviceKeys: string[] }).serviceKeys;
}

async function startBox(endpoint: string, file: (name: string) => string): Promise<RunningProcess> {
  writeFileSync(file("ledger"), "");
  const program = fileURLToPath(new URL("lighthouse-box.ts", import.meta.url));
  const box = await startProcess({
    label: "moor box",
    args: [
      MOOR_BIN,
      "box",
      `--endpoint=${endpoint}`,
      `--home=${HOME}`,
      `--identity=${file("box.pem")}`,
      `--record=${file("box.json")}`,
      `--service-key=${file("service.keys")}`,
      `--ca-file=${file("ca.pem")}`,
      `--exec='${process.execPath}' '${program}' '${file("ledger")}'`,
    ],
  });
  await box.stderr.waitFor('"link-online"').catch(async (error: unknown) => {
    await box.kill();
    throw error;
  });
  return box;
}

async function leftovers(started: readonly RunningProcess[], port: number): Promise<readonly string[]> {
  const members = await Promise.all(started.map(({ pid }) => listProcessGroup(pid)));
  const processes = members.flat().map((pid) => `process ${pid}`);
  return (await isPortTaken(port)) ? [...processes, `port ${port}`] : processes;
}
