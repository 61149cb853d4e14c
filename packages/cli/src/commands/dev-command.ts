// `moor dev`: a whole node in this process, for one machine: entry, shards, embedded directory, operator listener.

import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { createLogger, createNodeRuntime, LOG_LEVELS, type LogLevel } from "@moor/runtime";
import type { MoorNode } from "@moor/server";
import { commandName } from "../command-name.ts";
import { defaultDataDir } from "../data-dir.ts";
import { integerOption } from "../option-parsers.ts";
import { printAnswer, printJson } from "../output.ts";
import { runNode } from "../run-node.ts";
import { readVersion } from "../version.ts";

/** Time that calls under way get after the first signal. Milliseconds. */
const STOP_GRACE_MS = 10_000;

interface DevOptions {
  readonly host: string;
  readonly port: number;
  readonly operatorPort: number;
  readonly data?: string;
  readonly shards: number;
  readonly logLevel: LogLevel;
  readonly json?: boolean;
}

/** Adds `dev` to the program. */
export function registerDevCommand(program: Command): void {
  program
    .command("dev")
    .description("run a node on this machine until it is told to stop")
    .option("--host <address>", "address of the public listener", "127.0.0.1")
    .option(
      "--port <n>",
      "port of the public listener; 0 = any free one",
      integerOption("--port", 0, 65_535),
      8080,
    )
    .option(
      "--operator-port <n>",
      "port of the operator listener on 127.0.0.1; 0 = any free one",
      integerOption("--operator-port", 0, 65_535),
      7070,
    )
    .option("--data <dir>", `data directory (default: ${defaultDataDir()})`)
    .option("--shards <n>", "shards in this process", integerOption("--shards", 1, 64), 2)
    .addOption(
      new Option("--log-level <level>", "least severe log line").choices([...LOG_LEVELS]).default("info"),
    )
    .option("--json", "print one JSON line when it serves")
    .addHelpText(
      "after",
      "\nExamples:\n  moor dev\n  moor dev --port 0 --operator-port 0 --data ./state --json",
    )
    .action(runDev);
}

async function runDev(options: DevOptions): Promise<void> {
  await runNode({
    start: async () => {
      // Imported here: the other commands do not need a server to start.
      const { BASE_HOST_DEFAULT, devNode, startNode } = await import("@moor/server");
      return startNode({
        node: devNode(options.shards),
        version: readVersion(),
        baseHost: BASE_HOST_DEFAULT,
        directory: { kind: "sqlite" },
        isCorrectionsOnAtFirst: true,
        host: options.host,
        port: options.port,
        operatorHost: "127.0.0.1",
        operatorPort: options.operatorPort,
        dataDir: resolve(options.data ?? defaultDataDir()),
        runtime: createNodeRuntime(),
        logger: createLogger({ level: options.logLevel }),
      });
    },
    announce: (node) => announce(node, options),
    graceMs: STOP_GRACE_MS,
    isQuiet: options.json === true,
  });
}

function announce(node: MoorNode, options: DevOptions): void {
  const { endpoint, operatorUrl, dataDir } = node;
  if (options.json === true) {
    return printJson({ event: "ready", endpoint, operator: operatorUrl, data: dataDir });
  }
  const moor = commandName();
  const data = options.data === undefined ? "" : ` --data ${options.data}`;
  printAnswer(
    [
      `Moor serves at ${endpoint}`,
      `  operator listener  ${operatorUrl}`,
      `  data               ${dataDir}`,
      "",
      "Next, in another terminal:",
      `  ${moor} tunnel create${data}`,
      `  MOOR_AGENT_KEY=… ${moor} agent --endpoint ${endpoint} --tunnel ID --mcp http://127.0.0.1:3000/mcp`,
      "",
      "Stop with Ctrl-C.",
    ].join("\n"),
  );
}
