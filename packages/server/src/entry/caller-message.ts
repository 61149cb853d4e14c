// What a caller POSTs: one JSON-RPC message, read without touching its bytes.
//
// Spec: T9, T15 (every method of every revision passes verbatim).
// I1  Nothing but `jsonrpc`, `id`, `method` and the presence of an answer is looked at.
// I2  A message that two readers could understand differently (a member twice) is refused.

import { JSON_DEPTH_MAX, scanJson, type ScannedMember } from "@moor/protocol";
import { refuse, type Refusal } from "../http/reply-error.ts";
import type { CallKind } from "./held-call.ts";

export interface CallerMessage {
  readonly kind: "message";
  readonly callKind: CallKind;
  /** Raw JSON of `id`, for requests. */
  readonly rpcId: string | undefined;
}

const READ_MEMBERS = ["jsonrpc", "id", "method", "result", "error"];

/** Reads a body. Refuses with invalid_json_payload. Never throws. */
export function parseCallerMessage(body: Uint8Array): CallerMessage | Refusal {
  const scanned = scanJson(body, { depthMax: JSON_DEPTH_MAX });
  if (!scanned.ok) {
    return refuse(
      "invalid_json_payload",
      `the body is not sound JSON: ${scanned.failure} at byte ${scanned.offset}`,
    );
  }
  if (scanned.kind === "array") {
    return refuse("invalid_json_payload", "batches are not taken: send one JSON-RPC message");
  }
  const members = new Map<string, ScannedMember>();
  for (const member of scanned.members) {
    if (!READ_MEMBERS.includes(member.key)) continue;
    if (members.has(member.key)) return refuse("invalid_json_payload", `${member.key} occurs twice`);
    members.set(member.key, member);
  }
  return classify(body, members) ?? refuse("invalid_json_payload", "the body is no JSON-RPC 2.0 message");
}

function classify(body: Uint8Array, members: ReadonlyMap<string, ScannedMember>): CallerMessage | undefined {
  const method = stringOf(body, members.get("method"));
  const id = members.get("id");
  if (stringOf(body, members.get("jsonrpc")) !== "2.0") return undefined;
  if (members.has("method") && method === undefined) return undefined;
  if (id === undefined) {
    return method === undefined
      ? undefined
      : { kind: "message", callKind: { kind: "one-way" }, rpcId: undefined };
  }
  if (method !== undefined) {
    if (id.kind !== "string" && id.kind !== "number") return undefined;
    const isInitialize = method === "initialize";
    return { kind: "message", callKind: { kind: "request", isInitialize }, rpcId: textOf(body, id) };
  }
  const isResponse = members.has("result") || members.has("error");
  return isResponse ? { kind: "message", callKind: { kind: "one-way" }, rpcId: undefined } : undefined;
}

function textOf(body: Uint8Array, member: ScannedMember): string {
  return Buffer.from(body.subarray(member.value.start, member.value.end)).toString("utf8");
}

function stringOf(body: Uint8Array, member: ScannedMember | undefined): string | undefined {
  return member?.kind === "string" ? (JSON.parse(textOf(body, member)) as string) : undefined;
}
