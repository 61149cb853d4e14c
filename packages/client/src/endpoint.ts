// The one URL an agent is configured with: origin and path prefix, checked once at start.
//
// Spec: R10 (the very same endpoint for every poll), R8 (what may be shown of it), R18, T16 (plain http).
// I1  An Endpoint has no user info, query or fragment: there is nothing in it that must not be shown to its owner.

import { isLoopbackHost } from "@moor/protocol";
import { ConfigError } from "@moor/runtime";

/** A checked service URL. */
export interface Endpoint {
  /** Scheme, host and port, e.g. `https://moor.example`. */
  readonly origin: string;
  /** Path every route is appended to: empty, or starting with a slash and not ending with one. */
  readonly basePath: string;
}

/**
 * Checks a service URL.
 *
 * @param option the setting as its user writes it, for the error
 * @param isInsecureAllowed whether plain http may leave this machine (`--insecure`)
 * @throws ConfigError for anything but an http or https URL without user info, query and fragment, and for plain http
 *   to a host that is not loopback
 */
export function parseEndpoint(option: string, text: string, isInsecureAllowed: boolean): Endpoint {
  const url = parseHttpUrl(option, text);
  if (url.search !== "") throw new ConfigError(option, "a URL with a query", "a URL without one");
  if (url.protocol === "http:" && !isInsecureAllowed && !isLoopbackHost(url.hostname)) {
    throw new ConfigError(
      option,
      "plain http to a host that is not this machine",
      "https, or --insecure if the network between is trusted with the key",
    );
  }
  return { origin: url.origin, basePath: url.pathname.replace(/\/+$/, "") };
}

/**
 * Checks a URL that must be http or https and free of user info and fragment.
 *
 * @throws ConfigError; its text holds no part of the URL that could be a secret
 */
export function parseHttpUrl(option: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw new ConfigError(option, "a text that is no URL", "http://… or https://…");
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new ConfigError(option, `a ${url.protocol} URL`, "http://… or https://…");
  }
  if (url.username !== "" || url.password !== "") {
    throw new ConfigError(option, "a URL with user info", "a URL without it; secrets go into files");
  }
  if (url.hash !== "") throw new ConfigError(option, "a URL with a fragment", "a URL without one");
  return url;
}
