// The one URL a box or app is configured with, and the URLs it dials: the endpoint with only its host replaced.
//
// Spec: L4 (base), L9.   Pure.
// I1  A LinkEndpoint holds no user info, query or fragment. I2  Scheme, port and path prefix of every URL are the
//     endpoint's; whoever names a host changes nothing else.

import { isLoopbackHost, LINK_PATH, parseBaseHost, type BaseHost } from "@moor/protocol";
import { ConfigError } from "@moor/runtime/portable";

/** A checked endpoint. */
export interface LinkEndpoint {
  /** Whether links and one-shots go over TLS. */
  readonly isSecure: boolean;
  /** The host, without port; what hosts of redirects are judged against (L4). */
  readonly base: BaseHost;
  /** `:8443`, or empty for the scheme's own port. */
  readonly portSuffix: string;
  /** Path every route is appended to: empty, or starting with a slash and not ending with one. */
  readonly basePath: string;
}

/** A URL to dial, taken apart so that nothing parses it again. */
export interface LinkUrl {
  /** The host without port: SNI, certificate name and signed host (L9, L29). */
  readonly host: string;
  /** Scheme, host and port. */
  readonly origin: string;
  /** Path, starting with a slash. */
  readonly path: string;
}

const EXPECTED = "wss://HOST[:PORT][/PREFIX] or https://…; ws:// and http:// only for this machine";
/** Scheme and authority as they stand, before a URL parser mends them. */
const PARTS = /^(wss|ws|https|http):\/\/([^/?#\\]*)/;

/**
 * Checks the endpoint of a box or app.
 *
 * @param option the setting as its user writes it, for the error
 * @throws ConfigError for another scheme, user info, query, fragment, a host that is no base host (L4), a route in place of
 *   a prefix, and for `ws` and `http` to anything but a loopback name (L9); no part of the text that could be a secret is
 *   repeated
 */
export function parseLinkEndpoint(option: string, text: string): LinkEndpoint {
  const [, scheme = "", authority = ""] = PARTS.exec(text) ?? [];
  const url = scheme === "" || !URL.canParse(text) ? undefined : new URL(text);
  if (url === undefined) throw new ConfigError(option, "a text that is no such URL", EXPECTED);
  if (authority.includes("@")) throw new ConfigError(option, "a URL with user info", "a URL without it");
  if (/[?#]/.test(text)) throw new ConfigError(option, "a URL with a query or fragment", "a URL without");
  const host = authority.replace(/:\d*$/, "");
  const base = parseBaseHost(host);
  if (base === undefined || base !== url.hostname) {
    throw new ConfigError(
      option,
      `the host ${shown(host)}`,
      "a lower-case name without final dot, or an address",
    );
  }
  const isSecure = scheme === "wss" || scheme === "https";
  if (!isSecure && !isLoopbackHost(base)) {
    throw new ConfigError(option, `${scheme}:// to another machine`, "wss:// or https://");
  }
  const portSuffix = url.port === "" ? "" : `:${url.port}`;
  const basePath = url.pathname.replace(/\/+$/, "");
  const route = Object.values(LINK_PATH).find((path) => basePath.endsWith(path));
  if (route !== undefined) {
    throw new ConfigError(
      option,
      `a URL that ends in ${route}`,
      "a URL without it: routes are appended to it",
    );
  }
  return { isSecure, base, portSuffix, basePath };
}

/** Where a link to `host` is dialled. `path` is a route's own. Spec L9. */
export function linkUrl(endpoint: LinkEndpoint, host: string, path: string): LinkUrl {
  return urlOf(endpoint, endpoint.isSecure ? "wss" : "ws", host, path);
}

/** Where a one-shot to `host` is sent. Spec L9, L19. */
export function oneShotUrl(endpoint: LinkEndpoint, host: string, path: string): LinkUrl {
  return urlOf(endpoint, endpoint.isSecure ? "https" : "http", host, path);
}

function urlOf({ portSuffix, basePath }: LinkEndpoint, scheme: string, host: string, path: string): LinkUrl {
  return { host, origin: `${scheme}://${host}${portSuffix}`, path: basePath + path };
}

function shown(host: string): string {
  return JSON.stringify(host.length > 80 ? `${host.slice(0, 80)}…` : host);
}
