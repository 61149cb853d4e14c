// `moor agent`: runs an agent until it is told to stop.
//
// Spec: T16, T17, T24, T25; R8 (what may be said about the service).
// I1  The key comes from a file or from MOOR_AGENT_KEY, never from argv; nothing here prints it (T25).
// I2  The first SIGTERM or SIGINT stops it within the grace and exits 0; a second one ends it at once with 1.

import { readFileSync } from "node:fs";
import type { AgentOptions, ChannelOption, HeaderLine, HealthListener, PollFailure } from "@moor/client";
import {
  ConfigError,
  createLogger,
  createNodeRuntime,
  LOG_LEVELS,
  Secret,
  type LogLevel,
} from "@moor/runtime";
import { type Command, Option } from "commander";
import { EXIT_CODE } from "../exit-code.ts";
import { integerOption } from "../option-parsers.ts";
import { printMessage } from "../output.ts";
import { redactKeys } from "../redact.ts";
import { nextSignal } from "../signals.ts";

interface AgentFlags {
  readonly endpoint?: string;
  readonly tunnel?: string;
  readonly keyFile?: string;
  readonly mcp?: string;
  readonly mcpChannel?: readonly string[];
  readonly mcpHeadersFile?: string;
  readonly health?: string;
  readonly pollWaitMs: number;
  readonly concurrency: number;
  readonly graceMs: number;
  readonly insecure?: true;
  readonly logLevel: LogLevel;
  readonly logHttpRawUnsafe?: true;
}

const KEY_VARIABLE = "MOOR_AGENT_KEY";
const GRACE_MS_HIGHEST = 3_600_000;

const EXAMPLES = `
Examples:
  # one MCP server, key from a file
  moor agent --endpoint http://127.0.0.1:8080 --tunnel tunnel_… --key-file agent.key --mcp http://127.0.0.1:3000/mcp
  # two MCP servers behind one tunnel, key from the environment
  ${KEY_VARIABLE}=… moor agent --endpoint https://moor.example --tunnel tunnel_… \\
    --mcp-channel main=http://127.0.0.1:3000/mcp --mcp-channel files=http://127.0.0.1:3001/mcp
`;

/** Adds `moor agent` to the program. */
export function registerAgentCommand(program: Command): void {
  program
    .command("agent")
    .description("connect MCP servers on this machine to a tunnel")
    .option("--endpoint <url>", "URL of the Moor service")
    .option("--tunnel <id>", "tunnel id")
    .option("--key-file <file>", `file with the tunnel's agent key (or set ${KEY_VARIABLE})`)
    .option("--mcp <url>", "Streamable HTTP URL of the MCP server")
    .option("--mcp-channel <name=url>", "an MCP server for one channel; may be repeated", append)
    .option("--mcp-headers-file <file>", "headers for the MCP servers, one `Name: value` a line")
    .option("--health <host:port>", "serve /healthz and /readyz there")
    .option(
      "--poll-wait-ms <ms>",
      "how long a poll waits",
      integerOption("--poll-wait-ms", 1_000, 300_000),
      25_000,
    )
    .option("--concurrency <n>", "commands served at once", integerOption("--concurrency", 1, 1_000), 10)
    .option(
      "--grace-ms <ms>",
      "time running commands get at stop",
      integerOption("--grace-ms", 0, GRACE_MS_HIGHEST),
      10_000,
    )
    .option("--insecure", "allow plain http to other machines")
    .addOption(
      new Option("--log-level <level>", "least severe log line").choices([...LOG_LEVELS]).default("info"),
    )
    .option("--log-http-raw-unsafe", "dump HTTP exchanges except polls to stderr; bodies are private")
    .addHelpText("after", EXAMPLES)
    .action((flags: AgentFlags) => runAgent(flags));
}

async function runAgent(flags: AgentFlags): Promise<void> {
  const options = agentOptions(flags);
  // Imported here: the other commands do not need a client to start.
  const { createAgent, createRawDump, listenForHealth, parseHealthAddress } = await import("@moor/client");
  const logger = createLogger({ level: flags.logLevel });
  const runtime = createNodeRuntime();
  const health = flags.health === undefined ? undefined : parseHealthAddress("--health", flags.health);
  const explainer = createFailureExplainer();
  const agent = createAgent(options, {
    runtime,
    logger,
    ...(flags.logHttpRawUnsafe === true && { dump: createRawDump((text) => process.stderr.write(text)) }),
    onConnected: () =>
      printMessage(`connected: tunnel ${options.tunnel} at ${new URL(options.endpoint).origin}`),
    onPollFailed: (failure) => explainer(failure),
  });
  let listener: HealthListener | undefined;
  if (health !== undefined) {
    listener = await listenForHealth("--health", health, () => agent.status().readiness);
    agent.startProbing();
    logger.info("health-listening", { host: health.host, port: listener.port });
  }
  const signals = nextSignal(["SIGTERM", "SIGINT"]);
  agent.start();
  const signal = await signals.first;
  signals.onFurther(() => process.exit(EXIT_CODE.refused));
  logger.info("agent-stopping", { signal, inProgress: agent.status().inProgress });
  await agent.stop(flags.graceMs);
  signals.release();
  await listener?.close();
  logger.info("agent-stopped");
}

function agentOptions(flags: AgentFlags): AgentOptions {
  const headersFile = flags.mcpHeadersFile;
  return {
    endpoint: required("--endpoint", flags.endpoint, "the URL of the service"),
    tunnel: required("--tunnel", flags.tunnel, "a tunnel id"),
    key: readKey(flags.keyFile),
    channels: channelOptions(flags),
    mcpHeaders: headersFile === undefined ? [] : parseHeadersFile(headersFile),
    pollWaitMs: flags.pollWaitMs,
    concurrency: flags.concurrency,
    isInsecureAllowed: flags.insecure === true,
  };
}

function required(option: string, value: string | undefined, expected: string): string {
  if (value === undefined || value === "") throw new ConfigError(option, "nothing", expected);
  return value;
}

function readKey(keyFile: string | undefined): Secret {
  if (keyFile !== undefined) return new Secret(readTextFile("--key-file", keyFile).trim());
  const key = process.env[KEY_VARIABLE];
  if (key === undefined || key === "") {
    throw new ConfigError(
      "--key-file",
      "nothing",
      `a file with the agent key, or the key in ${KEY_VARIABLE}`,
    );
  }
  return new Secret(key.trim());
}

function channelOptions({ mcp, mcpChannel }: AgentFlags): ChannelOption[] {
  const channels: ChannelOption[] = mcp === undefined ? [] : [{ mcpUrl: mcp }];
  for (const pair of mcpChannel ?? []) {
    const equals = pair.indexOf("=");
    if (equals < 1) throw new ConfigError("--mcp-channel", "a value without a name", "NAME=URL");
    channels.push({ name: pair.slice(0, equals), mcpUrl: pair.slice(equals + 1) });
  }
  return channels;
}

/** Lines of `Name: value`; empty ones and those that start with # are skipped. */
function parseHeadersFile(file: string): HeaderLine[] {
  const lines: HeaderLine[] = [];
  for (const [index, line] of readTextFile("--mcp-headers-file", file).split(/\r?\n/).entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const colon = line.indexOf(":");
    if (colon < 1)
      throw new ConfigError("--mcp-headers-file", `line ${index + 1} without a colon`, "Name: value");
    lines.push([line.slice(0, colon).trim(), line.slice(colon + 1).trim()]);
  }
  return lines;
}

function readTextFile(option: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unreadable";
    throw new ConfigError(option, redactKeys(`${JSON.stringify(file)} (${code})`), "a file that can be read");
  }
}

/** Says what a poll's failure asks of the reader, once for each kind until it changes. */
function createFailureExplainer(): (failure: PollFailure) => void {
  let said = "";
  return ({ status, fault }) => {
    const text = EXPLANATIONS[fault ?? status ?? 0];
    if (text === undefined || text === said) return;
    said = text;
    printMessage(text);
  };
}

const EXPLANATIONS: Readonly<Record<string | number, string>> = {
  401: "the service refuses the key (401): it is wrong, revoked, or the tunnel does not exist",
  403: "the service refuses the key (403): it belongs to another tunnel",
  404: "the service does not know this path (404): check --endpoint",
  dns: "the service's name cannot be resolved; trying again",
  refused: "nothing listens where --endpoint points; trying again",
  unreachable: "the service's network cannot be reached; trying again",
  tls: "the service's certificate cannot be trusted, or it does not speak TLS; trying again",
};

function append(value: string, previous: readonly string[] = []): string[] {
  return [...previous, value];
}
