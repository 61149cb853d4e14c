// What an agent asks of a poll.
//
// Spec: T4.

import { parseChannelName, POLL_HOLD_MS_DEFAULT, POLL_LIMIT_MAX, type ChannelName } from "@moor/protocol";
import { refuse, type Refusal } from "../http/reply-error.ts";

export interface PollQuery {
  readonly kind: "poll";
  /** Most commands wanted: 1–25. */
  readonly limit: number;
  /** How long to hold the poll. Milliseconds, 0 to the service's own bound. */
  readonly holdMs: number;
  /** Empty = every channel. */
  readonly channels: ReadonlySet<ChannelName>;
}

/** Reads the query of a poll. Refuses with invalid_request, invalid_channel_format. Spec T4. */
export function parsePollQuery(query: string): PollQuery | Refusal {
  const params = new URLSearchParams(query);
  const limit = clampedInteger(params.get("limit"), 1, POLL_LIMIT_MAX, POLL_LIMIT_MAX);
  if (limit === undefined) return refuse("invalid_request", "limit is not an integer", { param: "limit" });
  const holdMs = clampedInteger(params.get("timeout_ms"), 0, POLL_HOLD_MS_DEFAULT, POLL_HOLD_MS_DEFAULT);
  if (holdMs === undefined) {
    return refuse("invalid_request", "timeout_ms is not an integer", { param: "timeout_ms" });
  }
  const channels = new Set<ChannelName>();
  for (const text of params.getAll("channel")) {
    const channel = parseChannelName(text);
    if (channel === undefined) return refuse("invalid_channel_format", undefined, { param: "channel" });
    channels.add(channel);
  }
  return { kind: "poll", limit, holdMs, channels };
}

function clampedInteger(text: string | null, min: number, max: number, absent: number): number | undefined {
  if (text === null) return absent;
  if (!/^-?[0-9]+$/.test(text)) return undefined;
  return Math.min(Math.max(Number(text), min), max);
}
