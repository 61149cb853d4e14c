// Noting which boxes and apps said hello, and whether they follow shards.
//
// Spec: L22.
// I1  What is noted within SIGHTING_FRESH_MS and says the same is not written again, whichever node asks.
// I2  What blocks a move is never dropped to make room: only apps that block nothing, and those not seen for APP_SEEN_MS.
// I3  A home's apps are bounded all the same: where HOME_APPS_MAX block, one more is not noted, and blocks nothing more.
// I4  A box's hello that arrives after another box was enrolled says nothing of that one, and is dropped.

import { integerAt, textAt } from "../columns.ts";
import type { Ledger } from "../ledger.ts";
import { insertRows, parameters, queriesIn } from "../multi-row.ts";
import { all, done, type MutationFunction, type MutationSteps, type Steps } from "../mutation-steps.ts";
import { HOME_APP_COLUMNS, query, type Row } from "../statements.ts";
import { WRITE } from "../write-statements.ts";
import { APP_SEEN_MS } from "../move-blockers.ts";

/** How old a note may be before the same is noted anew. Milliseconds: an hour, of the 30 days that count. */
export const SIGHTING_FRESH_MS = 3_600_000;
/** Most apps remembered of one home. Count: a household's, with room for reinstalled ones. */
export const HOME_APPS_MAX = 256;

/** Most hellos noted in one transaction. Count. */
export const SIGHTINGS_PER_WRITE_MAX = 500;

/** Hellos to be noted, each home's box and each app at most once. */
export interface RecordHomeSightings {
  readonly kind: "record-home-sightings";
  readonly sightings: readonly {
    readonly home: string;
    /** Null for the box. */
    readonly app: string | null;
    readonly hasShard: boolean;
    readonly boxKey?: string | undefined;
  }[];
}

type Sighting = RecordHomeSightings["sightings"][number];

export const recordHomeSightings: MutationFunction<RecordHomeSightings> = function* (
  { sightings },
  ledger,
): MutationSteps {
  const ids = [...new Set(sightings.map(({ home }) => home))];
  const homes = new Map(
    (yield* all(queriesIn("select id, box_key, box_has_shard, box_seen_at_ms from homes where id", ids))).map(
      (row) => [textAt(row, "id"), row],
    ),
  );
  const known = sightings.filter(({ home }) => homes.has(home));
  yield* noteBoxes(
    known.filter((each) => each.app === null && isOfPresentBox(each, homes.get(each.home))),
    homes,
    ledger,
  );
  yield* noteApps(
    known.filter(({ app }) => app !== null),
    ledger,
  );
  return done();
};

function* noteBoxes(
  boxes: readonly Sighting[],
  homes: ReadonlyMap<string, Row>,
  ledger: Ledger,
): Steps<void> {
  for (const hasShard of [true, false]) {
    const due = boxes
      .filter((box) => box.hasShard === hasShard)
      .map(({ home }) => home)
      .filter((home) => isDue(homes.get(home), "box_has_shard", "box_seen_at_ms", hasShard, ledger));
    if (due.length === 0) continue;
    yield query(
      `update homes set box_has_shard = $1, box_seen_at_ms = $2 where id in (${parameters(due.length, 3)})`,
      [hasShard ? 1 : 0, ledger.wallMs, ...due],
    );
    for (const home of due) ledger.change("home", home);
  }
}

/** Whether no other box was enrolled since (I4). */
function isOfPresentBox({ boxKey }: Sighting, row: Row | undefined): boolean {
  return boxKey === undefined || row?.["box_key"] === boxKey;
}

function* noteApps(apps: readonly Sighting[], ledger: Ledger): Steps<void> {
  const found = new Map(
    (yield* all(
      queriesIn("select id, has_shard, last_seen_ms from home_apps where id", apps.map(appId)),
    )).map((row) => [textAt(row, "id"), row]),
  );
  const due = apps.filter((each) =>
    isDue(found.get(appId(each)), "has_shard", "last_seen_ms", each.hasShard, ledger),
  );
  yield* all(
    insertRows(
      "home_apps",
      HOME_APP_COLUMNS,
      due.map((each) => [appId(each), each.home, each.app, each.hasShard ? 1 : 0, ledger.wallMs]),
      "on conflict (id) do update set has_shard = excluded.has_shard, last_seen_ms = excluded.last_seen_ms",
    ),
  );
  for (const each of due) ledger.change("home-app", appId(each));
  const added = Map.groupBy(
    due.filter((each) => !found.has(appId(each))),
    ({ home }) => home,
  );
  for (const [home, ofHome] of added) yield* makeRoom(home, ofHome, ledger);
}

/** Keeps a home's apps below HOME_APPS_MAX (I2, I3). */
function* makeRoom(home: string, added: readonly Sighting[], ledger: Ledger): Steps<void> {
  const total = integerAt((yield query(WRITE.countHomeApps, [home]))[0], "total");
  if (total <= HOME_APPS_MAX) return;
  const old = yield query(WRITE.deleteOldHomeApps, [home, ledger.wallMs - APP_SEEN_MS]);
  const excess = total - old.length - HOME_APPS_MAX;
  const harmless = excess <= 0 ? [] : yield query(WRITE.deleteHarmlessHomeApps, [home, excess]);
  const surplus = added.filter(({ hasShard }) => !hasShard).slice(0, Math.max(0, excess - harmless.length));
  yield* all(queriesIn("delete from home_apps where id", surplus.map(appId)));
  for (const row of [...old, ...harmless]) ledger.change("home-app", textAt(row, "id"));
}

/** Whether a note is new, says something else, or is old (I1). */
function isDue(
  row: Row | undefined,
  capability: string,
  seenAt: string,
  hasShard: boolean,
  { wallMs }: Ledger,
): boolean {
  const seenAtMs = row?.[seenAt];
  if (row === undefined || typeof seenAtMs !== "number") return true;
  return row[capability] !== (hasShard ? 1 : 0) || seenAtMs < wallMs - SIGHTING_FRESH_MS;
}

function appId({ home, app }: Sighting): string {
  return `${home}/${app}`;
}
