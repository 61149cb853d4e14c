// Which node an operator command speaks to: `--operator URL` with $MOOR_OPERATOR_TOKEN, or a node of this machine by
// the operator.json in its data directory.
//
// I1  The token comes from the environment or a file, never from the command line, and goes in clear text to loopback only.
// I2  No message holds any part of it.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Command, Option } from "commander";
import { isLoopbackHost } from "@moor/protocol";
import { ConfigError, errorCodeOf, Secret } from "@moor/runtime";
import { commandName } from "./command-name.ts";
import { defaultDataDir } from "./data-dir.ts";
import { UnreachableError } from "./exit-code.ts";

/** Where the operator listener is and what opens it. */
export interface OperatorAddress {
  /** Base URL without a trailing slash. */
  readonly url: string;
  readonly token: Secret;
}

/** The options that name the node. */
export interface OperatorOptions {
  readonly operator?: string;
  readonly data?: string;
}

/** Adds `--operator` and `--data` to a command. */
export function addOperatorOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--operator <url>",
        "operator listener of the node; its token in $MOOR_OPERATOR_TOKEN",
      ).conflicts("data"),
    )
    .addOption(
      new Option("--data <dir>", `data directory of a node on this machine (default: ${defaultDataDir()})`),
    );
}

/** The address the options mean. Throws ConfigError (exit 2) or UnreachableError (exit 3). */
export function findOperator(
  options: OperatorOptions,
  env: NodeJS.ProcessEnv = process.env,
): OperatorAddress {
  if (options.operator === undefined) return readOperatorFile(options.data ?? defaultDataDir(env));
  const token = env["MOOR_OPERATOR_TOKEN"] ?? "";
  if (token === "") {
    throw new ConfigError(
      "MOOR_OPERATOR_TOKEN",
      "nothing",
      "the token of the operator listener named by --operator",
    );
  }
  return {
    url: checkUrl("--operator", options.operator),
    token: checkToken("MOOR_OPERATOR_TOKEN", token.trim()),
  };
}

function readOperatorFile(dataDir: string): OperatorAddress {
  const path = join(dataDir, "operator.json");
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const reason = errorCodeOf(error, "unreadable");
    throw new UnreachableError(
      `cannot find a node: ${path} (${reason})`,
      `Start one with "${commandName()} dev --data ${dataDir}", or name one with --data DIR or --operator URL.`,
    );
  }
  const { url, token } = parseOperatorFile(path, text);
  return { url: checkUrl(path, url), token: checkToken(path, token) };
}

function parseOperatorFile(path: string, text: string): { readonly url: string; readonly token: string } {
  try {
    const content: unknown = JSON.parse(text);
    if (typeof content === "object" && content !== null && "url" in content && "token" in content) {
      const { url, token } = content;
      if (typeof url === "string" && typeof token === "string") return { url, token };
    }
  } catch {
    // Falls through: both ways of being wrong are told alike.
  }
  throw new ConfigError(path, "no operator URL and token", "the file that a running node writes");
}

/** What cannot be a header value would be repeated by whoever refuses to send it. */
function checkToken(option: string, text: string): Secret {
  if (/^[\x21-\x7e]+$/.test(text)) return new Secret(text);
  throw new ConfigError(
    option,
    "a token with spaces, line breaks or other characters",
    "the operator token alone",
  );
}

function checkUrl(option: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url?.protocol === "http:" && isLoopbackHost(url.hostname);
  const isBare =
    url !== undefined && url.username === "" && url.password === "" && url.search === "" && url.hash === "";
  if (url !== undefined && isBare && (isPlain || url.protocol === "https:"))
    return url.href.replace(/\/+$/, "");
  const got = url === undefined ? "no URL" : `${url.protocol}//${url.host}`;
  throw new ConfigError(
    option,
    got,
    "an https:// URL, or http:// to a loopback address, without user, query or fragment",
  );
}
