// What this node saw happen to its tenants: the node's share of `moor why`.
//
// A ring of plain events in memory: the directory has the placements and who made them, this has what followed.

import type { Runtime } from "@moor/runtime";

/** Events a node remembers, over all tenants. Count: some hundred bytes each. */
const EVENTS_MAX = 10_000;

export type TimelineEventName =
  | "owner-gained"
  | "owner-lost"
  | "corrected"
  | "polls-closed"
  | "move-refused"
  | "duplicate-identity";

export interface TimelineEvent {
  /** Wall clock, milliseconds. */
  readonly atMs: number;
  readonly tenant: string;
  readonly event: TimelineEventName;
  readonly detail: string;
}

export interface Timeline {
  note(tenant: string, event: TimelineEventName, detail: string): void;
  /** Oldest first. */
  of(tenant: string): readonly TimelineEvent[];
}

export function createTimeline(runtime: Pick<Runtime, "wallMs">): Timeline {
  let events: TimelineEvent[] = [];
  return {
    note: (tenant, event, detail) => {
      events.push({ atMs: runtime.wallMs(), tenant, event, detail });
      if (events.length > 2 * EVENTS_MAX) events = events.slice(-EVENTS_MAX);
    },
    of: (tenant) => events.filter((event) => event.tenant === tenant),
  };
}
