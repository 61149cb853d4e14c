// Which hosts a client with one configured endpoint may be sent to.
// Spec: L4, L13.   Pure.
//
// I1  The raw string is judged: nothing is trimmed, lower-cased, decoded or parsed as a URL first. What passes is already
//     what a resolver, a Host header and a certificate name need.
// I2  Two hosts pass: the base itself, and one label in front of it. An address has no labels in front.

import { PUBLIC_HOST_BYTES_MAX } from "./link-limits.ts";
import type { Branded } from "./names.ts";

/** Host of a configured endpoint, without port: a lower-case name or an address, at most 123 bytes. Spec L4. */
export type BaseHost = Branded<"BaseHost">;

/** One letter-digit-hyphen label, lower case, 1–63 characters, no hyphen at either end. */
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** A last label that makes browsers and resolvers take the whole host for an IPv4 address. */
const NUMERIC = /^([0-9]+|0x[0-9a-f]*)$/;

/**
 * Reads the host of an endpoint. Spec L4.
 *
 * @returns the host if it is a lower-case name of letter-digit-hyphen labels without trailing dot, an IPv4 address or a
 *   bracketed IPv6 address as `URL.hostname` writes them, of at most 123 bytes; else `undefined` (refuse to start)
 */
export function parseBaseHost(text: string): BaseHost | undefined {
  if (text.length > PUBLIC_HOST_BYTES_MAX) return undefined;
  return isAddress(text) || isName(text) ? (text as BaseHost) : undefined;
}

/**
 * Whether a client configured with `base` may dial `host`, wherever it has the name from. Spec L4.
 *
 * @param host the raw string of a close reason, header or record
 * @param base what parseBaseHost accepted
 */
export function shardHostOk(host: string, base: string): boolean {
  if (host.length > PUBLIC_HOST_BYTES_MAX) return false;
  if (host === base) return true;
  if (isAddress(base) || !host.endsWith(`.${base}`)) return false;
  return LABEL.test(host.slice(0, -(base.length + 1)));
}

function isName(text: string): boolean {
  const labels = text.split(".");
  return labels.every((label) => LABEL.test(label)) && !NUMERIC.test(labels.at(-1) ?? "");
}

function isAddress(text: string): boolean {
  return isIpv4(text) || /^\[[0-9a-f:.]*:[0-9a-f:.]*\]$/.test(text);
}

function isIpv4(text: string): boolean {
  const parts = text.split(".");
  return (
    parts.length === 4 && parts.every((part) => /^(0|[1-9][0-9]{0,2})$/.test(part) && Number(part) <= 255)
  );
}
