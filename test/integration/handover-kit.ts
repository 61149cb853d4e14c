// One node whose processes follow each other: its configuration, and how each process is started.

import { writeFile } from "node:fs/promises";
import path from "node:path";
import {
  createTempDir,
  claimPort,
  MOOR_BIN,
  openOperator,
  startProcess,
  type OperatorClient,
  type ProcessOptions,
  type RunningProcess,
} from "@moor/testkit";
import { onTestFinished } from "vitest";

/** A node in a folder of its own, for the length of a test. */
export interface HandedNode {
  readonly port: number;
  readonly endpoint: string;
  readonly dataDir: string;
  /** Starts a process of it with these arguments; does not wait until it serves. */
  start(args?: readonly string[], options?: Partial<ProcessOptions>): Promise<RunningProcess>;
  /** As `start`, until it serves. */
  serve(args?: readonly string[], options?: Partial<ProcessOptions>): Promise<RunningProcess>;
  /** The operator API of the process that wrote operator.json last. */
  operator(): Promise<OperatorClient>;
}

/** `settings` are laid over its configuration; `port`: the public one, by default a free one. */
export async function createHandedNode(
  settings: Readonly<Record<string, unknown>> = {},
  publicSettings: Readonly<Record<string, unknown>> = {},
): Promise<HandedNode> {
  const temp = await createTempDir("handover");
  const processes: RunningProcess[] = [];
  onTestFinished(async () => {
    await Promise.all(processes.map((running) => running.kill()));
    await temp.remove();
  });
  const port = await claimPort();
  const dataDir = path.join(temp.path, "data");
  const configFile = path.join(temp.path, "moor.json");
  const config = {
    id: "n1",
    shards: ["s1"],
    data: dataDir,
    directory: { sqlite: true },
    public: { port, ...publicSettings },
    operator: { port: await claimPort() },
    ...settings,
  };
  await writeFile(configFile, JSON.stringify(config));
  const start: HandedNode["start"] = async (args = [], options = {}) => {
    const running = await startProcess({
      label: "moor serve",
      ...options,
      args: [MOOR_BIN, "serve", `--config=${configFile}`, "--json", ...args],
    });
    processes.push(running);
    return running;
  };
  return {
    port,
    endpoint: `http://127.0.0.1:${port}`,
    dataDir,
    start,
    serve: async (args, options) => {
      const running = await start(args, options);
      await running.stdout.waitFor('"ready"').catch((error: unknown) => {
        throw new Error(`the node did not get ready; stderr:\n${running.stderr.text()}`, { cause: error });
      });
      return running;
    },
    operator: () => openOperator(dataDir),
  };
}

/** Names of what a process has logged of leaving, taking over and serving. */
export function eventsOf({ stderr }: RunningProcess): readonly string[] {
  return stderr.lines
    .filter((line) => line.startsWith("{"))
    .map((line) => (JSON.parse(line) as { readonly event: string }).event)
    .filter((event) => /^(taking|taken|nothing|node|drain)-/.test(event));
}
