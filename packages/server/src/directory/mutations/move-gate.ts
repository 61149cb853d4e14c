// Whether homes may leave the default shard: only if whoever speaks to them follows a redirect there.
//
// Spec: L22.
// I1  A box that never said hello blocks: nobody knows what it can do.

import type { MoveBlocker } from "../home-records.ts";
import { integerAt, textAt } from "../columns.ts";
import type { Ledger } from "../ledger.ts";
import { chunksOf, parameters, queriesIn } from "../multi-row.ts";
import { all, refused, type MutationOutcome, type Steps } from "../mutation-steps.ts";
import type { Row } from "../statements.ts";

/** How long an app that was seen counts. Milliseconds: 30 days. Spec L22. */
export const APP_SEEN_MS = 30 * 24 * 3_600_000;

/** Most blockers that a refusal names. Count. */
const BLOCKERS_SHOWN_MAX = 20;

/** Who keeps each of these tenants on the default shard; tunnels, and homes that nobody keeps, are not in it. */
export function* moveBlockers(
  tenants: readonly string[],
  ledger: Ledger,
): Steps<ReadonlyMap<string, readonly MoveBlocker[]>> {
  const homes = tenants.filter((tenant) => !tenant.startsWith("tunnel_"));
  const blockers = new Map<string, MoveBlocker[]>();
  if (homes.length === 0) return blockers;
  const add = (home: string, blocker: MoveBlocker) =>
    void blockers.set(home, [...(blockers.get(home) ?? []), blocker]);
  const boxes = yield* all(queriesIn("select id, box_has_shard, box_seen_at_ms from homes where id", homes));
  for (const row of boxes) {
    if (row["box_has_shard"] !== 1) add(textAt(row, "id"), boxBlocker(row));
  }
  for (const chunk of chunksOf(homes)) {
    const apps = yield {
      sql: `select home, app, last_seen_ms from home_apps where has_shard = 0 and last_seen_ms >= $1
        and home in (${parameters(chunk.length, 2)}) order by home, last_seen_ms desc, app`,
      params: [ledger.wallMs - APP_SEEN_MS, ...chunk],
    };
    for (const row of apps) {
      const [app, lastSeenAtMs] = [textAt(row, "app"), integerAt(row, "last_seen_ms")];
      add(textAt(row, "home"), { kind: "app", app, lastSeenAtMs });
    }
  }
  return blockers;
}

/** The refusal of a home's move, naming who blocks it. Its data is `{blockers: […], total}`. */
export function moveBlocked(home: string, blockers: readonly MoveBlocker[]): MutationOutcome {
  const shown = blockers.slice(0, BLOCKERS_SHOWN_MAX).map(blockerJson);
  const who = blockers.slice(0, 3).map(blockerText).join(", ");
  const more = blockers.length > 3 ? ` and ${blockers.length - 3} more` : "";
  return refused("move_blocked", `home ${home} stays on the default shard because of ${who}${more}`, {
    blockers: shown,
    total: blockers.length,
  });
}

function blockerText(blocker: MoveBlocker): string {
  if (blocker.kind === "app") return `app ${blocker.app}, which does not follow shards`;
  return blocker.hasShard === null
    ? "its box, which was never seen"
    : "its box, which does not follow shards";
}

function blockerJson(blocker: MoveBlocker): Readonly<Record<string, unknown>> {
  const last_seen_at = blocker.lastSeenAtMs === null ? null : new Date(blocker.lastSeenAtMs).toISOString();
  return blocker.kind === "app"
    ? { kind: "app", app: blocker.app, shard: false, last_seen_at }
    : { kind: "box", shard: blocker.hasShard, last_seen_at };
}

function boxBlocker(row: Row): MoveBlocker {
  const hasShard = row["box_has_shard"] === null ? null : false;
  const lastSeenAtMs = row["box_seen_at_ms"] === null ? null : integerAt(row, "box_seen_at_ms");
  return { kind: "box", hasShard, lastSeenAtMs };
}
