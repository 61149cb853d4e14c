// The time over which clients of a restarting service come back.
// Spec: L3, L5, L28.   Pure.
//
// I1  Always an integer 1000…60000, whatever a peer sent: nobody comes back in a rush, nobody stays away.

import { SPREAD_MS_DEFAULT, SPREAD_MS_MAX, SPREAD_MS_MIN } from "./link-limits.ts";

/** The spread that a 4503 close names, milliseconds, 1000–60_000: 5000 where the reason is no decimal number. Spec L5. */
export function restartSpreadMs(reason: string): number {
  return /^[0-9]+$/.test(reason) ? clampSpreadMs(Number(reason)) : SPREAD_MS_DEFAULT;
}

/** A spread as clients take it, milliseconds, 1000–60_000, an integer. Spec L5, L28. */
export function clampSpreadMs(spreadMs: number): number {
  if (Number.isNaN(spreadMs)) return SPREAD_MS_DEFAULT;
  return Math.round(Math.min(SPREAD_MS_MAX, Math.max(SPREAD_MS_MIN, spreadMs)));
}
