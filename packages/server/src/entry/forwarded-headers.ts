// Which of a caller's headers ride along with its command, and which never do.
//
// Spec: T5 (session, protocol version, Accept, Authorization where passed through), T10 (never cookies, forwarding,
// hop-by-hop or Connection-named headers).
// I1  Authorization goes along only in access mode `passthrough`; the connector key never does.
// I2  Names of the tunnel wire (`X-Tunnel-*`) are the service's own and never come from a caller.

import { isUtf8 } from "node:buffer";
import { connectionNamed, HEADER, isHopByHop, isReservedHeader } from "@moor/protocol";

/** Header values by name, as a command carries them. Spec T5. */
export type CommandHeaders = Record<string, string[]>;

/** Never forwarded, beside what is hop-by-hop. Lower case. Framing, cookies, forwarding, and what browsers say of their page. */
const WITHHELD = new Set([
  "host",
  "content-length",
  "content-encoding",
  "accept-encoding",
  "expect",
  "cookie",
  "cookie2",
  "set-cookie",
  "forwarded",
  "via",
  "x-real-ip",
  "true-client-ip",
  "origin",
  "referer",
  "x-request-id",
]);

const WITHHELD_PREFIXES = ["x-forwarded-", "x-envoy-", "cf-", "sec-", "access-control-"];

const ACCEPT_BOTH = "application/json, text/event-stream";

/**
 * The headers of a command, from the caller's raw field lines.
 *
 * @param isAuthorizationForwarded access mode `passthrough`
 * @param requestId correlation id, sent as `X-Request-Id` (T3)
 */
export function forwardedHeaders(
  rawHeaders: readonly string[],
  isAuthorizationForwarded: boolean,
  requestId: string,
): CommandHeaders {
  const nominated = connectionNamed(connectionLines(rawHeaders));
  const headers: CommandHeaders = Object.create(null) as CommandHeaders;
  const spelling = new Map<string, string>();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    const key = name.toLowerCase();
    if (isWithheld(key) || nominated.has(key)) continue;
    if (key === "authorization" && !isAuthorizationForwarded) continue;
    const known = spelling.get(key);
    if (known === undefined) {
      spelling.set(key, name);
      headers[name] = [valueText(rawHeaders[at + 1])];
    } else headers[known]?.push(valueText(rawHeaders[at + 1]));
  }
  const acceptName = spelling.get("accept") ?? HEADER.accept;
  headers[acceptName] = [acceptForTarget(headers[acceptName])];
  headers[HEADER.requestId] = [requestId];
  return headers;
}

/**
 * Streamable HTTP targets refuse a client that does not take both media types; the connector can turn either into
 * what its caller takes (T11), so a caller's narrower Accept is widened on the way.
 */
function acceptForTarget(lines: readonly string[] | undefined): string {
  const accept = (lines ?? []).join(", ");
  const isBoth = /application\/json/i.test(accept) && /text\/event-stream/i.test(accept);
  return isBoth ? accept : ACCEPT_BOTH;
}

/** A field value as text: its bytes read as UTF-8 where they are that, else one character a byte. */
function valueText(value = ""): string {
  // oxlint-disable-next-line no-control-regex -- the ASCII range is the point
  if (/^[\x00-\x7f]*$/.test(value)) return value;
  const bytes = Buffer.from(value, "latin1");
  return isUtf8(bytes) ? bytes.toString("utf8") : value;
}

function isWithheld(key: string): boolean {
  return (
    WITHHELD.has(key) ||
    isHopByHop(key) ||
    isReservedHeader(key) ||
    WITHHELD_PREFIXES.some((prefix) => key.startsWith(prefix))
  );
}

/** Values of the Connection lines. */
function connectionLines(rawHeaders: readonly string[]): readonly string[] {
  return rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === "connection");
}
