// `moor box`: the reference program of a box. Links, acts on commands, tells its state.
//
// Spec: L9–L18, L20, L27–L32.
// I1  Keys come from files and are never printed, but for the public half. I2  The first SIGTERM or SIGINT lets running
//     commands finish within the grace and exits 0; a second one ends it at once with 1.

import type { BoxLink, CommandHandler } from "@moor/client";
import {
  ConfigError,
  createLogger,
  createNodeRuntime,
  LOG_LEVELS,
  type Logger,
  type LogLevel,
} from "@moor/runtime";
import { type Command, Option } from "commander";
import { createExecHandler } from "../box-exec.ts";
import { assertFeed, followFeed } from "../box-feed.ts";
import { EXIT_CODE } from "../exit-code.ts";
import { assertFolder, findIdentity, publicKeyLines, readServiceKeys, trustOf } from "../link-files.ts";
import { createStateReporter } from "../link-output.ts";
import { integerOption } from "../option-parsers.ts";
import { printAnswer } from "../output.ts";
import { nextSignal } from "../signals.ts";
import { registerBoxEnrollCommand } from "./box-enroll-command.ts";

interface GivenFlags {
  readonly endpoint?: string;
  readonly home?: string;
  readonly identity?: string;
  readonly record?: string;
  readonly serviceKey?: readonly string[];
  readonly log?: string;
  readonly exec?: string;
  readonly feed?: string;
  readonly caFile?: string;
  readonly graceMs: number;
  readonly logLevel: LogLevel;
}

type Required = "endpoint" | "home" | "identity" | "record" | "serviceKey";
type BoxFlags = GivenFlags & { readonly [Name in Required]-?: NonNullable<GivenFlags[Name]> };

const GRACE_MS_HIGHEST = 3_600_000;

const EXAMPLES = `
Examples:
  # answers every command with its own data
  moor box --endpoint wss://cloud.example --home kitchen --identity box.pem --record box.json --service-key service.keys
  # a program acts: the command's data on its stdin, JSON on its stdout is the result
  moor box --endpoint wss://cloud.example --home kitchen --identity box.pem --record box.json --service-key service.keys \\
    --exec ./heating.sh
  # events and snapshots from another program: lines of {"event":…} and {"now":…}
  ./sensors | moor box … --feed -
`;

/** Adds `moor box` to the program. */
export function registerBoxCommand(program: Command): void {
  const box = program
    .command("box")
    .description("link a box to its home's shard and act on commands")
    .enablePositionalOptions()
    .option("--endpoint <url>", "wss://HOST[:PORT] of the service; ws:// only on this machine")
    .option("--home <id>", "the box's home")
    .option("--identity <file>", "Ed25519 private key, PKCS#8 PEM; made if there is none")
    .option("--record <file>", "where the link record is kept")
    .option("--service-key <file...>", "keys of the service, one base64url raw key a line; may be repeated")
    .option("--log <file>", "where commands are remembered (default: the record's path and .log)")
    .option("--exec <command>", "a command line that acts on commands; without it they are echoed")
    .option("--feed <file>", 'lines of {"event":…} and {"now":…} to tell; - for stdin')
    .option("--ca-file <file>", "PEM certificates to trust instead of the system's")
    .option(
      "--grace-ms <ms>",
      "time running commands get at stop",
      integerOption("--grace-ms", 0, GRACE_MS_HIGHEST),
      10_000,
    )
    .addOption(
      new Option("--log-level <level>", "least severe log line").choices([...LOG_LEVELS]).default("info"),
    )
    .addHelpText("after", EXAMPLES)
    // Not commander's own check, which speaks of too many arguments where a verb was mistyped.
    .allowExcessArguments()
    .action((flags: GivenFlags, { args }: Command) => {
      if (args.length > 0)
        throw new ConfigError("moor box", "a word that is no verb", "enroll, or options alone");
      return runBox(withAll(flags));
    });
  registerBoxEnrollCommand(box);
}

/** Not commander's own check, which `moor box enroll` would have to pass too. */
function withAll(flags: GivenFlags): BoxFlags {
  const { endpoint, home, identity, record, serviceKey } = flags;
  return {
    ...flags,
    endpoint: required("--endpoint", endpoint, "wss://HOST[:PORT] of the service"),
    home: required("--home", home, "the box's home"),
    identity: required("--identity", identity, "a file for the box's private key"),
    record: required("--record", record, "a file for the link record"),
    serviceKey: required("--service-key", serviceKey, "files with the service's keys"),
  };
}

function required<Value>(option: string, value: Value | undefined, expected: string): Value {
  if (value === undefined || value === "") throw new ConfigError(option, "nothing", expected);
  return value;
}

async function runBox(flags: BoxFlags): Promise<void> {
  const client = await import("@moor/client");
  client.parseLinkEndpoint("--endpoint", flags.endpoint); // before a file is made
  const logPath = flags.log ?? `${flags.record}.log`;
  assertFolder("--record", flags.record);
  assertFolder("--log", logPath);
  if (flags.feed !== undefined) assertFeed("--feed", flags.feed);
  const serviceKeys = readServiceKeys("--service-key", flags.serviceKey);
  const { identity, isNew } = findIdentity("--identity", flags.identity);
  if (isNew) printAnswer(publicKeyLines(identity));
  const logger = createLogger({ level: flags.logLevel });
  const runtime = createNodeRuntime();
  const { home, endpoint } = flags;
  const commandLog = await client.openFileCommandLog({
    path: logPath,
    home,
    runtime,
    onWarning: (code) => logger.error("command-log-warning", { code }),
  });
  const box = client.createBoxLink(
    { endpoint, home, identity, serviceKeys },
    {
      runtime,
      commandLog,
      recordStore: client.createFileRecordStore(flags.record),
      dialler: client.createWsDialler(trustOf(flags.caFile)),
      wakeSource: client.createUptimeWakeSource(runtime),
      onCommand: logged(logger, handlerOf(flags)),
      onState: createStateReporter(
        logger,
        `Is it enrolled for ${home} (moor box enroll), and is no other one since?`,
      ),
      onWarning: (code) => logger.warn("link-warning", { code }),
    },
  );
  await serve(box, flags, logger);
  await commandLog.close();
  logger.info("box-stopped");
}

/** Links until a signal, then stops. */
async function serve(box: BoxLink, { feed, graceMs }: BoxFlags, logger: Logger): Promise<void> {
  const signals = nextSignal(["SIGTERM", "SIGINT"]);
  const feeding = new AbortController();
  box.start();
  if (feed !== undefined) void followFeed("--feed", feed, box, logger, feeding.signal);
  const signal = await signals.first;
  signals.onFurther(() => process.exit(EXIT_CODE.refused));
  logger.info("box-stopping", { signal, inProgress: box.inProgress });
  feeding.abort();
  await box.stop(graceMs);
  signals.release();
}

function handlerOf({ exec }: BoxFlags): CommandHandler {
  return exec === undefined ? ({ data }) => data : createExecHandler(exec);
}

function logged(logger: Logger, handler: CommandHandler): CommandHandler {
  return async (command) => {
    const { id, app, ttlMs } = command;
    logger.debug("command-begun", { id, app, ttlMs });
    const result = await handler(command);
    logger.debug("command-ended", { id });
    return result;
  };
}
