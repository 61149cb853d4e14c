// Which headers may pass between a command and its MCP server, in both directions.
//
// Spec: T5, T10, T11, T20.
// I1  No hop-by-hop, Connection-named, Host, Content-Length or X-Tunnel-* line ever reaches an MCP server.
// I2  Only five response headers come back, and none that the server's own Connection header names.

import { connectionNamed, HEADER, isHopByHop, isReservedHeader, RESPONSE_HEADERS } from "@moor/protocol";
import {
  headerValues,
  isHeaderName,
  isHeaderValue,
  utf8AsHeaderValue,
  type HeaderLine,
} from "../http/header-lines.ts";

/**
 * Set by the agent's own HTTP client, or of a kind the agent does not speak: an encoded answer could not be passed on
 * byte for byte. Lower case.
 */
const OWN: ReadonlySet<string> = new Set(["host", "content-length", "expect", "accept-encoding"]);

/** Headers of a command or response body: name → values. */
export type HeaderBag = Readonly<Record<string, readonly string[]>>;

/**
 * The header lines of one request to an MCP server: the command's, then the static ones it does not override, then
 * Accept and Content-Type if neither has them. Lines that cannot be header fields are left out.
 *
 * @param isBodyless no Content-Type for a request without a body
 */
export function targetRequestHeaders(
  command: HeaderBag,
  staticLines: readonly HeaderLine[],
  isBodyless = false,
): HeaderLine[] {
  const nominated = connectionNamed(valuesOf(command, "connection"));
  const lines: HeaderLine[] = [];
  for (const [name, values] of Object.entries(command)) {
    if (!isHeaderName(name) || !mayReachTarget(name, nominated)) continue;
    for (const value of values) {
      const bytes = utf8AsHeaderValue(value);
      if (isHeaderValue(bytes)) lines.push([name, bytes]);
    }
  }
  const taken = new Set(lines.map(([name]) => name.toLowerCase()));
  for (const line of staticLines) if (!taken.has(line[0].toLowerCase())) lines.push(line);
  const has = (name: string) => headerValues(lines, name).length > 0;
  if (!has(HEADER.accept)) lines.push([HEADER.accept, "application/json, text/event-stream"]);
  if (!isBodyless && !has(HEADER.contentType)) lines.push([HEADER.contentType, "application/json"]);
  return lines;
}

/** What of an MCP server's response headers goes back with a response. */
export function passedResponseHeaders(lines: readonly HeaderLine[]): HeaderBag {
  const nominated = connectionNamed(headerValues(lines, "connection"));
  const bag: Record<string, readonly string[]> = {};
  for (const name of RESPONSE_HEADERS) {
    const values = nominated.has(name.toLowerCase()) ? [] : headerValues(lines, name);
    if (values.length > 0) bag[name] = values.map((value) => Buffer.from(value, "latin1").toString("utf8"));
  }
  return bag;
}

/** Whether a header is the tunnel's, the connection's or the agent's own client's: nobody else sets it. */
export function isOwnHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return isHopByHop(lower) || OWN.has(lower) || isReservedHeader(lower);
}

function mayReachTarget(name: string, nominated: ReadonlySet<string>): boolean {
  return !isOwnHeader(name) && !nominated.has(name.toLowerCase());
}

function valuesOf(bag: HeaderBag, name: string): readonly string[] {
  return Object.entries(bag).flatMap(([key, values]) => (key.toLowerCase() === name ? values : []));
}
