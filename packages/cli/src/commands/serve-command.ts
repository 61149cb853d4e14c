// `moor serve --config FILE`: a node of a deployment in this process.

import { isProtocolError } from "@moor/protocol";
import type { Command } from "commander";
import { ConfigError, createLogger, createNodeRuntime } from "@moor/runtime";
import type { MoorNode } from "@moor/server";
import type { LoadedConfig } from "@moor/server/config";
import { addSettingOptions, loadCommandConfig } from "../config-options.ts";
import { UnreachableError } from "../exit-code.ts";
import { printAnswer, printJson } from "../output.ts";
import { runNode } from "../run-node.ts";
import { readVersion } from "../version.ts";

/** Time a process that leaves may take beyond its grace. Milliseconds: links, answers under way, files. */
const CLOSING_MS = 30_000;

interface ServeOptions {
  readonly config: string;
  readonly takeOver?: boolean;
  readonly json?: boolean;
}

/** Adds `serve` to the program. */
export function registerServeCommand(program: Command): void {
  const serve = program
    .command("serve")
    .description("run a node of a deployment until it is told to stop")
    .requiredOption("--config <file>", "configuration, JSON; `moor config schema` prints its schema")
    .option(
      "--take-over",
      "take port and data directory over from the process that runs this node; needs public.reusePort",
    )
    .option("--json", "print one JSON line when it serves");
  addSettingOptions(serve)
    .addHelpText(
      "after",
      "\nFlags win over MOOR_… variables, variables over the file. Secrets come from files or variables only:\n" +
        "MOOR_DATABASE_URL or directory.postgres.urlFile, and nodeSecretFile.\n\n" +
        "Examples:\n  moor serve --config moor.json\n  moor serve --config moor.json --public-port 0 --json",
    )
    .action((options: ServeOptions, command: Command) => runServe(options, command));
}

async function runServe(options: ServeOptions, command: Command): Promise<void> {
  const loaded = await loadCommandConfig(options.config, command);
  await runNode({
    start: () => start(loaded, options.takeOver === true),
    announce: (node) => announce(node, loaded, options.json === true),
    graceMs: loaded.config.graceMs,
    isQuiet: options.json === true,
  });
}

async function start({ config }: LoadedConfig, isTakingOver: boolean): Promise<MoorNode> {
  const { startNode } = await import("@moor/server");
  const { configNodeOptions } = await import("@moor/server/config");
  const logger = createLogger({ level: config.logLevel }).child({ node: config.id });
  const surroundings = { env: process.env, version: readVersion(), runtime: createNodeRuntime(), logger };
  try {
    const options = configNodeOptions(config, surroundings);
    return await startNode(isTakingOver ? { ...options, takeOver: takeOverOf(config) } : options);
  } catch (error) {
    if (!isProtocolError(error) || error.code !== "directory_unavailable") throw error;
    throw new UnreachableError(
      `cannot open the directory: ${error.message}`,
      "Check that the database runs and that its URL is right; a node that has served before also starts without it.",
    );
  }
}

/** How long the other process may take: its grace, and what closing costs. Throws ConfigError where a port cannot be shared. */
function takeOverOf({ public: { reusePort, port, fd }, graceMs }: LoadedConfig["config"]): {
  readonly waitMs: number;
} {
  const expected = "public.reusePort true and public.port given, in the running process too";
  if (fd !== undefined)
    throw new ConfigError(
      "--take-over",
      "public.fd",
      `${expected}; an inherited socket needs no taking over`,
    );
  if (!reusePort) throw new ConfigError("--take-over", "public.reusePort false", expected);
  if (port === 0) throw new ConfigError("--take-over", "public.port 0", expected);
  return { waitMs: graceMs + CLOSING_MS };
}

function announce(node: MoorNode, { config }: LoadedConfig, isJson: boolean): void {
  const { endpoint, operatorUrl, dataDir } = node;
  if (isJson) {
    return printJson({ event: "ready", node: config.id, endpoint, operator: operatorUrl, data: dataDir });
  }
  printAnswer(
    [
      `Node ${config.id} of residency ${config.residency} serves at ${endpoint}`,
      `  roles              ${config.roles.join(", ")}`,
      `  shards             ${config.shards.join(", ") || "none"}`,
      `  operator listener  ${operatorUrl}`,
      `  data               ${dataDir}`,
    ].join("\n"),
  );
}
