// Who may speak to the operator listener: someone who reaches it by its own address and holds the operator token.
//
// Spec: T2, T3.
// I1  A web page cannot use it through its visitor's browser: the Host must name a loopback or the configured bind
//     address (a re-bound DNS name is neither), and an Origin must be the listener's own.
// I2  The token is compared as SHA-256 in constant time; keys of other kinds are just wrong tokens.

import { hash } from "node:crypto";
import { isLoopbackHost, ProtocolError } from "@moor/protocol";
import type { Secret } from "@moor/runtime";
import { isSameHash } from "../directory/keys.ts";

/** The headers a request is judged by. */
export interface OperatorCredentials {
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly authorization: string | undefined;
}

/** Judges requests by Host and Origin, and by token; both throw ProtocolError. */
export interface OperatorGuard {
  /** Throws `host_not_allowed` for a Host or Origin from elsewhere. */
  assertSource(request: OperatorCredentials): void;
  /** Throws `unauthorized` without the operator token. */
  assertToken(request: OperatorCredentials): void;
}

/**
 * A guard for one listener.
 *
 * @param bindHost the address it is bound to, allowed as Host beside loopback names
 */
export function createOperatorGuard(token: Secret, bindHost: string): OperatorGuard {
  const expected = hash("sha256", token.reveal(), "buffer");
  return {
    assertSource: ({ host, origin }) => {
      if (host === undefined || !isAllowedHost(host, bindHost)) throw new ProtocolError("host_not_allowed");
      if (origin !== undefined && origin.toLowerCase() !== `http://${host.toLowerCase()}`) {
        throw new ProtocolError("host_not_allowed");
      }
    },
    assertToken: ({ authorization }) => {
      const given = /^Bearer +([\x21-\x7e]{1,512}) *$/i.exec(authorization ?? "")?.[1];
      if (given !== undefined && isSameHash(hash("sha256", given, "buffer"), expected)) return;
      throw new ProtocolError("unauthorized", { message: "the operator token is missing or wrong" });
    },
  };
}

/** Whether a Host header names this machine's loopback or `bindHost`. The port does not matter. */
function isAllowedHost(host: string, bindHost: string): boolean {
  const match = /^(\[[0-9a-f:.]+\]|[0-9a-z.-]+)(?::[0-9]{1,5})?$/i.exec(host);
  const name = match?.[1]?.toLowerCase().replace(/^\[|\]$/g, "");
  if (name === undefined) return false;
  return isLoopbackHost(name) || name === bindHost.toLowerCase();
}
