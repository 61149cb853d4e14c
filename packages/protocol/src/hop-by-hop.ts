// Header fields that belong to one connection and are never passed on.
// Spec: T10, T20 (RFC 9110, 7.6.1).   Pure.

/** The fields that always do, older names that proxies still honour included. Lower case. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Whether a field of this name belongs to one connection, whatever the connection says. */
export function isHopByHop(name: string): boolean {
  return HOP_BY_HOP.has(name.toLowerCase());
}

/** Names that `Connection` lines add to those of `isHopByHop`. Lower case. */
export function connectionNamed(values: readonly string[]): ReadonlySet<string> {
  return new Set(values.flatMap((value) => value.split(",")).map((name) => name.trim().toLowerCase()));
}
