// What the links of an entry count. Labels are closed; no home, app, host or address is ever one.

import type { Gauge } from "prom-client";
import type { LabelledCounter } from "../../operator/metrics.ts";

/** Who is at the other end of a link. */
export const LINK_ROLES = ["box", "app"] as const;
export type LinkRole = (typeof LINK_ROLES)[number];

/** How an upgrade or a handshake ended. */
export const HANDSHAKE_OUTCOMES = [
  "online", // hello_ok was sent
  "redirected", // 4421
  "wait", // 4503: the owner is restarting, or out of reach
  "unauthorized", // 4401
  "protocol", // 4400, or the library's 1007 and 1009
  "timeout", // 4408
  "busy", // 4429
  "replaced", // 4409: a newer link was there at once
  "refused", // before the upgrade: host, limits, leaving
  "gone", // the client left
] as const;
export type HandshakeOutcome = (typeof HANDSHAKE_OUTCOMES)[number];

/** How a link that was online ended. */
export const LINK_CLOSES = [
  "4400",
  "4401",
  "4408",
  "4409",
  "4421",
  "4429",
  "4503",
  "silent", // 2.5 pings without a sign of life
  "slow", // the client did not read
  "client", // the client closed it, or its connection broke
] as const;
export type LinkClose = (typeof LINK_CLOSES)[number];

/** What became of one-shots and snapshots, by status. */
export const ONE_SHOT_OUTCOMES = [
  "200",
  "304",
  "400",
  "401",
  "404",
  "410",
  "413",
  "415",
  "421",
  "429",
  "503",
  "504",
] as const;
export type OneShotOutcome = (typeof ONE_SHOT_OUTCOMES)[number];

export interface LinkMetrics {
  /** Links that are online, by role. */
  readonly links: { set(role: LinkRole, count: number): void };
  readonly handshakes: LabelledCounter<HandshakeOutcome>;
  readonly closes: LabelledCounter<LinkClose>;
  /** Links whose handshake is not finished. */
  readonly handshaking: Pick<Gauge, "set">;
  readonly oneShots: LabelledCounter<OneShotOutcome>;
}
