// `moor box enroll`: gives a box its identity and the service the box's public key, against a code that an operator printed.
//
// Spec: L28; `POST /v1/enroll`.
// I1  The private key never leaves its file. I2  The code is not printed. One that was given as an argument leaves the list
//     of processes, which others on the machine can read, before anything else is done.
// I3  A service key file that is there already keeps its keys: what comes back is added.

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { OneShotAnswer } from "@moor/client";
import { LINK_PATH, LINK_TROUBLE, parseHomeId, parseNonce } from "@moor/protocol";
import { ConfigError, createNodeRuntime, errorCodeOf, Secret } from "@moor/runtime";
import { Option, type Command } from "commander";
import { RefusedError, UnreachableError } from "../exit-code.ts";
import {
  assertFolder,
  findIdentity,
  publicKeyLines,
  readSecret,
  serviceKeyLines,
  trustOf,
} from "../link-files.ts";
import { commandName } from "../command-name.ts";
import { printAnswer, printJson } from "../output.ts";

interface EnrollFlags {
  readonly endpoint: string;
  readonly code?: string;
  readonly codeFile?: string;
  readonly identity: string;
  readonly serviceKey: string;
  readonly caFile?: string;
  readonly json?: true;
}

/** What the service answers. */
interface Enrolled {
  readonly home: string;
  readonly serviceKeys: readonly string[];
}

const DEADLINE_MS = 30_000;

const EXAMPLES = `
Example:
  moor box enroll --endpoint wss://cloud.example --identity box.pem --service-key service.keys
  (the operator gets the code from: moor home enroll HOME)
`;

/** Adds `moor box enroll`. */
export function registerBoxEnrollCommand(box: Command): void {
  box
    .command("enroll")
    .description("register this box's public key with the service, against a code")
    .requiredOption("--endpoint <url>", "wss://HOST[:PORT] or https://… of the service")
    .addOption(new Option("--code <code>", "the code; best left out: it is asked for").conflicts("codeFile"))
    .option("--code-file <file>", "a file with the code; - for stdin, which is the default")
    .requiredOption("--identity <file>", "Ed25519 private key, PKCS#8 PEM; made if there is none")
    .requiredOption("--service-key <file>", "where the service's keys are kept")
    .option("--ca-file <file>", "PEM certificates to trust instead of the system's")
    .option("--json", "print JSON")
    .addHelpText("after", EXAMPLES)
    .action((flags: EnrollFlags) => enroll(flags));
}

async function enroll(flags: EnrollFlags): Promise<void> {
  if (flags.code !== undefined) process.title = "moor box enroll";
  const { createNodeOneShotHttp, oneShotUrl, parseLinkEndpoint } = await import("@moor/client");
  const endpoint = parseLinkEndpoint("--endpoint", flags.endpoint);
  assertFolder("--service-key", flags.serviceKey);
  const { identity } = findIdentity("--identity", flags.identity);
  const code = (await readCode(flags)).reveal();
  const http = createNodeOneShotHttp(createNodeRuntime(), trustOf(flags.caFile));
  const answer = await http.request({
    url: oneShotUrl(endpoint, endpoint.base, LINK_PATH.enroll),
    method: "POST",
    headers: [["Content-Type", "application/json"]],
    body: JSON.stringify({ code, publicKey: identity.publicKey }),
    deadlineMs: DEADLINE_MS,
  });
  await http.close();
  const { home, serviceKeys } = readAnswer(answer);
  keepServiceKeys(flags.serviceKey, serviceKeys);
  if (flags.json === true) return printJson({ home, publicKey: identity.publicKey, serviceKeys });
  printAnswer(`home ${home}\n${publicKeyLines(identity)}\nNow link it:`);
  printAnswer(
    `  ${commandName()} box --endpoint ${flags.endpoint} --home ${home} --identity ${flags.identity} ` +
      `--record ${home}.json --service-key ${flags.serviceKey}`,
  );
}

async function readCode({ code, codeFile: file = "-" }: EnrollFlags): Promise<Secret> {
  if (code !== undefined) return assertCode(code);
  if (file !== "-" || !process.stdin.isTTY) return readSecret("--code-file", file);
  const { createInterface } = await import("node:readline/promises");
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return assertCode(await lines.question(`Code, as ${commandName()} home enroll printed it: `));
  } finally {
    lines.close();
  }
}

function assertCode(text: string): Secret {
  const code = text.trim();
  if (code !== "") return new Secret(code);
  throw new ConfigError("--code", "nothing", "the code, as `moor home enroll` printed it");
}

function readAnswer(answer: OneShotAnswer): Enrolled {
  if (answer.kind === "fault") {
    throw new UnreachableError(LINK_TROUBLE[answer.trouble].summary, "Check --endpoint and the network.");
  }
  const { status } = answer;
  if (status === 401) {
    throw new RefusedError(
      "enrolment_refused",
      "the code is wrong, used or too old: ask for a new one (moor home enroll HOME)",
    );
  }
  if (status >= 500 || status === 429) {
    throw new UnreachableError(`the service answers ${status}`, "Try again in a while.");
  }
  const enrolled = status === 200 ? parseEnrolled(answer.body) : undefined;
  if (enrolled === undefined) {
    throw new UnreachableError(`no Moor answers there (status ${status})`, "Check --endpoint.");
  }
  return enrolled;
}

function parseEnrolled(body: string): Enrolled | undefined {
  try {
    const { home, serviceKeys } = JSON.parse(body) as { home: unknown; serviceKeys: unknown };
    if (typeof home !== "string" || parseHomeId(home) === undefined) return undefined;
    if (!Array.isArray(serviceKeys) || serviceKeys.length === 0) return undefined;
    const isSound = serviceKeys.every((key) => typeof key === "string" && parseNonce(key) !== undefined);
    return isSound ? { home, serviceKeys } : undefined;
  } catch {
    return undefined;
  }
}

function keepServiceKeys(file: string, keys: readonly string[]): void {
  try {
    const text = existsSync(file) ? readFileSync(file, "utf8") : "";
    const known = serviceKeyLines(text).map(({ key }) => key);
    const added = keys.filter((key) => !known.includes(key));
    const separator = text === "" || text.endsWith("\n") ? "" : "\n";
    // Added, not written anew: a disk that is full now must not cost the keys that were there.
    appendFileSync(file, separator + added.map((key) => `${key}\n`).join(""));
  } catch (error) {
    const got = `${JSON.stringify(file)} (${errorCodeOf(error, "unusable")})`;
    // The code is spent: the keys are the reader's to keep.
    throw new ConfigError(
      "--service-key",
      got,
      `a file that can be written; it should hold\n${keys.join("\n")}`,
    );
  }
}
