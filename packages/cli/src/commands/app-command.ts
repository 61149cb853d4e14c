// `moor app`: the reference program of an app. Sends a command over a link or as a one-shot, looks at the snapshot, watches.
//
// Spec: L19, L20, L30, L31, L33, L34.
// I1  The token comes from a file and is never printed. I2  Nothing is sent again by itself: `unknown` is exit code 4, and the
//     id to ask again with is printed, also when Ctrl-C ends the wait for a command that was sent.

import type { AppLink, AppLinkListeners, ClientLinkState } from "@moor/client";
import {
  ConfigError,
  createLogger,
  createNodeRuntime,
  LOG_LEVELS,
  randomHex,
  sleep,
  type LogLevel,
  type Runtime,
} from "@moor/runtime";
import { Argument, type Command, Option } from "commander";
import { refusedOneShot, tellEnding, tellSnapshot } from "../app-endings.ts";
import { EXIT_CODE, UnreachableError } from "../exit-code.ts";
import { assertFolder, readServiceKeys, readTextFile, readToken, trustOf } from "../link-files.ts";
import { createStateReporter, sentenceOf } from "../link-output.ts";
import { integerOption } from "../option-parsers.ts";
import { printAnswer, printJson } from "../output.ts";
import { nextSignal } from "../signals.ts";

const VERBS = ["send", "once", "now", "watch"] as const;

interface AppFlags {
  readonly endpoint: string;
  readonly tokenFile: string;
  readonly serviceKey?: readonly string[];
  readonly app: string;
  readonly record?: string;
  readonly id?: string;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly ifNoneMatch?: string;
  readonly caFile?: string;
  readonly json?: true;
  readonly logLevel: LogLevel;
}

const AUTH_ADVICE = "Is the token of kind app, and not revoked (moor home token list)?";

const EXAMPLES = `
Verbs:
  send   a command over a link          (--service-key is needed)
  once   a command as one HTTP request
  now    the home's snapshot; the token is an extension token
  watch  events, presence and states, one JSON line each, until Ctrl-C   (--service-key is needed)

DATA is JSON; without it, it is read from stdin.

Examples:
  moor app --endpoint wss://cloud.example --token-file app.token --service-key service.keys send '{"heat":21}'
  moor app --endpoint wss://cloud.example --token-file app.token once '{"heat":21}'
  # ask for the result of a command whose outcome was unknown
  moor app --endpoint wss://cloud.example --token-file app.token --id 5f0e… once '{"heat":21}'
  moor app --endpoint wss://cloud.example --token-file extension.token now

Exit codes: 0 result, 1 refused, not delivered or expired, 2 usage, 3 cannot reach the service, 4 outcome unknown.
`;

/** Adds `moor app` to the program. */
export function registerAppCommand(program: Command): void {
  program
    .command("app")
    .description("send a command to a home's box, look at its snapshot, or watch it")
    .addArgument(new Argument("<verb>", "what to do").choices(VERBS))
    .argument("[data]", "the command's data, JSON; default: stdin")
    .requiredOption("--endpoint <url>", "wss://HOST[:PORT] or https://… of the service")
    .requiredOption("--token-file <file>", "file with the app token, or the extension token for `now`")
    // Not variadic: it would swallow the verb.
    .option(
      "--service-key <file>",
      "keys of the service, one base64url raw key a line; may be repeated",
      append,
    )
    .option("--app <id>", "this installation's name", "moor-cli")
    .option("--record <file>", "where the link record is kept; default: nowhere")
    .option("--id <id>", "the command's id; default: a new one")
    .option("--ttl-ms <ms>", "the command's time", integerOption("--ttl-ms", 0, 3_600_000), 30_000)
    .option("--wait-ms <ms>", "time to get online in", integerOption("--wait-ms", 0, 3_600_000), 30_000)
    .option("--if-none-match <etag>", "for `now`: the ETag that is known already")
    .option("--ca-file <file>", "PEM certificates to trust instead of the system's")
    .option("--json", "print outcome and id with the result")
    .addOption(
      new Option("--log-level <level>", "least severe log line").choices([...LOG_LEVELS]).default("error"),
    )
    .addHelpText("after", EXAMPLES)
    .action((verb: (typeof VERBS)[number], data: string | undefined, flags: AppFlags) => {
      return runApp(verb, data, flags);
    });
}

async function runApp(verb: (typeof VERBS)[number], data: string | undefined, flags: AppFlags) {
  switch (verb) {
    case "send":
      return runSend(flags, data);
    case "once":
      return runOnce(flags, data);
    case "now":
      return runNow(flags);
    case "watch":
      return runWatch(flags);
  }
}

async function runSend(flags: AppFlags, dataText: string | undefined): Promise<void> {
  const runtime = createNodeRuntime();
  const data = await readData(dataText);
  const id = flags.id ?? randomHex(runtime, 16);
  const online = Promise.withResolvers<"online" | ClientLinkState>();
  let absence: ClientLinkState | undefined;
  const logger = createLogger({ level: flags.logLevel });
  const report = createStateReporter(logger, AUTH_ADVICE);
  const app = await createApp(flags, runtime, {
    onWarning: (code) => logger.warn("link-warning", { code }),
    onState: (state) => {
      if (state.kind === "refused" && state.why === "auth") return online.resolve(state);
      report(state); // what someone must act on is said now, not when the wait is over
      if (state.kind === "online") online.resolve("online");
      else if (state.kind === "refused" || state.kind === "reconnecting") absence = state;
    },
  });
  app.start();
  const waiting = new AbortController();
  const waited = await Promise.race([online.promise, sleep(runtime, flags.waitMs, waiting.signal)]);
  waiting.abort();
  try {
    if (waited !== "online") throw unreachable(typeof waited === "string" ? absence : waited, flags);
    const ending = await awaitSent(
      () => app.send({ id, ttlMs: flags.ttlMs, data }),
      () => app.stop(),
    );
    tellEnding(ending.kind === "not_delivered" ? { ...ending, retryAfterMs: undefined } : ending, id, flags);
  } finally {
    await app.stop();
  }
}

async function runOnce(flags: AppFlags, dataText: string | undefined): Promise<void> {
  const { sendOnce } = await import("@moor/client");
  const runtime = createNodeRuntime();
  const data = await readData(dataText);
  const id = flags.id ?? randomHex(runtime, 16);
  const token = readToken("--token-file", flags.tokenFile);
  const ports = await oneShotPorts(flags, runtime);
  const ending = await awaitSent(
    () => sendOnce(ports, token, { id, ttlMs: flags.ttlMs, data }),
    () => ports.http.close(),
  );
  await ports.http.close();
  tellEnding(ending, id, flags);
}

async function runNow(flags: AppFlags): Promise<void> {
  const { lookNow } = await import("@moor/client");
  const ports = await oneShotPorts(flags, createNodeRuntime());
  const ending = await lookNow(ports, readToken("--token-file", flags.tokenFile), flags.ifNoneMatch);
  await ports.http.close();
  tellSnapshot(ending, flags);
}

async function runWatch(flags: AppFlags): Promise<void> {
  const logger = createLogger({ level: flags.logLevel });
  const report = createStateReporter(logger, AUTH_ADVICE);
  const app = await createApp(flags, createNodeRuntime(), {
    onEvent: (event) => printAnswer(`{"event":${event.text}}`),
    onPresence: ({ box, sinceMs }) => printJson({ presence: box, sinceMs }),
    onState: (state) => {
      report(state);
      printJson({ state: state.kind, ...("host" in state && { host: state.host }), ...whyOf(state) });
    },
    onWarning: (code) => logger.warn("link-warning", { code }),
  });
  const signals = nextSignal(["SIGTERM", "SIGINT"]);
  app.start();
  await signals.first;
  signals.release();
  await app.stop();
}

async function createApp(flags: AppFlags, runtime: Runtime, listeners: AppLinkListeners): Promise<AppLink> {
  const { createAppLink, createFileRecordStore, createUptimeWakeSource } = await import("@moor/client");
  if (flags.serviceKey === undefined) {
    throw new ConfigError(
      "--service-key",
      "nothing",
      "a file with the service's keys: a link is verified with them",
    );
  }
  if (flags.record !== undefined) assertFolder("--record", flags.record);
  return createAppLink(
    {
      endpoint: flags.endpoint,
      token: readToken("--token-file", flags.tokenFile),
      app: flags.app,
      serviceKeys: readServiceKeys("--service-key", flags.serviceKey),
    },
    listeners,
    {
      runtime,
      ...trustOf(flags.caFile),
      wakeSource: createUptimeWakeSource(runtime),
      ...(flags.record !== undefined && { recordStore: createFileRecordStore(flags.record) }),
    },
  );
}

async function oneShotPorts(flags: AppFlags, runtime: Runtime) {
  const { createNodeOneShotHttp, parseLinkEndpoint } = await import("@moor/client");
  return {
    runtime,
    endpoint: parseLinkEndpoint("--endpoint", flags.endpoint),
    http: createNodeOneShotHttp(runtime, trustOf(flags.caFile)),
    liveHost: () => undefined,
  };
}

async function readData(text: string | undefined) {
  const { RawJson } = await import("@moor/client");
  const isStdin = text === undefined || text === "-";
  try {
    return new RawJson((isStdin ? readTextFile("DATA", "-") : text).trim());
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError("DATA", isStdin ? "no JSON on stdin" : "a text that is no JSON", "one JSON value");
  }
}

/** Waits for the ending of a command. Ctrl-C and SIGTERM make `giveUp` end it: what was written is then `unknown`. */
async function awaitSent<Ending>(send: () => Promise<Ending>, giveUp: () => Promise<void>): Promise<Ending> {
  const signals = nextSignal(["SIGINT", "SIGTERM"]);
  void signals.first.then(giveUp);
  signals.onFurther(() => process.exit(EXIT_CODE.unknown));
  try {
    return await inBounds(send);
  } finally {
    signals.release();
  }
}

/** What is out of the bounds of a command is the user's to mend. */
async function inBounds<Ending>(send: () => Promise<Ending>): Promise<Ending> {
  try {
    return await send();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ConfigError("moor app", "a command out of bounds", error.message);
  }
}

function unreachable(state: ClientLinkState | undefined, flags: AppFlags): Error {
  if (state !== undefined && "why" in state) {
    if (state.why === "auth") return refusedOneShot("auth");
    return new UnreachableError(sentenceOf(state), "Check --endpoint, --service-key and the network.");
  }
  return new UnreachableError(`not online within ${flags.waitMs} ms`, "Check --endpoint and the network.");
}

function whyOf(state: ClientLinkState): Record<string, unknown> {
  return "why" in state ? { why: state.why, waitMs: Math.round(state.waitMs) } : {};
}

function append(value: string, previous: readonly string[] = []): string[] {
  return [...previous, value];
}
