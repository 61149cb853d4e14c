// What operators send: JSON bodies as typed input. Unknown fields are accepted and ignored.
//
// Spec: T1.   A refusal names the field, never its value.

import { parseResponseTimeout, parseTunnelId, ProtocolError, type TunnelId } from "@moor/protocol";
import { z } from "zod";
import { ACCESS_MODES, type TunnelInput } from "../directory/directory.ts";

/** A duration as its text: `55s`, `1500ms`. */
const deadline = z.string().transform((text, context) => {
  const ms = parseResponseTimeout(text);
  if (ms !== undefined) return ms;
  context.addIssue({ code: "custom", message: "expected a duration such as 55s" });
  return z.NEVER;
});

const tunnelBody = z.object({
  name: z.string().optional(),
  description: z.string().optional(),
  access: z.enum(ACCESS_MODES).optional(),
  deadline: deadline.optional(),
});

const keyBody = z.object({
  tunnel: z.string(),
  kind: z.enum(["agent", "connector"]),
  label: z.string().optional(),
});

/** A body of `POST /v1/tunnels` or `POST /v1/tunnels/{id}`: the fields present. */
export function parseTunnelBody(body: Uint8Array): TunnelInput {
  const { name, description, access, deadline: deadlineMs } = parseBody(tunnelBody, body);
  return {
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
    ...(access === undefined ? {} : { access }),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
  };
}

/** What `POST /v1/keys` asks. */
export interface KeyInput {
  readonly tunnel: TunnelId;
  readonly kind: "agent" | "connector";
  readonly label?: string;
}

/** A body of `POST /v1/keys`. */
export function parseKeyBody(body: Uint8Array): KeyInput {
  const { tunnel, kind, label } = parseBody(keyBody, body);
  const id = readTunnelId(tunnel, "tunnel");
  return label === undefined ? { tunnel: id, kind } : { tunnel: id, kind, label };
}

/** A tunnel id, or `invalid_tunnel_id_format`. */
export function readTunnelId(text: string, param: string): TunnelId {
  const id = parseTunnelId(text);
  if (id === undefined) throw new ProtocolError("invalid_tunnel_id_format", { param });
  return id;
}

function parseBody<Output>(schema: z.ZodType<Output>, body: Uint8Array): Output {
  const parsed = schema.safeParse(parseJson(body));
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const param = issue?.path.join(".") ?? "";
  const message = `${param === "" ? "the body" : param}: ${issue?.message ?? "not usable"}`;
  throw new ProtocolError("invalid_request", param === "" ? { message } : { message, param });
}

/** An absent body is an empty object. */
function parseJson(body: Uint8Array): unknown {
  if (body.length === 0) return {};
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw new ProtocolError("invalid_json_payload");
  }
}
