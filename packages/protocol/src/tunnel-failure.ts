// The error an agent answers with when its target gave no usable MCP message.
// Spec: T20.   Pure.
//
// I1  Holds a category and a status, never a body, a URL or an exception's text. I2  Readers take versions, sources and
//     members they do not know as no failure object at all, and ignore kinds that are no plain label.

/** Where a call failed. `target_http`: the target answered with an HTTP error. */
export type TunnelFailureSource =
  | "target_http"
  | "dns"
  | "tls"
  | "connect"
  | "transport_closed"
  | "timeout"
  | "protocol"
  | "client_internal";

const SOURCES: readonly string[] = [
  "target_http",
  "dns",
  "tls",
  "connect",
  "transport_closed",
  "timeout",
  "protocol",
  "client_internal",
] satisfies readonly TunnelFailureSource[];

/** `error.data.tunnel_failure`, version 1. Names are the wire's. */
export interface TunnelFailure {
  readonly version: 1;
  readonly source: TunnelFailureSource;
  /** A fixed label for diagnosis, e.g. `refused`: 1–64 characters of `[a-z0-9_]`. */
  readonly transport_error_kind?: string | undefined;
  /** Whether the target answered with an HTTP head. */
  readonly upstream_response_received: boolean;
  /** 400–599; there exactly with source `target_http`. */
  readonly upstream_status?: number | undefined;
}

/** JSON-RPC's internal error. */
const INTERNAL_ERROR = -32603;

const LABEL = /^[a-z0-9_]{1,64}$/;

/**
 * A JSON-RPC error message that carries a failure.
 *
 * @param rawId the request's id as JSON text, byte for byte (`"a"`, `7`, `null`)
 * @param httpStatus the answer's status, 400–599; its reason phrase is the message
 * @throws RangeError for a failure whose members contradict each other or a status outside 400–599
 */
export function encodeTunnelFailure(rawId: string, httpStatus: number, failure: TunnelFailure): string {
  if (!isErrorStatus(httpStatus)) throw new RangeError(`a tunnel failure with status ${httpStatus}`);
  if (!isConsistent(failure) || !LABEL.test(failure.transport_error_kind ?? "none")) {
    throw new RangeError(`a tunnel failure of ${failure.source} that contradicts itself`);
  }
  const { version, source, transport_error_kind, upstream_response_received, upstream_status } = failure;
  // Members in the spec's order, whatever order the caller's object has.
  const wire = { version, source, transport_error_kind, upstream_response_received, upstream_status };
  const error = { code: INTERNAL_ERROR, message: phraseOf(httpStatus), data: { tunnel_failure: wire } };
  return `{"jsonrpc":"2.0","id":${rawId},"error":${JSON.stringify(error)}}`;
}

/** Reads a `tunnel_failure` value; `undefined` for unknown versions and sources and for contradictions. */
export function parseTunnelFailure(value: unknown): TunnelFailure | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { version, source, transport_error_kind, upstream_response_received, upstream_status } =
    value as Readonly<Record<string, unknown>>;
  if (version !== 1 || typeof source !== "string" || !isSource(source)) return undefined;
  if (typeof upstream_response_received !== "boolean") return undefined;
  if (upstream_status !== undefined && typeof upstream_status !== "number") return undefined;
  const isLabel = typeof transport_error_kind === "string" && LABEL.test(transport_error_kind);
  const failure: TunnelFailure = {
    version,
    source,
    ...(isLabel && { transport_error_kind }),
    upstream_response_received,
    ...(upstream_status !== undefined && { upstream_status }),
  };
  return isConsistent(failure) ? failure : undefined;
}

/** A status is there exactly for a target's HTTP error; a transport that closed has answered nothing. */
function isConsistent(failure: TunnelFailure): boolean {
  const { source, upstream_response_received: isAnswered, upstream_status: status } = failure;
  if (source === "target_http") return isAnswered && status !== undefined && isErrorStatus(status);
  return status === undefined && !(source === "transport_closed" && isAnswered);
}

function isSource(text: string): text is TunnelFailureSource {
  return SOURCES.includes(text);
}

function isErrorStatus(status: number): boolean {
  return Number.isInteger(status) && status >= 400 && status <= 599;
}

/** Reason phrases of RFC 9110 for the statuses an MCP server or an agent uses. */
const PHRASES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  406: "Not Acceptable",
  408: "Request Timeout",
  409: "Conflict",
  410: "Gone",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  500: "Internal Server Error",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

function phraseOf(status: number): string {
  return PHRASES[status] ?? (status < 500 ? "Client Error" : "Server Error");
}
