// How a node's links are closed so that their clients do not come back as a storm: one spread for all, waves if need be.
//
// Spec: L24; L16 (clients redial uniformly within the spread).
// I1  No wave closes more links than the planned rate takes in within the spread, unless waves would not help.
// I2  Waves lie one spread apart, so that a wave's clients are back before the next one's leave.
// I3  The waves close as many links as there are.
// I4  Time in which nobody serves is no part of the spread that clients are counted on to come back in. What dials into it
//     is then taken in beside the rest in no more time than it lasted.

import { clampSpreadMs, SPREAD_MS_MAX } from "@moor/protocol";

/** Part of the accept rate that a spread asks for; the rest is for links that live, for calls, and for who waited. */
export const PLANNED_PART = 0.5;

/** What a plan is made from. */
export interface PlanInput {
  /** Links to close. Count. */
  readonly links: number;
  /** Links a second that whoever takes the clients in can accept when it does nothing else. More than 0. */
  readonly acceptRate: number;
  /** Time from a wave's close until somebody serves, where nobody does meanwhile. Milliseconds. */
  readonly gapMs: number;
  /**
   * Whether clients can come back while this process lives: to another node, that is. Else waves only make the first ones
   * wait longer, and there is one.
   */
  readonly isServedMeanwhile: boolean;
  /** The operator's spread: one wave, whatever the accept rate. Milliseconds, SPREAD_MS_MIN–SPREAD_MS_MAX. */
  readonly spreadMs?: number | undefined;
}

/** Links that are closed together. */
export interface Wave {
  /** Milliseconds after the first one. */
  readonly atMs: number;
  readonly links: number;
}

/** When which share of the links is closed. */
export interface SpreadPlan {
  readonly links: number;
  /** What every 4503 says. Milliseconds, an integer from SPREAD_MS_MIN to SPREAD_MS_MAX. */
  readonly spreadMs: number;
  /** At least one. */
  readonly waves: readonly Wave[];
}

/** The spread that these links would need, however long. Milliseconds (I4). */
export function spreadNeededMs({
  links,
  acceptRate,
  gapMs,
}: Pick<PlanInput, "links" | "acceptRate" | "gapMs">): number {
  return gapMs + (links / (acceptRate * PLANNED_PART)) * 1000;
}

/** The plan for a drain. Spec L24. */
export function planSpread(input: PlanInput): SpreadPlan {
  const { links, isServedMeanwhile, spreadMs } = input;
  const neededMs = Math.ceil(
    isServedMeanwhile ? spreadNeededMs({ ...input, gapMs: 0 }) : spreadNeededMs(input),
  );
  const spread = clampSpreadMs(spreadMs ?? neededMs);
  const isOne = spreadMs !== undefined || !isServedMeanwhile || neededMs <= SPREAD_MS_MAX;
  const count = isOne ? 1 : Math.ceil(neededMs / SPREAD_MS_MAX);
  const before = (wave: number) => Math.round((links * wave) / count);
  const waves = Array.from({ length: count }, (_, wave) => ({
    atMs: wave * spread,
    links: before(wave + 1) - before(wave),
  }));
  return { links, spreadMs: spread, waves };
}

/** When the last of the clients that do as they are told has redialled. Milliseconds after the first wave. */
export function planEndMs({ waves, spreadMs }: Pick<SpreadPlan, "waves" | "spreadMs">): number {
  return (waves.at(-1)?.atMs ?? 0) + spreadMs;
}
