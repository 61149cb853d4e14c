// What operators send: JSON bodies as typed input. Unknown fields are accepted and ignored.
//
// Spec: T1.   A refusal names the field, never its value.

import {
  parseResponseTimeout,
  parseTunnelId,
  ProtocolError,
  SPREAD_MS_MAX,
  SPREAD_MS_MIN,
  type HomeId,
  type TunnelId,
} from "@moor/protocol";
import { z } from "zod";
import {
  ACCESS_MODES,
  parseHomeTenant,
  parseShardId,
  type Job,
  type ShardId,
  type TunnelInput,
} from "../directory/directory.ts";

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

/** Why something is ordered: up to 1 024 characters. */
const reason = z.string().max(1_024).optional();

const shardId = z.string().transform((text, context): ShardId => {
  const id = parseShardId(text);
  if (id !== undefined) return id;
  context.addIssue({ code: "custom", message: "expected the name of a shard" });
  return z.NEVER;
});

/** Moves homes that L22 keeps, too. */
const force = z.boolean().optional();

const moveBody = z.object({ tenant: z.string(), to: shardId, reason, force });

const jobBody = z
  .object({
    kind: z.literal("move"),
    from: shardId,
    to: shardId.optional(),
    spread: z.boolean().optional(),
    rate: z.number().min(0.01).max(10_000),
    reason,
    force,
  })
  .refine(({ to, spread }) => (to === undefined) === (spread === true), {
    path: ["to"],
    message: "expected either to or spread",
  });

const drainBody = z.object({
  kind: z.literal("restart"),
  spread_ms: z.int().min(SPREAD_MS_MIN).max(SPREAD_MS_MAX).optional(),
  dry_run: z.boolean().optional(),
  reason,
});

const reasonBody = z.object({ reason });

const correctionsBody = z.object({ on: z.boolean(), reason });

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

/** A body of `POST /v1/moves`. */
export function parseMoveBody(body: Uint8Array): {
  readonly tenant: TunnelId | HomeId;
  readonly to: ShardId;
  readonly reason?: string | undefined;
  readonly isForced: boolean;
} {
  const { tenant, to, reason: why, force: isForced = false } = parseBody(moveBody, body);
  return { tenant: readTenantId(tenant, "tenant"), to, reason: why, isForced };
}

/** A body of `POST /v1/jobs`: moves a second, and which tenants where. */
export function parseJobBody(body: Uint8Array): {
  readonly selector: Job["selector"];
  readonly ratePerS: number;
  readonly reason?: string | undefined;
  readonly isForced: boolean;
} {
  const { from, to, rate, reason: why, force: isForced = false } = parseBody(jobBody, body);
  return { selector: { from, to: to ?? "spread" }, ratePerS: rate, reason: why, isForced };
}

/** A body of `POST /v1/shards/{id}/drain`. */
export function parseDrainBody(body: Uint8Array): {
  readonly spreadMs: number | undefined;
  readonly dryRun: boolean | undefined;
  readonly reason: string | undefined;
} {
  const { spread_ms: spreadMs, dry_run: dryRun, reason: why } = parseBody(drainBody, body);
  return { spreadMs, dryRun, reason: why };
}

/** A body that may only say why. */
export function parseReasonBody(body: Uint8Array): string | undefined {
  return parseBody(reasonBody, body).reason;
}

/** A body of `PUT /v1/corrections`. */
export function parseCorrectionsBody(body: Uint8Array): {
  readonly on: boolean;
  readonly reason?: string | undefined;
} {
  return parseBody(correctionsBody, body);
}

/** A tunnel id, or `invalid_tunnel_id_format`. */
export function readTunnelId(text: string, param: string): TunnelId {
  const id = parseTunnelId(text);
  if (id === undefined) throw new ProtocolError("invalid_tunnel_id_format", { param });
  return id;
}

/** The id of a tunnel or a home; `invalid_tunnel_id_format` for one that is neither. */
export function readTenantId(text: string, param: string): TunnelId | HomeId {
  return parseHomeTenant(text) ?? readTunnelId(text, param);
}

/** A shard's id, or `invalid_request`. */
export function readShardId(text: string, param: string): ShardId {
  const id = parseShardId(text);
  if (id !== undefined) return id;
  throw new ProtocolError("invalid_request", { param, message: `${param}: expected the name of a shard` });
}

/** `body` as `schema` says. Throws `invalid_json_payload`, or `invalid_request` naming the field at fault. */
export function parseBody<Output>(schema: z.ZodType<Output>, body: Uint8Array): Output {
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
