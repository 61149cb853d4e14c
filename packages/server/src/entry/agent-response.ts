// What an agent posts: one answer or notification of a call, read without touching the payload's bytes.
//
// Spec: T6.
// I1  `respJson` is the raw slice of the body. I2  Unknown members are ignored; of a repeated one the last counts,
//     as JSON.parse has it.

import {
  isResponseType,
  JSON_DEPTH_MAX,
  RESPONSE_HEADERS,
  type ResponseType,
  type ScannedMember,
  scanJson,
} from "@moor/protocol";

export interface AgentResponse {
  readonly requestId: string;
  readonly type: ResponseType;
  /** `resp_code`; absent or 0 = 200. 100–599 or nonsense, which T11 maps. */
  readonly code: number;
  /** Lower-case names of the allowed ones only. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly json: Uint8Array | undefined;
}

export type AgentResponseOutcome =
  | { readonly kind: "read"; readonly response: AgentResponse }
  /** `isFinal`: whether the caller waits for this very answer. */
  | {
      readonly kind: "unreadable";
      readonly code: "invalid_json_payload" | "invalid_request";
      readonly message: string;
      readonly isFinal: boolean;
    };

/** Response headers that may reach the caller. Spec T11. */
const ALLOWED_HEADERS = new Set(RESPONSE_HEADERS.map((name) => name.toLowerCase()));

/** Most bytes of all `resp_headers`, so that they fit an answer's head. */
const RESPONSE_HEADERS_BYTES_MAX = 32 * 1024;

/** Reads the body of a response. Never throws. */
export function parseAgentResponse(body: Uint8Array): AgentResponseOutcome {
  const scanned = scanJson(body, { depthMax: JSON_DEPTH_MAX, rejectLoneSurrogates: true });
  if (!scanned.ok) {
    const isFinal = !/"resp_type"\s*:\s*"jsonrpc_notify"/.test(Buffer.from(body).toString("latin1"));
    const message = `the body is not sound JSON: ${scanned.failure} at byte ${scanned.offset}`;
    return { kind: "unreadable", code: "invalid_json_payload", message, isFinal };
  }
  if (scanned.kind !== "object") {
    return { kind: "unreadable", code: "invalid_json_payload", message: "expected an object", isFinal: true };
  }
  const members = new Map(scanned.members.map((member) => [member.key, member]));
  const type = stringMember(body, members.get("resp_type")) ?? "jsonrpc_response";
  if (!isResponseType(type)) return unreadable("resp_type is none of the known ones", true);
  const isFinal = type !== "jsonrpc_notify";
  const requestId = stringMember(body, members.get("request_id"));
  if (requestId === undefined) return unreadable("request_id is missing or no string", isFinal);
  const headers = responseHeaders(body, members.get("resp_headers"));
  if (headers === undefined) return unreadable("resp_headers is no object of arrays of strings", isFinal);
  const json = members.get("resp_json");
  return {
    kind: "read",
    response: {
      requestId,
      type,
      code: responseCode(body, members.get("resp_code")),
      headers,
      json: json === undefined || json.kind === "null" ? undefined : sliceOf(body, json),
    },
  };
}

function unreadable(message: string, isFinal: boolean): AgentResponseOutcome {
  return { kind: "unreadable", code: "invalid_request", message, isFinal };
}

function sliceOf(body: Uint8Array, member: ScannedMember): Uint8Array {
  return body.subarray(member.value.start, member.value.end);
}

function textOf(body: Uint8Array, member: ScannedMember): string {
  return Buffer.from(sliceOf(body, member)).toString("utf8");
}

function stringMember(body: Uint8Array, member: ScannedMember | undefined): string | undefined {
  if (member === undefined || member.kind !== "string") return undefined;
  return JSON.parse(textOf(body, member)) as string;
}

function responseCode(body: Uint8Array, member: ScannedMember | undefined): number {
  if (member === undefined || member.kind !== "number") return 200;
  const code = Number(textOf(body, member));
  return code === 0 ? 200 : Number.isInteger(code) ? code : 502;
}

function responseHeaders(
  body: Uint8Array,
  member: ScannedMember | undefined,
): ReadonlyMap<string, readonly string[]> | undefined {
  const headers = new Map<string, readonly string[]>();
  if (member === undefined || member.kind === "null") return headers;
  if (member.kind !== "object") return undefined;
  if (member.value.end - member.value.start > RESPONSE_HEADERS_BYTES_MAX) return undefined;
  const parsed = JSON.parse(textOf(body, member)) as Record<string, unknown>;
  for (const [name, value] of Object.entries(parsed)) {
    const lines = typeof value === "string" ? [value] : value;
    if (!Array.isArray(lines) || !lines.every((line) => typeof line === "string")) return undefined;
    const key = name.toLowerCase();
    // A value that HTTP cannot carry is left out, as a target could never have sent it.
    if (ALLOWED_HEADERS.has(key)) headers.set(key, lines.map(utf8AsHeaderValue).filter(isHeaderValue));
  }
  return headers;
}

/** A text as field bytes: its UTF-8, one character a byte, as node:http writes them out. */
function utf8AsHeaderValue(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

function isHeaderValue(value: string): boolean {
  return value !== "" && /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
}
