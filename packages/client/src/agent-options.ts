// What an agent is told, and the check that turns it into settings nobody needs to doubt again.
//
// Spec: R1, R9 (tunnel and endpoint fixed for its life), R10 (reserved headers), T16, T17, T25 (key from a Secret).
// I1  AgentSettings are sound: every later use may rely on ranges and shapes. I2  No ConfigError holds a secret.

import {
  DEFAULT_CHANNEL,
  parseChannelName,
  parseTunnelId,
  POLL_WAIT_MS_DEFAULT,
  SERVER_INFO_CHANNELS_MAX,
  type ChannelName,
  type TunnelId,
} from "@moor/protocol";
import { ConfigError, type Secret } from "@moor/runtime";
import { parseEndpoint, parseHttpUrl, type Endpoint } from "./endpoint.ts";
import { isHeaderName, isHeaderValue, utf8AsHeaderValue, type HeaderLine } from "./http/header-lines.ts";
import { isOwnHeader } from "./targets/header-policy.ts";

/** One MCP server behind the agent. */
export interface ChannelOption {
  /** Channel name, `^[a-z0-9_-]{1,64}$`. Default `main`. */
  readonly name?: string;
  /** URL of its Streamable HTTP endpoint. */
  readonly mcpUrl: string;
}

/** What the agent is told. */
export interface AgentOptions {
  /** Service URL; it may have a path prefix. */
  readonly endpoint: string;
  /** Tunnel id, `tunnel_` and 32 characters of `[a-z0-9]`. */
  readonly tunnel: string;
  /** The tunnel's agent key. */
  readonly key: Secret;
  /** MCP servers, 1–32, distinct names. */
  readonly channels: readonly ChannelOption[];
  /** Headers sent to every MCP server; a command's own win (T20). Values are secrets and never logged. */
  readonly mcpHeaders?: readonly HeaderLine[];
  /** Headers added to every control-plane request, e.g. for a proxy; never any `X-Tunnel-*` (R10). */
  readonly extraHeaders?: readonly HeaderLine[];
  /** Wait a poll asks for, milliseconds. Default 25_000, range 1_000–300_000. */
  readonly pollWaitMs?: number;
  /** Commands served at once. Default 10, range 1–1_000. */
  readonly concurrency?: number;
  /** Allows plain http to hosts other than this machine. Default false. */
  readonly isInsecureAllowed?: boolean;
}

/** One checked MCP server. */
export interface ChannelSettings {
  readonly name: ChannelName;
  readonly mcpUrl: URL;
}

/** Checked options. */
export interface AgentSettings {
  readonly endpoint: Endpoint;
  readonly tunnel: TunnelId;
  readonly key: Secret;
  readonly channels: readonly ChannelSettings[];
  readonly mcpHeaders: readonly HeaderLine[];
  readonly extraHeaders: readonly HeaderLine[];
  readonly pollWaitMs: number;
  readonly concurrency: number;
}

/** Commands served at once unless configured. */
export const CONCURRENCY_DEFAULT = 10;
const CONCURRENCY_MAX = 1_000;
const POLL_WAIT_MS_LOWEST = 1_000;
const POLL_WAIT_MS_HIGHEST = 300_000;
const KEY_CHARS_MAX = 4_096;

/**
 * Checks what an agent is told.
 *
 * @throws ConfigError naming the flag of `moor agent` that sets the option at fault
 */
export function parseAgentOptions(options: AgentOptions): AgentSettings {
  const tunnel = parseTunnelId(options.tunnel);
  if (tunnel === undefined) {
    // Not repeated: a key pasted in its place would be.
    const got = `a text of ${options.tunnel.length} characters`;
    throw new ConfigError("--tunnel", got, "tunnel_ and 32 characters of a–z and 0–9");
  }
  const keyText = options.key.reveal();
  if (!/^[\x21-\x7e]+$/.test(keyText) || keyText.length > KEY_CHARS_MAX) {
    throw new ConfigError(
      "--key-file",
      "a key that is empty or cannot be a header value",
      "the agent key alone",
    );
  }
  return {
    endpoint: parseEndpoint("--endpoint", options.endpoint, options.isInsecureAllowed ?? false),
    tunnel,
    key: options.key,
    channels: parseChannels(options.channels),
    mcpHeaders: parseHeaderLines("--mcp-headers-file", options.mcpHeaders ?? []),
    extraHeaders: parseExtraHeaders(options.extraHeaders ?? []),
    pollWaitMs: wholeNumber(
      "--poll-wait-ms",
      options.pollWaitMs ?? POLL_WAIT_MS_DEFAULT,
      POLL_WAIT_MS_LOWEST,
      POLL_WAIT_MS_HIGHEST,
    ),
    concurrency: wholeNumber("--concurrency", options.concurrency ?? CONCURRENCY_DEFAULT, 1, CONCURRENCY_MAX),
  };
}

function wholeNumber(option: string, value: number, min: number, max: number): number {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw new ConfigError(option, String(value), `a whole number from ${min} to ${max}`);
}

function parseChannels(options: readonly ChannelOption[]): ChannelSettings[] {
  if (options.length === 0 || options.length > SERVER_INFO_CHANNELS_MAX) {
    throw new ConfigError(
      "--mcp",
      `${options.length} MCP servers`,
      `--mcp URL, or --mcp-channel NAME=URL up to ${SERVER_INFO_CHANNELS_MAX} times`,
    );
  }
  const channels = options.map(({ name, mcpUrl }) => {
    const option = name === undefined ? "--mcp" : "--mcp-channel";
    const channel = name === undefined ? DEFAULT_CHANNEL : parseChannelName(name);
    if (channel === undefined) {
      throw new ConfigError(option, shown(name ?? ""), "a name of 1–64 characters of a–z, 0–9, _ and -");
    }
    return { name: channel, mcpUrl: parseHttpUrl(option, mcpUrl) };
  });
  const twice = channels.find(
    ({ name }, index) => channels.findIndex((other) => other.name === name) !== index,
  );
  if (twice !== undefined) throw new ConfigError("--mcp-channel", `${twice.name} twice`, "each channel once");
  return channels;
}

function parseExtraHeaders(lines: readonly HeaderLine[]): HeaderLine[] {
  for (const [name] of lines) {
    if (name.toLowerCase() === "authorization") {
      throw new ConfigError("extra header", "Authorization", "any other header; the key goes there");
    }
  }
  return parseHeaderLines("extra header", lines);
}

function parseHeaderLines(option: string, lines: readonly HeaderLine[]): HeaderLine[] {
  return lines.map(([name, value]) => {
    const bytes = utf8AsHeaderValue(value);
    if (!isHeaderName(name)) throw new ConfigError(option, "a line that is no header", "Name: value");
    if (!isHeaderValue(bytes)) {
      throw new ConfigError(option, `a value of ${name} with control characters`, "printable text");
    }
    if (isOwnHeader(name)) {
      throw new ConfigError(option, name, "a header that is not the agent's or the connection's own");
    }
    return [name, bytes];
  });
}

function shown(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
