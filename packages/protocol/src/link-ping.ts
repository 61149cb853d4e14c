// How long a link may be silent.
// Spec: L32.   Pure.

import {
  LINK_PING_MS_DEFAULT,
  LINK_PING_MS_MAX,
  LINK_PING_MS_MIN,
  LINK_SILENCE_FACTOR,
} from "./link-limits.ts";

/** Time between the service's pings as a client takes it, milliseconds, 5000–120_000: hello_ok's, clamped; default 25_000. */
export function linkPingMs(pingMs: number | undefined): number {
  if (pingMs === undefined || Number.isNaN(pingMs)) return LINK_PING_MS_DEFAULT;
  return Math.min(LINK_PING_MS_MAX, Math.max(LINK_PING_MS_MIN, pingMs));
}

/** Silence after which either side ends the link, milliseconds: 2.5 times linkPingMs. */
export function linkSilenceMs(pingMs: number | undefined): number {
  return LINK_SILENCE_FACTOR * linkPingMs(pingMs);
}
