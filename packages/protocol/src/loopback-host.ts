// Whether a host is this machine itself: there plain HTTP and open access are allowed.
// Spec: T10, T16.   Pure.

/**
 * Whether a host names this machine: `localhost`, `*.localhost` (RFC 6761), 127.0.0.0/8 or `::1`.
 *
 * @param host a name or address without port; IPv6 with or without brackets, a final dot allowed
 */
export function isLoopbackHost(host: string): boolean {
  const name = host
    .toLowerCase()
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "");
  return (
    name === "localhost" || name.endsWith(".localhost") || name === "::1" || /^127(\.\d{1,3}){3}$/.test(name)
  );
}
