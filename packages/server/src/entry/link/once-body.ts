// The body of a one-shot: one command.
//
// Spec: L31, L33.   I1  `data` leaves as it came: a slice of the body.

import {
  LINK_DATA_BYTES_MAX,
  LINK_FRAME_BYTES_MAX,
  parseCommandId,
  scanJson,
  type CommandId,
  type ScannedMember,
} from "@moor/protocol";
import { refuse, type Refusal } from "../../http/reply-error.ts";

export interface OnceBody {
  readonly kind: "command";
  readonly id: CommandId;
  readonly ttlMs: number;
  /** Raw JSON. */
  readonly data: string;
}

/** Reads a body. Refuses with invalid_json_payload, invalid_request, request_body_too_large. */
export function parseOnceBody(body: Uint8Array): OnceBody | Refusal {
  const scanned = scanJson(body, { depthMax: LINK_FRAME_BYTES_MAX });
  if (!scanned.ok || scanned.kind !== "object") return refuse("invalid_json_payload");
  const read = (name: string) => memberText(body, scanned.members, name);
  const [id, ttl, data] = ["id", "ttl_ms", "data"].map(read);
  const commandId = parseCommandId(textOf(id));
  if (commandId === undefined) return refuse("invalid_request", "id is no command id", { param: "id" });
  const ttlMs = ttl !== undefined && /^\d{1,15}$/.test(ttl) ? Number(ttl) : undefined;
  if (ttlMs === undefined) {
    return refuse("invalid_request", "ttl_ms is no whole number of milliseconds", { param: "ttl_ms" });
  }
  if (data === undefined)
    return refuse("invalid_request", "data is missing or occurs twice", { param: "data" });
  if (Buffer.byteLength(data) > LINK_DATA_BYTES_MAX) return refuse("request_body_too_large");
  return { kind: "command", id: commandId, ttlMs, data };
}

/** Raw JSON of the one member of this name. */
function memberText(body: Uint8Array, members: readonly ScannedMember[], name: string): string | undefined {
  const [member, ...more] = members.filter(({ key }) => key === name);
  if (member === undefined || more.length > 0) return undefined;
  return Buffer.from(body.subarray(member.value.start, member.value.end)).toString("utf8");
}

function textOf(json: string | undefined): string {
  return json?.startsWith('"') === true ? (JSON.parse(json) as string) : "";
}
