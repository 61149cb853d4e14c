// Whether the agent can serve a call now: the truth table of its `/readyz`.
//
// Spec: T24, R17 (only a successful poll brings readiness back).   Pure.
// I1  Ready = the newest finished poll succeeded AND less than two configured waits ago AND every target answered its last
//     probe. Nothing else counts: not an `initialize`, not an earlier success.

/** What readiness depends on. */
export interface ReadinessFacts {
  /** How the newest finished poll ended; cancelled polls do not count as finished. */
  readonly newestPoll: "none" | "succeeded" | "failed";
  /** Milliseconds since it ended; 0 where there is none. */
  readonly newestPollAgeMs: number;
  /** The configured wait of a poll, milliseconds. */
  readonly pollWaitMs: number;
  /** One per MCP server: what came of its newest probe. */
  readonly targets: readonly TargetProbe[];
}

/** What came of a target's newest probe or call; any HTTP answer counts as answered. */
export type TargetProbe = "unknown" | "answered" | "failed";

/** Ready, or the first reason why not. */
export type Readiness =
  | { readonly isReady: true }
  | {
      readonly isReady: false;
      readonly reason: "no-poll-yet" | "poll-failed" | "poll-stale" | "target-unknown" | "target-failed";
    };

/** Judges the facts. Spec T24. */
export function judgeReadiness(facts: ReadinessFacts): Readiness {
  const { newestPoll, newestPollAgeMs, pollWaitMs, targets } = facts;
  if (newestPoll === "none") return { isReady: false, reason: "no-poll-yet" };
  if (newestPoll === "failed") return { isReady: false, reason: "poll-failed" };
  if (newestPollAgeMs >= 2 * pollWaitMs) return { isReady: false, reason: "poll-stale" };
  if (targets.includes("failed")) return { isReady: false, reason: "target-failed" };
  if (targets.includes("unknown")) return { isReady: false, reason: "target-unknown" };
  return { isReady: true };
}
