// What a Node socket's error says of a dial, as a code of the table.
//
// Spec: L15, L32; docs/protocol/link-states.md.
// I1  The code is chosen from the table; nothing of the error's own text passes through.

import { faultCategory, type FaultCategory } from "../http/fault-category.ts";
import type { LinkTrouble } from "@moor/protocol";

const TLS: Readonly<Record<string, LinkTrouble>> = {
  ERR_TLS_CERT_ALTNAME_INVALID: "tls-name",
  HOSTNAME_MISMATCH: "tls-name",
  CERT_HAS_EXPIRED: "tls-expired",
  CERT_NOT_YET_VALID: "tls-not-yet-valid",
  DEPTH_ZERO_SELF_SIGNED_CERT: "tls-untrusted",
  SELF_SIGNED_CERT_IN_CHAIN: "tls-untrusted",
  UNABLE_TO_GET_ISSUER_CERT: "tls-untrusted",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "tls-untrusted",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "tls-untrusted",
  CERT_SIGNATURE_FAILURE: "tls-untrusted",
  CERT_UNTRUSTED: "tls-untrusted",
  CERT_REJECTED: "tls-untrusted",
  CERT_REVOKED: "tls-untrusted",
  INVALID_CA: "tls-untrusted",
  INVALID_PURPOSE: "tls-untrusted",
  PATH_LENGTH_EXCEEDED: "tls-untrusted",
};

/** The code for an error of a socket, a TLS handshake, an upgrade or a frame. Never throws. */
export function socketFault(error: unknown): LinkTrouble {
  const code = codeOf(error);
  const tls = TLS[code];
  if (tls !== undefined) return tls;
  // ws: a frame that breaks RFC 6455, is too large or is no UTF-8.
  if (code.startsWith("WS_ERR_")) return "bad-frame";
  return troubleOfCategory(faultCategory(error));
}

/** The code for a category of transport errors. */
export function troubleOfCategory(category: FaultCategory): LinkTrouble {
  switch (category) {
    case "dns":
    case "refused":
    case "unreachable":
    case "tls":
      return category;
    case "timeout":
      return "unreachable";
    case "protocol":
      return "not-a-link";
    case "reset":
    case "other":
      return "closed";
  }
}

function codeOf(error: unknown): string {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}
