// What an agent says about the MCP servers behind it: its channels and how they keep sessions.
// Spec: T8, T16.   Pure.
//
// I1  Malformed or unknown is as absent (T8): the parser answers `undefined` and never throws.
// I2  Version 1 knows no `stateless`: there it is an unknown field and ignored, like every other.

import { SERVER_INFO_BYTES_MAX, SERVER_INFO_CHANNELS_MAX } from "./limits.ts";
import { parseChannelName, type ChannelName } from "./names.ts";

/** One channel of an agent. */
export interface ServerInfoChannel {
  readonly name: ChannelName;
  /** The server keeps no MCP session, so that every instance may serve every message. Needs version 2. */
  readonly stateless: boolean;
  /** An MCP session lives in the process that answered its `initialize` (T8). */
  readonly procAffinity: boolean;
}

/**
 * Reads the `X-Tunnel-MCP-Server-Info` of one request.
 *
 * @param fieldLines the values of its separate lines
 * @returns its channels, at least one; `undefined`, as if absent, unless there is exactly one line of at most 4096
 *   bytes holding version 1 or 2 with 1–32 channels of distinct names and flags that are booleans
 */
export function parseServerInfo(fieldLines: readonly string[]): readonly ServerInfoChannel[] | undefined {
  const [line] = fieldLines;
  if (line === undefined || fieldLines.length > 1 || line.length > SERVER_INFO_BYTES_MAX) return undefined;
  const info = parseObject(line);
  if (info === undefined || (info["version"] !== 1 && info["version"] !== 2)) return undefined;
  if (!Array.isArray(info["channels"])) return undefined;
  const isVersion2 = info["version"] === 2;
  const channels: ServerInfoChannel[] = [];
  for (const entry of info["channels"]) {
    const channel = parseChannel(entry, isVersion2);
    if (channel === undefined) return undefined;
    channels.push(channel);
  }
  return isSound(channels) ? channels : undefined;
}

/**
 * The compact header value that declares these channels: keys in the order version, channels, name, stateless,
 * proc_affinity; false omitted; version 2 only if a channel is stateless. Spec T16.
 *
 * @throws RangeError for no channel, more than 32, a name twice, or more than 4096 bytes
 */
export function encodeServerInfo(channels: readonly ServerInfoChannel[]): string {
  if (!isSound(channels)) throw new RangeError("server info needs 1 to 32 channels of distinct names");
  const value = JSON.stringify({
    version: channels.some((channel) => channel.stateless) ? 2 : 1,
    channels: channels.map(({ name, stateless, procAffinity }) => ({
      name,
      ...(stateless && { stateless }),
      ...(procAffinity && { proc_affinity: procAffinity }),
    })),
  });
  if (value.length > SERVER_INFO_BYTES_MAX) throw new RangeError(`server info of ${value.length} bytes`);
  return value;
}

function parseChannel(entry: unknown, isVersion2: boolean): ServerInfoChannel | undefined {
  if (!isObject(entry) || typeof entry["name"] !== "string") return undefined;
  const name = parseChannelName(entry["name"]);
  const stateless = isVersion2 ? (entry["stateless"] ?? false) : false;
  const procAffinity = entry["proc_affinity"] ?? false;
  if (name === undefined || typeof stateless !== "boolean" || typeof procAffinity !== "boolean")
    return undefined;
  return { name, stateless, procAffinity };
}

function isSound(channels: readonly ServerInfoChannel[]): boolean {
  const names = new Set(channels.map((channel) => channel.name));
  return (
    channels.length >= 1 && channels.length <= SERVER_INFO_CHANNELS_MAX && names.size === channels.length
  );
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
