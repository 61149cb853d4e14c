// One command of a poll answer, read from the answer's bytes.
//
// Spec: R20 (tokens that cannot be echoed), T5, T18, T23.
// I1  `jsonrpc` is a slice of the answer's own bytes: number literals, key order and escapes survive.
// I2  One bad command says nothing about its neighbours (T23). I3  A refusal holds no part of the command but its id.

import {
  DEFAULT_CHANNEL,
  isCommandToken,
  isCommandType,
  parseResponseTimeout,
  scanElements,
  scanMembers,
  type CommandType,
  type ScannedElement,
  type ScannedMember,
  type Slice,
} from "@moor/protocol";
import { jsonRpcShape, sliceText, type JsonRpcShape } from "./jsonrpc-message.ts";
import type { HeaderBag } from "./targets/header-policy.ts";

/** A command the agent can serve. */
export interface Command {
  readonly type: CommandType;
  readonly requestId: string;
  /** Echoed with every response of this command and with no other (R20). */
  readonly token: string;
  /** As the service wrote it; `main` where it wrote none. It need not be one of ours (T23). */
  readonly channel: string;
  readonly headers: HeaderBag;
  /** The caller's message; for `jsonrpc` commands only. */
  readonly message: { readonly bytes: Uint8Array; readonly shape: JsonRpcShape } | undefined;
  /** Milliseconds from the poll answer's head to the end of all work; undefined where none was given (T18). */
  readonly responseTimeoutMs: number | undefined;
}

/** Why a command is dropped. */
export type CommandRefusal =
  | "not-an-object"
  | "bad-request-id"
  | "bad-token"
  | "bad-type"
  | "unknown-type"
  | "bad-channel"
  | "bad-message";

/** A command, or why there is none; `requestId` where it could be read. */
export type CommandResult =
  | { readonly ok: true; readonly command: Command }
  | { readonly ok: false; readonly refusal: CommandRefusal; readonly requestId: string | undefined };

const OPENING_BRACE = 0x7b;

/**
 * Reads one command. Never throws.
 *
 * @param body bytes that scanJson has accepted
 * @param slice one element of their `commands`
 */
export function parseCommand(body: Uint8Array, slice: Slice): CommandResult {
  if (body[slice.start] !== OPENING_BRACE)
    return { ok: false, refusal: "not-an-object", requestId: undefined };
  const members = new Map(scanMembers(body, slice).map((member) => [member.key, member]));
  const text = (key: string) => stringMember(body, members.get(key));
  const requestId = text("request_id");
  const refuse = (refusal: CommandRefusal): CommandResult => ({ ok: false, refusal, requestId });

  if (requestId === undefined || requestId === "") return refuse("bad-request-id");
  const token = text("shard_token");
  if (token === undefined || !isCommandToken(token)) return refuse("bad-token");
  const type = text("command_type");
  if (type === undefined) return refuse("bad-type");
  if (!isCommandType(type)) return refuse("unknown-type");
  const channel = isAbsent(members.get("channel")) ? DEFAULT_CHANNEL : text("channel");
  if (channel === undefined) return refuse("bad-channel");
  const message = parseMessage(body, members.get("jsonrpc"));
  if (type === "jsonrpc" && (message === undefined || message.shape.kind === "invalid")) {
    return refuse("bad-message");
  }
  const headers = parseHeaders(body, members.get("headers"));
  const responseTimeoutMs = parseResponseTimeout(text("response_timeout"));
  return { ok: true, command: { type, requestId, token, channel, headers, message, responseTimeoutMs } };
}

function parseMessage(body: Uint8Array, member: ScannedMember | undefined): Command["message"] {
  if (member?.kind !== "object") return undefined;
  const bytes = body.subarray(member.value.start, member.value.end);
  return { bytes, shape: jsonRpcShape(body, scanMembers(body, member.value)) };
}

/** Arrays of strings, or a string alone; anything else is left out, since a header is never worth a call. */
function parseHeaders(body: Uint8Array, member: ScannedMember | undefined): HeaderBag {
  const bag: Record<string, readonly string[]> = {};
  if (member?.kind !== "object") return bag;
  for (const header of scanMembers(body, member.value)) {
    if (header.key === "__proto__") continue;
    const single = stringMember(body, header);
    const values =
      single === undefined
        ? scanElements(body, header.value).flatMap((element) => stringMember(body, element) ?? [])
        : [single];
    if (values.length > 0) bag[header.key] = values;
  }
  return bag;
}

function isAbsent(member: ScannedMember | undefined): boolean {
  return member === undefined || member.kind === "null";
}

function stringMember(body: Uint8Array, member: ScannedElement | undefined): string | undefined {
  return member?.kind === "string" ? (JSON.parse(sliceText(body, member)) as string) : undefined;
}
