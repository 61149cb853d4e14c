// The real `moor` command under test: a node (`moor dev`), agents (`moor agent`), and the short-lived commands.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { claimPort } from "./ports.ts";
import { startProcess, type ProcessOptions, type RunningProcess } from "./processes.ts";
import { createTempDir, type TempDir } from "./temp-dir.ts";

/** Absolute path of the `moor` program of this repository. */
export const MOOR_BIN = fileURLToPath(new URL("../../cli/bin/moor.js", import.meta.url));

/** Starts `moor …args` as a process of its own. */
export function startMoor(
  args: readonly string[],
  options: Omit<ProcessOptions, "args"> = {},
): Promise<RunningProcess> {
  return startProcess({ label: `moor ${args[0] ?? ""}`.trim(), ...options, args: [MOOR_BIN, ...args] });
}

export interface MoorRun {
  /** Exit code; 128 when a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `moor …args` to its end. */
export async function runMoor(
  args: readonly string[],
  options: Omit<ProcessOptions, "args"> = {},
): Promise<MoorRun> {
  const moor = await startMoor(args, options);
  const end = await moor.ended;
  return {
    code: end.kind === "exited" ? end.code : 128,
    stdout: moor.stdout.text(),
    stderr: moor.stderr.text(),
  };
}

export interface MoorDevOptions {
  /** Data folder. Default: a new temporary one, deleted by `stop`. */
  readonly dataDir?: string;
  /** Public port; 0, the default, takes any free one. */
  readonly port?: number;
  /** Operator port; 0, the default, takes any free one. */
  readonly operatorPort?: number;
  /** Further arguments, e.g. `["--log-level", "debug"]`. */
  readonly args?: readonly string[];
  /** Arguments of Node itself, e.g. `["--expose-gc"]`. */
  readonly nodeArgs?: readonly string[];
  readonly env?: ProcessOptions["env"];
}

export interface MoorDev {
  /** What agents and callers are configured with, e.g. `http://127.0.0.1:40001`. */
  readonly endpoint: string;
  readonly operatorUrl: string;
  /** The operator token, read from `operator.json`. */
  readonly operatorToken: string;
  readonly dataDir: string;
  readonly process: RunningProcess;
  /** SIGTERM, the end, an empty process group, and the temporary data folder deleted. */
  stop(): Promise<void>;
  /** SIGKILL to the whole group; the data folder stays, for a restart with `dataDir`. */
  kill(): Promise<void>;
}

/** Starts `moor dev --json` and waits until it serves. */
export async function startMoorDev(options: MoorDevOptions = {}): Promise<MoorDev> {
  const temp: TempDir | undefined = options.dataDir === undefined ? await createTempDir("data") : undefined;
  const dataDir = options.dataDir ?? temp?.path ?? "";
  const moor = await startProcess({
    label: "moor dev",
    ...(options.env === undefined ? {} : { env: options.env }),
    args: [
      ...(options.nodeArgs ?? []),
      MOOR_BIN,
      "dev",
      "--json",
      `--port=${options.port ?? (await claimPort())}`,
      `--operator-port=${options.operatorPort ?? 0}`,
      `--data=${dataDir}`,
      ...(options.args ?? []),
    ],
  });
  const ready = await moor.stdout.waitFor('"ready"').catch(async (error: unknown) => {
    await moor.kill();
    await temp?.remove();
    throw new Error(`moor dev did not get ready; stderr:\n${moor.stderr.text()}`, { cause: error });
  });
  const { endpoint, operator } = JSON.parse(ready) as { endpoint: string; operator: string };
  const saved = JSON.parse(await readFile(path.join(dataDir, "operator.json"), "utf8")) as { token: string };
  return {
    endpoint,
    operatorUrl: operator,
    operatorToken: saved.token,
    dataDir,
    process: moor,
    stop: async () => {
      await moor.stop();
      await moor.expectGroupEmpty();
      await temp?.remove();
    },
    kill: async () => {
      await moor.kill();
      await moor.expectGroupEmpty();
    },
  };
}

export interface CreatedTunnel {
  readonly id: string;
  readonly agentKey: string;
  /** Null unless access is `key`. */
  readonly connectorKey: string | null;
  readonly connectorUrl: string;
}

/** Creates a tunnel by `moor tunnel create`, as an operator does. */
export async function createTunnel(
  node: { readonly dataDir: string },
  args: readonly string[] = [],
): Promise<CreatedTunnel> {
  const run = await runMoor(["tunnel", "create", "--json", "--data", node.dataDir, ...args]);
  if (run.code !== 0) throw new Error(`moor tunnel create ended with ${run.code}: ${run.stderr}`);
  return JSON.parse(run.stdout) as CreatedTunnel;
}

export interface MoorAgentOptions {
  readonly endpoint: string;
  readonly tunnel: Pick<CreatedTunnel, "id" | "agentKey">;
  /** URL of the MCP server of channel `main`. */
  readonly mcp?: string;
  /** Further arguments, e.g. `["--concurrency", "50"]`. */
  readonly args?: readonly string[];
  readonly env?: ProcessOptions["env"];
}

/** Starts `moor agent`, its key in the environment, and waits for its first poll to have been accepted. */
export async function startMoorAgent(options: MoorAgentOptions): Promise<RunningProcess> {
  const agent = await startMoor(
    [
      "agent",
      `--endpoint=${options.endpoint}`,
      `--tunnel=${options.tunnel.id}`,
      ...(options.mcp === undefined ? [] : [`--mcp=${options.mcp}`]),
      ...(options.args ?? []),
    ],
    { env: { ...options.env, MOOR_AGENT_KEY: options.tunnel.agentKey } },
  );
  await agent.stderr.waitFor(/^connected\b|"connected"/).catch(async (error: unknown) => {
    await agent.kill();
    throw error;
  });
  return agent;
}
