// What a drain is going to do and what became of it, as logs, the operator API and `moor drain` tell it.
//
// Spec: L24; design "Drains and restarts".
// I1  links = noted + unknown; noted = back + elsewhere + never, once the report is done.

import type { LogFields } from "@moor/runtime";
import type { DrainNote } from "./drain-note.ts";
import type { ReturnCounts, ReturnWatch } from "./return-watch.ts";
import type { SpreadPlan } from "./spread-plan.ts";

/**
 * `closing`: links are being closed. `watching`: the next process counts. `done`: nobody is waited for any more.
 * `cut-short`: the node left again before that.
 */
export type DrainState = "closing" | "watching" | "done" | "cut-short";

/** Longest time without service that is taken for a restart: beyond it somebody had stopped the node. Milliseconds. */
const GAP_MS_MAX = 60_000;

/** A report. Counts, and milliseconds since the first close; null = not known (yet). */
export interface DrainReport {
  readonly state: DrainState;
  readonly node: string;
  readonly shards: readonly string[];
  /** RFC 3339. */
  readonly started_at: string;
  readonly spread_ms: number;
  readonly waves: number;
  /** Links a second that the node was thought to accept when it does nothing else. */
  readonly accept_rate: number;
  readonly links: number;
  /** Closes begun, and links of these that had to be destroyed. */
  readonly closed: number;
  readonly destroyed: number;
  readonly back: number;
  readonly back_within_spread: number;
  readonly elsewhere: number;
  /** Not back when the watch ended; while it goes on: not back yet. */
  readonly never: number;
  /** Beyond what the note tells of, and not back when the watch was cut short. */
  readonly unknown: number;
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
  readonly max_ms: number | null;
  /** From the last link's end to the moment the next process served. */
  readonly down_ms: number | null;
}

/** What a drain would do now. */
export interface DrainForecast {
  readonly node: string;
  /** Every shard of the node: they restart together. */
  readonly shards: readonly string[];
  readonly links: number;
  /** Links a second that the node can accept when it does nothing else. */
  readonly accept_rate: number;
  /** Whether the accept rate was measured; else it is the start value. */
  readonly is_measured: boolean;
  readonly spread_ms: number;
  readonly waves: readonly { readonly at_ms: number; readonly links: number }[];
  /** Whether dials wait in a queue while nobody serves, instead of being refused. */
  readonly is_handed_over: boolean;
  /** Whether clients can come back to another node while the restart goes on. */
  readonly is_served_meanwhile: boolean;
  /** Expected time from the last wave's close to the next process serving: that of the restart before, else a guess. */
  readonly gap_ms: number;
}

/** The report of a drain that is watched, or of one that is under way. */
export function drainReport(
  state: DrainState,
  watch: Pick<ReturnWatch, "note"> & { readonly counts: () => ReturnCounts },
  shards: readonly string[],
  downMs: number | undefined,
): DrainReport {
  const { note } = watch;
  const { noted, back, backWithinSpread, elsewhere, missing, p50Ms, p95Ms, maxMs } = watch.counts();
  return {
    state,
    node: note.node,
    shards,
    started_at: new Date(note.startedAtMs).toISOString(),
    spread_ms: note.spreadMs,
    waves: note.waves,
    accept_rate: rounded(note.acceptRate),
    links: note.links,
    closed: note.closed,
    destroyed: note.destroyed,
    back,
    back_within_spread: backWithinSpread,
    elsewhere,
    never: state === "cut-short" ? 0 : missing,
    unknown: Math.max(0, note.links - noted) + (state === "cut-short" ? missing : 0),
    p50_ms: roundedOrNull(p50Ms),
    p95_ms: roundedOrNull(p95Ms),
    max_ms: roundedOrNull(maxMs),
    down_ms: roundedOrNull(downMs),
  };
}

/** What a plan would do. */
export function drainForecast(
  plan: SpreadPlan,
  facts: Pick<DrainForecast, "node" | "shards" | "is_measured" | "is_handed_over" | "is_served_meanwhile"> & {
    readonly acceptRate: number;
    readonly gapMs: number;
  },
): DrainForecast {
  const { acceptRate, gapMs, ...rest } = facts;
  return {
    ...rest,
    links: plan.links,
    accept_rate: rounded(acceptRate),
    spread_ms: plan.spreadMs,
    waves: plan.waves.map(({ atMs, links }) => ({ at_ms: atMs, links })),
    gap_ms: Math.round(gapMs),
  };
}

/** A report as the fields of a log line. */
export function reportFields(report: DrainReport): LogFields {
  return {
    links: report.links,
    closed: report.closed,
    destroyed: report.destroyed,
    spreadMs: report.spread_ms,
    waves: report.waves,
    acceptRate: report.accept_rate,
    back: report.back,
    backWithinSpread: report.back_within_spread,
    elsewhere: report.elsewhere,
    never: report.never,
    unknown: report.unknown,
    p50Ms: report.p50_ms,
    p95Ms: report.p95_ms,
    maxMs: report.max_ms,
    downMs: report.down_ms,
  };
}

/** How long nobody served, from what both processes know. */
export function downMsOf({ closedAtMs }: DrainNote, readyAtWallMs: number): number | undefined {
  return closedAtMs === null ? undefined : Math.max(0, readyAtWallMs - closedAtMs);
}

/** Time from the close of the last wave until the next process served; undefined where that was no restart. */
export function gapMsOf(note: DrainNote, readyAtWallMs: number): number | undefined {
  const lastWaveAtMs = note.startedAtMs + note.endMs - note.spreadMs;
  const gapMs = Math.max(0, readyAtWallMs - lastWaveAtMs);
  return gapMs <= GAP_MS_MAX ? gapMs : undefined;
}

function rounded(value: number): number {
  return Math.round(value);
}

function roundedOrNull(value: number | undefined): number | null {
  return value === undefined ? null : Math.round(value);
}
