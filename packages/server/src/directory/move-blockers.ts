// Who keeps a home on the default shard, and what moving it all the same means.
//
// Spec: L22.   Pure.   I1  A box that never said hello blocks: nobody knows what it can do.

import type { HomeAppRecord, HomeRecord, MoveBlocker } from "./home-records.ts";

/** How long an app that was seen counts. Milliseconds: 30 days. Spec L22. */
export const APP_SEEN_MS = 30 * 24 * 3_600_000;

/** What a forced move breaks, for people. */
export const FORCED_MOVE_BREAKS =
  "whoever does not follow shards stays at the base host and is relayed from there: it is cut off whenever those nodes, or " +
  "their way to the new shard, are down";

/**
 * Who keeps a home on the default shard: its box first, then its apps, those seen last first.
 *
 * @param nowMs the directory's time, milliseconds since 1970
 */
export function homeBlockers(
  { boxHasShard, boxSeenAtMs }: Pick<HomeRecord, "boxHasShard" | "boxSeenAtMs">,
  apps: readonly HomeAppRecord[],
  nowMs: number,
): readonly MoveBlocker[] {
  const box: readonly MoveBlocker[] =
    boxHasShard === true ? [] : [{ kind: "box", hasShard: boxHasShard, lastSeenAtMs: boxSeenAtMs }];
  const blocking = apps
    .filter((app) => !app.hasShard && app.lastSeenAtMs >= nowMs - APP_SEEN_MS)
    .toSorted((one, other) => other.lastSeenAtMs - one.lastSeenAtMs || (one.app < other.app ? -1 : 1));
  return [...box, ...blocking.map(({ app, lastSeenAtMs }) => ({ kind: "app" as const, app, lastSeenAtMs }))];
}

/** A blocker as errors and the operator API show it. */
export function blockerJson(blocker: MoveBlocker): Readonly<Record<string, unknown>> {
  const { kind, lastSeenAtMs } = blocker;
  const last_seen_at = lastSeenAtMs === null ? null : new Date(lastSeenAtMs).toISOString();
  if (kind === "app") return { kind, app: blocker.app, shard: false, last_seen_at };
  return { kind, shard: blocker.hasShard, last_seen_at };
}

/** A blocker for people. */
export function blockerText(blocker: MoveBlocker): string {
  if (blocker.kind === "app") return `app ${blocker.app}, which does not follow shards`;
  return blocker.hasShard === null
    ? "its box, which was never seen"
    : "its box, which does not follow shards";
}
