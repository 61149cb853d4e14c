// The names of the wire: headers, command and response types, and the ids that travel in paths and bodies.
// Spec: R1, R5, R10, T1, T4–T6, T8, T16; L2 for Ftw-Shard. Names of the link plane: link-names.ts.
//
// I1  An id of a branded type has passed its parser: code that takes one never validates it again.
// I2  Header names are written in the case of the spec; peers compare them without regard to case.

/** Header names of the tunnel wire. Compare without regard to case. Spec R1, R5, T3, T5, T8, T16, L2. */
export const HEADER = {
  capabilities: "X-Tunnel-Client-Capabilities",
  shardToken: "X-Tunnel-Shard-Token",
  clientName: "X-Tunnel-Client-Name",
  clientVersion: "X-Tunnel-Client-Version",
  instanceId: "X-Tunnel-Client-Instance-Id",
  wireVersion: "X-Tunnel-Client-Wire-Protocol-Version",
  serverInfo: "X-Tunnel-MCP-Server-Info",
  requestId: "X-Request-Id",
  mcpSessionId: "Mcp-Session-Id",
  mcpProtocolVersion: "MCP-Protocol-Version",
  lastEventId: "Last-Event-Id",
  authorization: "Authorization",
  accept: "Accept",
  contentType: "Content-Type",
  cacheControl: "Cache-Control",
  retryAfter: "Retry-After",
  date: "Date",
  userAgent: "User-Agent",
  allow: "Allow",
  wwwAuthenticate: "WWW-Authenticate",
  ftwShard: "Ftw-Shard",
} as const;

/** Headers of an MCP server's answer that may reach the caller. Spec T11. */
export const RESPONSE_HEADERS: readonly string[] = [
  HEADER.contentType,
  HEADER.mcpSessionId,
  HEADER.mcpProtocolVersion,
  HEADER.lastEventId,
  HEADER.wwwAuthenticate,
];

/** Prefix of every header that belongs to the tunnel wire; configured extra headers may not use it. Lower case. Spec R10. */
export const RESERVED_HEADER_PREFIX = "x-tunnel-";

/** Whether a header name belongs to the tunnel wire, and so may not be configured or passed through. Spec R10. */
export function isReservedHeader(name: string): boolean {
  return name.toLowerCase().startsWith(RESERVED_HEADER_PREFIX);
}

/** Capability of clients that understand a poll correction. Compared exactly, case included. Spec R1, R2. */
export const CAPABILITY_WRONG_CLUSTER = "wrong-cluster-v1";

/** `error.code` of a correction. Compared exactly, case included. Spec R5, R6. */
export const CODE_WRONG_CLUSTER = "wrong_cluster";

/** Value of `X-Tunnel-Client-Wire-Protocol-Version` that this package speaks. Spec T16. */
export const WIRE_PROTOCOL_VERSION = "2026-08-25";

/** What a command asks of an agent. Spec T5. */
export type CommandType = "jsonrpc" | "session_termination" | "oauth_discovery";

const COMMAND_TYPES: readonly string[] = ["jsonrpc", "session_termination", "oauth_discovery"];

/** Whether a text names a command type this version knows; others are logged and left (T23). Spec T5. */
export function isCommandType(text: string): text is CommandType {
  return COMMAND_TYPES.includes(text);
}

/** What a response of an agent is. Spec T6. */
export type ResponseType =
  | "jsonrpc_response"
  | "jsonrpc_notify"
  | "notify_ack"
  | "session_termination_response"
  | "oauth_discovery_response";

const FINALITY: Readonly<Record<ResponseType, boolean>> = {
  jsonrpc_response: true,
  jsonrpc_notify: false,
  notify_ack: true,
  session_termination_response: true,
  oauth_discovery_response: true,
};

/** Whether a text names a response type of T6. */
export function isResponseType(text: string): text is ResponseType {
  return Object.hasOwn(FINALITY, text);
}

/** Whether a response of this type ends its command: all but `jsonrpc_notify` do. Spec T6. */
export function isFinalResponseType(type: ResponseType): boolean {
  return FINALITY[type];
}

declare const brand: unique symbol;

/** A text that has passed the parser named `Name`. */
export type Branded<Name extends string> = string & { readonly [brand]: Name };

/** `tunnel_` and 32 characters of `[a-z0-9]`. Spec T1. */
export type TunnelId = Branded<"TunnelId">;

/** Reads a tunnel id; `undefined` (wire: `invalid_tunnel_id_format`) for any other text. Spec T1. */
export function parseTunnelId(text: string): TunnelId | undefined {
  return /^tunnel_[a-z0-9]{32}$/.test(text) ? (text as TunnelId) : undefined;
}

/** 1–64 characters of `[a-z0-9_-]`: one MCP server of several behind a tunnel. Spec T4. */
export type ChannelName = Branded<"ChannelName">;

/** Reads a channel name; `undefined` (wire: `invalid_channel_format`) for any other text. Spec T4. */
export function parseChannelName(text: string): ChannelName | undefined {
  return /^[a-z0-9_-]{1,64}$/.test(text) ? (text as ChannelName) : undefined;
}

/** The channel of commands and calls that name none. Spec T5, T9. */
export const DEFAULT_CHANNEL = "main" as ChannelName;

/** One agent process. Ours are 32 lower-case hex characters; other clients' may be any visible ASCII. Spec T8, T16. */
export type InstanceId = Branded<"InstanceId">;

/** Reads an instance id: 1–128 visible ASCII characters (0x21–0x7e). `undefined` is as absent. Spec T8. */
export function parseInstanceId(text: string): InstanceId | undefined {
  return /^[\x21-\x7e]{1,128}$/.test(text) ? (text as InstanceId) : undefined;
}
