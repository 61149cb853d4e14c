// How a target's failure is told to the caller: a tunnel_failure and an HTTP status, nothing of the target's own text.
//
// Spec: T20 (no raw bodies, no URLs).
// I1  The status is the target's own if it answered with an error, else 504 for time-outs and 502 for all others.

import type { TunnelFailure } from "@moor/protocol";
import type { FaultCategory } from "../http/fault-category.ts";
import type { HeaderBag } from "./header-policy.ts";
import type { TargetAnswer } from "./mcp-target.ts";

type Failed = Extract<TargetAnswer, { kind: "failure" }>;

/** `not_mcp`: no JSON-RPC response of ours. `stream_ended`: an event stream ended without it. */
export type ProtocolFailureKind = "not_mcp" | "too_large" | "stream_ended" | "redirect";

const NO_HEADERS: HeaderBag = {};

/** The target answered with a status that is no success, and without a JSON-RPC error of ours. */
export function targetHttpFailure(status: number, headers: HeaderBag): Failed {
  // A redirect is refused (T20): to the caller it is an answer that is not MCP.
  if (status < 400 || status > 599) return targetProtocolFailure("redirect", headers);
  return failed(status, headers, {
    version: 1,
    source: "target_http",
    upstream_response_received: true,
    upstream_status: status,
  });
}

/** The target answered something that is not the response MCP asks for; `kind` says what, in one word. */
export function targetProtocolFailure(kind: ProtocolFailureKind, headers: HeaderBag): Failed {
  return failed(502, headers, {
    version: 1,
    source: "protocol",
    transport_error_kind: kind,
    upstream_response_received: true,
  });
}

/** The exchange broke before (`isAnswered` false) or after the target's answer began. */
export function targetFaultFailure(
  category: FaultCategory,
  wasWritten: boolean,
  isAnswered: boolean,
): Failed {
  const source = faultSource(category, wasWritten);
  return failed(category === "timeout" ? 504 : 502, NO_HEADERS, {
    version: 1,
    // A transport that closed has answered nothing; an answer that broke off is broken protocol.
    source: isAnswered && source !== "timeout" ? "protocol" : source,
    transport_error_kind: category,
    upstream_response_received: isAnswered,
  });
}

function faultSource(category: FaultCategory, wasWritten: boolean): TunnelFailure["source"] {
  switch (category) {
    case "dns":
    case "tls":
    case "timeout":
    case "protocol":
      return category;
    case "refused":
    case "unreachable":
      return "connect";
    case "reset":
    case "other":
      return wasWritten ? "transport_closed" : "connect";
  }
}

function failed(status: number, headers: HeaderBag, failure: TunnelFailure): Failed {
  return { kind: "failure", status, headers, failure };
}
