// Whether homes may leave the default shard: only if whoever speaks to them follows a redirect there.
//
// Spec: L22. Who blocks is move-blockers.ts's to say; this reads the rows, and refuses.

import { integerAt, textAt } from "../columns.ts";
import type { HomeAppRecord, MoveBlocker } from "../home-records.ts";
import type { Ledger } from "../ledger.ts";
import { APP_SEEN_MS, blockerJson, blockerText, FORCED_MOVE_BREAKS, homeBlockers } from "../move-blockers.ts";
import { chunksOf, parameters, queriesIn } from "../multi-row.ts";
import { all, refused, type MutationOutcome, type Steps } from "../mutation-steps.ts";
import type { Row } from "../statements.ts";

/** Most blockers that a refusal names. Count. */
const BLOCKERS_SHOWN_MAX = 20;
/** Most blockers in a refusal's message. Count. */
const BLOCKERS_SAID_MAX = 3;

/** Who keeps each of these tenants on the default shard; tunnels, and homes that nobody keeps, are not in it. */
export function* moveBlockers(
  tenants: readonly string[],
  ledger: Ledger,
): Steps<ReadonlyMap<string, readonly MoveBlocker[]>> {
  const ids = tenants.filter((tenant) => !tenant.startsWith("tunnel_"));
  const blocked = new Map<string, readonly MoveBlocker[]>();
  if (ids.length === 0) return blocked;
  const apps = yield* blockingApps(ids, ledger);
  const homes = yield* all(queriesIn("select id, box_has_shard, box_seen_at_ms from homes where id", ids));
  for (const row of homes) {
    const id = textAt(row, "id");
    const blockers = homeBlockers(boxOf(row), apps.get(id) ?? [], ledger.wallMs);
    if (blockers.length > 0) blocked.set(id, blockers);
  }
  return blocked;
}

/** The refusal of a home's move, naming who blocks it. Its data is `{blockers: […], total, breaks}`. */
export function moveBlocked(home: string, blockers: readonly MoveBlocker[]): MutationOutcome {
  const who = blockers.slice(0, BLOCKERS_SAID_MAX).map(blockerText).join("; ");
  const rest = blockers.length - BLOCKERS_SAID_MAX;
  const message = `home ${home} stays on the default shard because of ${who}${rest > 0 ? `; and ${rest} more` : ""}`;
  return refused("move_blocked", message, {
    blockers: blockers.slice(0, BLOCKERS_SHOWN_MAX).map(blockerJson),
    total: blockers.length,
    breaks: FORCED_MOVE_BREAKS,
  });
}

function* blockingApps(
  homes: readonly string[],
  { wallMs }: Ledger,
): Steps<ReadonlyMap<string, readonly HomeAppRecord[]>> {
  const apps = new Map<string, HomeAppRecord[]>();
  for (const chunk of chunksOf(homes)) {
    const rows = yield {
      sql: `select home, app, last_seen_ms from home_apps where has_shard = 0 and last_seen_ms >= $1
        and home in (${parameters(chunk.length, 2)})`,
      params: [wallMs - APP_SEEN_MS, ...chunk],
    };
    for (const row of rows) {
      const home = textAt(row, "home");
      const app = { app: textAt(row, "app"), hasShard: false, lastSeenAtMs: integerAt(row, "last_seen_ms") };
      apps.set(home, [...(apps.get(home) ?? []), app]);
    }
  }
  return apps;
}

function boxOf(row: Row): { readonly boxHasShard: boolean | null; readonly boxSeenAtMs: number | null } {
  return {
    boxHasShard: row["box_has_shard"] === null ? null : row["box_has_shard"] === 1,
    boxSeenAtMs: row["box_seen_at_ms"] === null ? null : integerAt(row, "box_seen_at_ms"),
  };
}
