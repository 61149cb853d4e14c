// What kind of trouble a transport error is, in one word: all that may be told of it.
//
// Spec: R8 (no host, path, query or user info beyond a category), R14, T20.
// I1  The word is chosen from a fixed list; nothing of the error's own text passes through.

/** The only thing logs and errors say of a failed exchange. */
export type FaultCategory =
  | "dns"
  | "refused"
  | "unreachable"
  | "tls"
  | "reset"
  | "timeout"
  | "protocol"
  | "other";

const BY_CODE: Readonly<Record<string, FaultCategory>> = {
  ENOTFOUND: "dns",
  EAI_AGAIN: "dns",
  EAI_NODATA: "dns",
  EAI_FAIL: "dns",
  ECONNREFUSED: "refused",
  EHOSTUNREACH: "unreachable",
  ENETUNREACH: "unreachable",
  EADDRNOTAVAIL: "unreachable",
  ECONNRESET: "reset",
  ECONNABORTED: "reset",
  EPIPE: "reset",
  UND_ERR_SOCKET: "reset",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "reset",
  ETIMEDOUT: "timeout",
  UND_ERR_CONNECT_TIMEOUT: "timeout",
  UND_ERR_HEADERS_TIMEOUT: "timeout",
  UND_ERR_BODY_TIMEOUT: "timeout",
  UND_ERR_HEADERS_OVERFLOW: "protocol",
  EPROTO: "tls",
  CERT_HAS_EXPIRED: "tls",
  CERT_NOT_YET_VALID: "tls",
  DEPTH_ZERO_SELF_SIGNED_CERT: "tls",
  SELF_SIGNED_CERT_IN_CHAIN: "tls",
  UNABLE_TO_GET_ISSUER_CERT: "tls",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "tls",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "tls",
  CERT_UNTRUSTED: "tls",
  CERT_REJECTED: "tls",
  HOSTNAME_MISMATCH: "tls",
};

/** The category of an error thrown by a socket, a TLS handshake or the HTTP parser. Never throws. */
export function faultCategory(error: unknown): FaultCategory {
  if (typeof error !== "object" || error === null) return "other";
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
  if (typeof code === "string") {
    const known = BY_CODE[code];
    if (known !== undefined) return known;
    if (code.startsWith("ERR_TLS") || code.startsWith("ERR_SSL")) return "tls";
    if (code.startsWith("HPE_")) return "protocol";
  }
  if (name === "HTTPParserError") return "protocol";
  // Several addresses were tried: the last one speaks for all.
  if (error instanceof AggregateError) return faultCategory(error.errors.at(-1));
  return "other";
}
