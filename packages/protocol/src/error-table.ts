// Every error that crosses the wire: code → status, type, whether its receiver may try again, and its meaning.
// Spec: T3; R5 for wrong_cluster, L2 for wrong_shard. docs/protocol/errors.md shows the same table and a test compares both ways.
//
// I1  Code decides status and type; nobody sets them by hand. I2  Match on `code`, never on `message`.
// I3  An envelope holds nothing but what its thrower put there: no stack, no cause, no header, no token.

import { CODE_WRONG_CLUSTER } from "./names.ts";

/** `type` of an error envelope. Spec T3. */
export type ErrorType =
  | "invalid_request_error"
  | "authentication_error"
  | "permission_error"
  | "not_found_error"
  | "conflict_error"
  | "rate_limit_error"
  | "server_error";

/**
 * May the sender try the same request again? `never`: it fails again, or may run twice. `backoff`: after Retry-After
 * or a growing delay. `now`: at once. `elsewhere`: where the answer says (a correction's token, a shard's host).
 */
export type RetryVerdict = "never" | "backoff" | "now" | "elsewhere";

/** One row of the error table. */
export interface ErrorRow {
  /** HTTP status. */
  readonly status: number;
  readonly type: ErrorType;
  readonly retry: RetryVerdict;
  /** One sentence; the message of an error whose thrower gives none. */
  readonly summary: string;
  /** Requirement the code comes from. */
  readonly spec: string;
}

/** Rows of one type whose requests fail again however often they are sent. */
function refusal(type: ErrorType): (status: number, spec: string, summary: string) => ErrorRow {
  return (status, spec, summary) => ({ status, type, retry: "never", spec, summary });
}

const invalid = refusal("invalid_request_error");
const unauthenticated = refusal("authentication_error");
const notPermitted = refusal("permission_error");
const notFound = refusal("not_found_error");
const conflicts = refusal("conflict_error");
/** 500, 502 and 504: the call may have run. */
const mayHaveRun = refusal("server_error");

function limited(spec: string, summary: string): ErrorRow {
  return { status: 429, type: "rate_limit_error", retry: "backoff", spec, summary };
}

/** 503: the call was certainly not handed out (T11). */
function unavailable(retry: RetryVerdict, spec: string, summary: string): ErrorRow {
  return { status: 503, type: "server_error", retry, spec, summary };
}

/** The error table. Its keys are all codes there are. Spec T3. */
export const ERROR_TABLE = {
  invalid_tunnel_id_format: invalid(400, "T1", "The tunnel id is not tunnel_ and 32 characters of a-z, 0-9."),
  invalid_channel_format: invalid(400, "T4", "A channel is not 1 to 64 characters of a-z, 0-9, _ and -."),
  invalid_request: invalid(400, "T4", "A parameter or field is missing or not usable."),
  invalid_json_payload: invalid(400, "T6", "The body is not valid JSON of the expected shape."),
  missing_mcp_session_id: invalid(400, "T9", "Ending a session needs an Mcp-Session-Id header."),
  unauthorized: unauthenticated(401, "T2", "The key is missing, wrong or revoked."),
  tunnel_request_mismatch: unauthenticated(401, "T6", "The request or its token belongs to another tunnel."),
  enrolment_refused: unauthenticated(401, "L28", "The enrolment code is wrong, used or expired."),
  forbidden: notPermitted(403, "T2", "The key is valid, but not for this."),
  host_not_allowed: notPermitted(403, "T10", "The Host or Origin of the request is not allowed here."),
  not_found: notFound(404, "T1", "There is nothing at this path."),
  tunnel_not_found: notFound(404, "T3", "There is no such tunnel."),
  key_not_found: notFound(404, "T2", "There is no such key."),
  shard_not_found: notFound(404, "R22", "There is no such shard."),
  job_not_found: notFound(404, "R22", "There is no such job."),
  token_key_not_found: notFound(404, "R23", "There is no such token key."),
  home_not_found: notFound(404, "L18", "There is no such home."),
  service_key_not_found: notFound(404, "L28", "There is no such service key."),
  now_unavailable: notFound(404, "L34", "The home's box has left no snapshot."),
  session_not_found: notFound(404, "T8", "The MCP session is gone: initialize anew."),
  pending_request_not_found: notFound(
    404,
    "T6",
    "The request is unknown, answered or expired; nothing is left to do.",
  ),
  method_not_allowed: invalid(405, "T9", "The path exists, the method does not; see Allow."),
  not_acceptable: invalid(406, "T9", "Accept allows neither application/json nor text/event-stream."),
  [CODE_WRONG_CLUSTER]: {
    status: 409,
    type: "conflict_error",
    retry: "elsewhere",
    spec: "R5",
    summary: "The tunnel is held elsewhere: poll again with the token given.",
  },
  conflict: conflicts(409, "T1", "The change contradicts what is there."),
  home_exists: conflicts(409, "L18", "There is a home of this name already."),
  move_blocked: conflicts(
    409,
    "L22",
    "Clients of the home would not find it at that shard; --force moves it all the same.",
  ),
  command_expired: conflicts(
    410,
    "L33",
    "The command's time passed before its box took it; it was not acted on.",
  ),
  request_body_too_large: invalid(413, "T6", "The body is larger than the limit."),
  unsupported_media_type: invalid(415, "T9", "The Content-Type is not application/json."),
  wrong_shard: {
    status: 421,
    type: "conflict_error",
    retry: "elsewhere",
    spec: "L2",
    summary: "The home is held elsewhere: ask the host in Ftw-Shard.",
  },
  upgrade_required: invalid(426, "L1", "The path is for WebSocket clients: ask for an upgrade."),
  tunnel_queue_full: limited("T12", "Too many calls wait for this tunnel."),
  rate_limit_exceeded: limited("T3", "Too many requests from this sender."),
  internal_error: mayHaveRun(500, "T3", "The service failed; whether the call ran is not known."),
  command_outcome_unknown: mayHaveRun(502, "T11", "The call was handed out and its outcome is not known."),
  invalid_agent_response: mayHaveRun(502, "T6", "The agent's answer could not be used."),
  agent_response_too_large: mayHaveRun(502, "T6", "The agent's answer is larger than the limit."),
  tunnel_transport_unavailable: unavailable(
    "backoff",
    "T3",
    "The tunnel cannot be reached now; the call was not handed out.",
  ),
  tunnel_client_not_connected: unavailable(
    "backoff",
    "T12",
    "No agent of the tunnel is connected; the call was not handed out.",
  ),
  tunnel_client_not_seen: unavailable("backoff", "T12", "No agent of the tunnel has ever connected."),
  overloaded: unavailable(
    "backoff",
    "T3",
    "The node is over its memory budget; the call was not handed out.",
  ),
  node_unreachable: unavailable(
    "backoff",
    "L24",
    "The node that runs the shard cannot be reached from this one.",
  ),
  node_draining: unavailable("now", "T11", "The node is leaving; another one answers at the same endpoint."),
  directory_unavailable: unavailable(
    "backoff",
    "T3",
    "Changes are not possible while the directory is down.",
  ),
  directory_regressed: unavailable(
    "backoff",
    "R22",
    "The directory knows less than this node has seen; changes wait for moor directory fence.",
  ),
  command_not_delivered: unavailable("backoff", "L33", "The command never reached its box."),
  link_plane_unavailable: unavailable("backoff", "L30", "This node does not serve links and apps now."),
  command_unknown: mayHaveRun(504, "L33", "The command was written to its box and its outcome is not known."),
  deadline_exceeded: mayHaveRun(504, "T7", "The command's deadline passed before its answer came."),
} as const satisfies Readonly<Record<string, ErrorRow>>;

/** Every code there is. */
export type ErrorCode = keyof typeof ERROR_TABLE;

/** Whether a text is a code of the table. */
export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERROR_TABLE, text);
}

/** What a ProtocolError may carry beside its code. */
export interface ProtocolErrorOptions {
  /** For people; default: the table's summary. Never a secret, a header or a body. */
  readonly message?: string | undefined;
  /** The parameter or field at fault. */
  readonly param?: string | undefined;
  /** Machine-readable detail, e.g. `{outcome: "unknown"}` (T11). Plain JSON values. */
  readonly data?: Readonly<Record<string, unknown>> | undefined;
  /** Whole seconds for a `Retry-After` header, 0–60. */
  readonly retryAfterS?: number | undefined;
}

/** An error meant for the peer: its code decides status and type. Spec T3. */
export class ProtocolError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly type: ErrorType;
  readonly param: string | undefined;
  readonly data: Readonly<Record<string, unknown>> | undefined;
  /** Whole seconds for `Retry-After`, or undefined for no such header. */
  readonly retryAfterS: number | undefined;

  constructor(code: ErrorCode, options: ProtocolErrorOptions = {}) {
    const { status, type, summary } = ERROR_TABLE[code];
    super(options.message ?? summary);
    this.name = "ProtocolError";
    this.code = code;
    this.status = status;
    this.type = type;
    this.param = options.param;
    this.data = options.data;
    this.retryAfterS = options.retryAfterS;
  }
}

/** Whether something thrown is a ProtocolError, from this copy of the package or another. */
export function isProtocolError(thrown: unknown): thrown is ProtocolError {
  return (
    thrown instanceof Error &&
    thrown.name === "ProtocolError" &&
    "code" in thrown &&
    isErrorCode(String(thrown.code))
  );
}

/**
 * The envelope `{"error":{"message","type","code","param"?,"data"?}}`. Spec T3. Not for `wrong_cluster`, whose body
 * holds nothing but code and revision (R5, `encodeCorrectionBody`): throws RangeError for it.
 */
export function encodeErrorEnvelope(error: ProtocolError): string {
  if (error.code === CODE_WRONG_CLUSTER) throw new RangeError("a correction has a body of its own (R5)");
  const { message, type, code, param, data } = error;
  return JSON.stringify({ error: { message, type, code, param, data } });
}
