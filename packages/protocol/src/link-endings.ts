// How dials and links end, redirects apart: failed dials, lost links, restarts.
// Spec: L14–L17, L23, L28.   Pure.
//
// I1  Only failed dials at K count against K; losing a link and 4503 never do (L15, L16).

import { dropRecord, withoutKept } from "./kept-host.ts";
import type { DialFailedEvent, LinkEffect, LostEvent, RestartingEvent } from "./link-event.ts";
import {
  LINK_CREDIT_MS,
  LINK_SETTLED_MS,
  REPLACED_SETTLED_MS,
  SHARD_HOST_FAIL_WINDOW_MS,
  SHARD_HOST_FAILS_MIN,
} from "./link-limits.ts";
import { CLOSE_CODE } from "./link-names.ts";
import type { FollowerIn, LinkFollower } from "./link-state.ts";
import type { LinkTrouble } from "./link-trouble.ts";
import { backOff, spreadOut, type LinkStep } from "./link-waits.ts";
import { restartSpreadMs } from "./restart-spread.ts";

/** A failed dial: counts if it was at K, forgets K if that is due, and backs off. Spec L14, L15. */
export function failDial(
  state: FollowerIn<"dialing">,
  { atMs, random }: Pick<DialFailedEvent, "atMs" | "random">,
  trouble: LinkTrouble,
  warnings: readonly LinkEffect[] = [],
): LinkStep {
  const begin = { atMs, random, trouble };
  if (state.kept === undefined || state.phase.host !== state.kept) return backOff(state, begin, warnings);
  const { count, sinceMs } = state.failures ?? { count: 0, sinceMs: atMs };
  const failures = { count: count + 1, sinceMs };
  const isForgotten = failures.count >= SHARD_HOST_FAILS_MIN && atMs - sinceMs >= SHARD_HOST_FAIL_WINDOW_MS;
  if (!isForgotten) return backOff({ ...state, failures }, begin, warnings);
  return backOff(withoutKept(state), begin, [...warnings, ...dropRecord(state, "host-forgotten")]);
}

/** A 4503 of a live link. Spec L16. */
export function restartLink(
  state: FollowerIn<"online">,
  { atMs, random, reason }: RestartingEvent,
): LinkStep {
  const settled = { ...settle(state, atMs), attempt: 0 };
  return spreadOut(settled, { atMs, random, trouble: "restarting" }, restartSpreadMs(reason));
}

/** Close codes that tell of a peer that broke down rather than of this client; absent: EOF or reset. Spec L28. */
const BROKEN_CODES: readonly (number | undefined)[] = [undefined, 1001, 1006, 1011, 1012];

/** A lost link. Spec L15, L23, L28. */
export function loseLink(state: FollowerIn<"online">, event: LostEvent, trouble: LinkTrouble): LinkStep {
  const { atMs, by, closeCode } = event;
  const { sinceMs, spreadMs } = state.phase;
  const settled = settle(state, atMs);
  const isReplaced = by === "peer" && closeCode === CLOSE_CODE.replaced;
  const next = {
    ...settled,
    attempt: atMs - sinceMs >= LINK_SETTLED_MS ? 0 : settled.attempt,
    isReplaced: settled.isReplaced || isReplaced,
  };
  const isBroken = by === "peer" && BROKEN_CODES.includes(closeCode);
  const warnings: readonly LinkEffect[] = isReplaced ? [{ kind: "warn", code: "replaced" }] : [];
  return backOff(next, { ...event, trouble }, warnings, isBroken ? spreadMs : undefined);
}

/** What a link has earned when it ends. Spec L17, L23. */
export function settle(state: FollowerIn<"online">, atMs: number): LinkFollower {
  const livedMs = atMs - state.phase.sinceMs;
  return {
    ...state,
    hasCredit: state.hasCredit || livedMs >= LINK_CREDIT_MS,
    isReplaced: state.isReplaced && livedMs < REPLACED_SETTLED_MS,
  };
}
