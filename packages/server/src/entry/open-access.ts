// Whether a caller without any key may use a tunnel whose access mode is `open`.
//
// Spec: T10. A web page anywhere can make a browser on this machine send requests to loopback, under a name of its
// own choosing (DNS rebinding): Host and Origin must therefore name loopback too.

import { isLoopbackHost } from "@moor/protocol";
import type { HttpExchange } from "../http/http-exchange.ts";
import { refuse, type Refusal } from "../http/reply-error.ts";

/** Refuses with host_not_allowed unless listener, Host and Origin are all this machine's; `undefined` = allowed. */
export function checkOpenAccess(exchange: HttpExchange, isForced: boolean): Refusal | undefined {
  if (isForced) return undefined;
  if (!exchange.isLoopbackListener) {
    return refuse("host_not_allowed", "a tunnel with open access is served on loopback listeners only");
  }
  const host = hostNameOf(exchange.header("host"));
  if (host === undefined || !isLoopbackHost(host)) {
    return refuse("host_not_allowed", "open access needs a loopback Host header");
  }
  const origin = exchange.header("origin");
  if (origin !== undefined && !isLoopbackOrigin(origin)) {
    return refuse("host_not_allowed", "open access refuses pages of other origins");
  }
  return undefined;
}

function hostNameOf(header: string | undefined): string | undefined {
  return /^(\[[0-9A-Fa-f:.]+\]|[^:/?#@[\]]+)(?::\d{1,5})?$/.exec(header ?? "")?.[1];
}

function isLoopbackOrigin(origin: string): boolean {
  const host = /^https?:\/\/([^/?#@]+)$/.exec(origin)?.[1];
  const name = hostNameOf(host);
  return name !== undefined && isLoopbackHost(name);
}
