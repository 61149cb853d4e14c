// Compares what callers saw with what the MCP servers executed.
//
// Spec: T4, T6, T11.
// I1  Every call is in exactly one of the two outcomes `answered` and `failed`; what was executed is counted apart.
// I2  A verdict is about counts; times are reported, never judged here.

import type { CallRecord } from "./fleet-call.ts";

/** One execution at an MCP server. */
export interface Execution {
  readonly call: string;
  /** Tunnel of the agent that asked for it. */
  readonly tunnel: string;
}

/** A kind of failure with a few calls that show it. */
export interface FailureCount {
  readonly kind: string;
  readonly count: number;
  /** Up to three calls' names. */
  readonly examples: readonly string[];
}

/** What became of all calls of a run. */
export interface FleetVerdict {
  readonly calls: number;
  readonly answered: number;
  /** Calls that ended in anything but their own answer. Count. */
  readonly failed: number;
  readonly failures: readonly FailureCount[];
  /** Calls that were executed more than once. Count. */
  readonly executedTwice: number;
  /** Calls that were answered and are in no ledger. Count. */
  readonly answeredUnexecuted: number;
  /** Calls executed behind another tunnel than their own. Count. */
  readonly executedElsewhere: number;
  /** Notifications that answered calls asked for and did not get before their final, or not in order. Count. */
  readonly lostNotifications: number;
  /** Milliseconds, over all calls that ended, failed ones too. */
  readonly latency: { readonly p50Ms: number; readonly p99Ms: number; readonly slowestMs: number };
  /** The slowest three, slowest first: where to look. */
  readonly slowest: readonly Pick<CallRecord, "name" | "tunnel" | "form" | "latencyMs">[];
}

/** Judges the calls of one run; `progressCount`: notifications owed to each call that asked for them. */
export function judgeFleet(
  records: readonly CallRecord[],
  executions: readonly Execution[],
  progressCount: number,
): FleetVerdict {
  const tunnelOf = new Map(records.map(({ name, tunnel }) => [name, tunnel]));
  const executed = new Map<string, number>();
  let executedElsewhere = 0;
  for (const { call, tunnel } of executions) {
    const own = tunnelOf.get(call);
    if (own === undefined) continue; // of another run
    executed.set(call, (executed.get(call) ?? 0) + 1);
    if (own !== tunnel) executedElsewhere += 1;
  }
  const answered = records.filter(({ ending }) => ending.kind === "answered");
  const failures = countFailures(records);
  return {
    calls: records.length,
    answered: answered.length,
    failed: records.length - answered.length,
    failures,
    executedTwice: [...executed.values()].filter((count) => count > 1).length,
    answeredUnexecuted: answered.filter(({ name }) => !executed.has(name)).length,
    executedElsewhere,
    lostNotifications: answered.reduce((sum, record) => sum + lostBy(record, progressCount), 0),
    latency: latencyOf(records),
    slowest: records
      .toSorted((one, other) => other.latencyMs - one.latencyMs)
      .slice(0, 3)
      .map(({ name, tunnel, form, latencyMs }) => ({ name, tunnel, form, latencyMs })),
  };
}

/** The counts of a verdict that say whether a promise was kept: all 0 is perfect. */
export function faultsOf(verdict: FleetVerdict): Readonly<Record<string, number>> {
  const { failed, executedTwice, answeredUnexecuted, executedElsewhere, lostNotifications } = verdict;
  return { failed, executedTwice, answeredUnexecuted, executedElsewhere, lostNotifications };
}

/** A verdict without a fault, for `expect(faultsOf(…)).toEqual(NO_FAULTS)`. */
export const NO_FAULTS = {
  failed: 0,
  executedTwice: 0,
  answeredUnexecuted: 0,
  executedElsewhere: 0,
  lostNotifications: 0,
} as const;

function countFailures(records: readonly CallRecord[]): FailureCount[] {
  const byKind = new Map<string, string[]>();
  for (const { name, form, ending } of records) {
    if (ending.kind === "answered") continue;
    const kind = `${form}: ${describe(ending)}`;
    byKind.set(kind, [...(byKind.get(kind) ?? []), name]);
  }
  return [...byKind].map(([kind, names]) => ({ kind, count: names.length, examples: names.slice(0, 3) }));
}

function describe(ending: Exclude<CallRecord["ending"], { kind: "answered" }>): string {
  switch (ending.kind) {
    case "refused":
      return `${ending.status} ${ending.code}`;
    case "foreign":
      return "another call's answer";
    case "broken":
      return ending.fault;
  }
}

/** A notification out of its place counts as lost: a client that follows progress would ignore it. */
function lostBy({ form, ending }: CallRecord, progressCount: number): number {
  if (form === "json" || ending.kind !== "answered") return 0;
  let next = 1;
  for (const value of ending.progress) if (value === next) next += 1;
  return progressCount - (next - 1);
}

function latencyOf(records: readonly CallRecord[]): FleetVerdict["latency"] {
  const sorted = records.map(({ latencyMs }) => latencyMs).sort((one, other) => one - other);
  const at = (share: number) => Math.round((sorted[Math.floor((sorted.length - 1) * share)] ?? 0) * 10) / 10;
  return { p50Ms: at(0.5), p99Ms: at(0.99), slowestMs: at(1) };
}
