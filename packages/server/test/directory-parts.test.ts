// The directory's smaller parts: migrations, placement choice, pages, the bounded cache.

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { applyMigrations, MIGRATIONS, type Migration } from "../src/directory/migrations.ts";
import { mutationSteps, type Mutation } from "../src/directory/mutations.ts";
import { pageOf } from "../src/directory/page.ts";
import { choosePlacement, revisionFloor } from "../src/directory/placement-choice.ts";
import { RecentMap } from "../src/directory/recent-map.ts";
import { commitBatch } from "../src/directory/sqlite-batch.ts";
import { createSqliteStatements } from "../src/directory/sqlite-statements.ts";
import { Ledger } from "../src/directory/ledger.ts";
import { READ } from "../src/directory/statements.ts";
import { WRITE } from "../src/directory/write-statements.ts";

const FOUNDATION: Mutation = {
  kind: "found-residency",
  name: "global",
  incarnation: "i1",
  isCorrecting: false,
  tokenKey: { id: "tk_1", sealedSecret: "v1.x" },
  serviceKey: { id: "sk", publicKey: "p", sealedSecret: "v1.x" },
};

const NODE = {
  id: "n1",
  incarnation: "i",
  internalUrl: "",
  roles: "entry,shard",
  version: "",
  shards: [{ id: "s1", publicHost: "h" }],
};

function tableNames(db: DatabaseSync): unknown[] {
  const rows = db.prepare("select name from sqlite_schema where type = 'table' order by name").all();
  return rows.map((row) => row["name"]);
}

test("migrations are numbered from 1 without gaps", () => {
  expect(MIGRATIONS.map((migration) => migration.version)).toEqual(MIGRATIONS.map((_, index) => index + 1));
});

test("migrations apply once, and later ones to a database that has the earlier", () => {
  const db = new DatabaseSync(":memory:");
  const later: readonly Migration[] = [
    ...MIGRATIONS,
    { version: MIGRATIONS.length + 1, worksWith: 2, sql: "create table more (id text);" },
  ];
  expect(applyMigrations(db, 5)).toEqual({ kind: "current", version: MIGRATIONS.length });
  expect(applyMigrations(db, 6)).toEqual({ kind: "current", version: MIGRATIONS.length });
  expect(applyMigrations(db, 7, later)).toEqual({ kind: "current", version: later.length });
  expect(tableNames(db)).toContain("more");
  const applied = db.prepare("select applied_at_ms as at from migrations order by version").all();
  expect(applied.map((row) => row["at"])).toEqual([...MIGRATIONS.map(() => 5), 7]);
});

test("a migration that fails leaves nothing of itself", () => {
  const db = new DatabaseSync(":memory:");
  const broken = [
    { version: 1, worksWith: 1, sql: "create table half (id text); create table half (id text);" },
  ];
  expect(() => applyMigrations(db, 1, broken)).toThrow();
  expect(db.isTransaction).toBe(false);
  expect(tableNames(db)).toEqual(["migrations"]);
});

test("a database of a later program is left alone", () => {
  const db = new DatabaseSync(":memory:");
  applyMigrations(db, 1);
  db.exec("insert into migrations (version, applied_at_ms) values (50, 1)");
  expect(applyMigrations(db, 2)).toEqual({ kind: "too-new", version: 50, known: MIGRATIONS.length });
});

test("a refused mutation of a batch is undone alone", () => {
  const db = new DatabaseSync(":memory:");
  applyMigrations(db, 1);
  const fields = { name: "n", description: "", access: "open", deadlineMs: 1_000, keys: [] };
  const mutations: readonly Mutation[] = [
    FOUNDATION,
    // No shard is live yet: its row is inserted before that is found out.
    { kind: "create-tunnel", id: "early", ...fields },
    { kind: "register-node", ...NODE },
    { kind: "create-tunnel", id: "late", ...fields },
    { kind: "create-tunnel", id: "late", ...fields },
  ];
  const outcome = commitBatch(db, createSqliteStatements(db), mutations, { tx: "t1", wallMs: 1 });
  expect(outcome).toMatchObject({
    kind: "committed",
    outcomes: [
      { kind: "done" },
      { code: "directory_unavailable" },
      { kind: "done" },
      { kind: "done" },
      { code: "conflict" },
    ],
  });
  expect(db.prepare("select id from tunnels").all()).toEqual([{ id: "late" }]);
  const changes = db.prepare("select seq, kind, id, tx from changes order by seq").all();
  expect(changes.map((row) => Object.values(row))).toEqual([
    [1, "token-key", "tk_1", "t1"],
    [2, "residency", "sk", "t1"],
    [3, "node", "n1", "t1"],
    [4, "shard", "s1", "t1"],
    [5, "residency", "", "t1"],
    [6, "placement", "late", "t1"],
    [7, "tunnel", "late", "t1"],
  ]);
});

test("a batch that the store fails is undone whole", () => {
  const db = new DatabaseSync(":memory:");
  applyMigrations(db, 1);
  db.exec("drop table changes");
  const mutations: readonly Mutation[] = [FOUNDATION, { kind: "register-node", ...NODE }];
  const outcome = commitBatch(db, createSqliteStatements(db), mutations, { tx: "t1", wallMs: 1 });
  expect(outcome.kind).toBe("failed");
  expect(db.isTransaction).toBe(false);
  expect(db.prepare("select id from nodes").all()).toEqual([]);
});

test("statements use numbered parameters and no value of SQLite's own", () => {
  for (const sql of [...Object.values(READ), ...Object.values(WRITE)]) {
    expect(sql).not.toMatch(/\?|\binsert or\b|strftime|unixepoch|randomblob|rowid/i);
  }
});

test("a mutation asks for the same statements whoever runs them", () => {
  const ledger = new Ledger(undefined, 5, "t1");
  const steps = mutationSteps({ kind: "record-seen", ids: ["a", "b"] }, ledger);
  const asked: unknown[] = [];
  let step = steps.next([]);
  while (step.done !== true) {
    asked.push([step.value.sql, step.value.params]);
    step = steps.next(step.value.sql === WRITE.markSeen && step.value.params[0] === "b" ? [{ id: "b" }] : []);
  }
  expect(asked).toEqual([
    [WRITE.markSeen, ["a"]],
    [WRITE.markSeen, ["b"]],
  ]);
  expect(step.value).toEqual({ kind: "done", rows: [] });
  expect(ledger.closingQueries().map((closing) => closing.params)).toEqual([
    [1, "tunnel", "b", "t1", 5, ""],
    [1, 0],
  ]);
});

test("a tenant's shard depends on the shards alone, and a shard that goes moves only its own tenants", () => {
  const shards = ["s1", "s2", "s3", "s4"];
  const tenants = Array.from({ length: 400 }, (_, index) => `tunnel_${index}`);
  const counts = new Map<string, number>();
  for (const tenant of tenants) {
    const chosen = choosePlacement(tenant, shards) ?? "";
    counts.set(chosen, (counts.get(chosen) ?? 0) + 1);
    expect(choosePlacement(tenant, shards.toReversed())).toBe(chosen);
    if (chosen !== "s3") expect(choosePlacement(tenant, ["s1", "s2", "s4"])).toBe(chosen);
  }
  for (const shard of shards) expect(counts.get(shard)).toBeGreaterThan(60);
  expect(choosePlacement("tunnel_1", [])).toBeUndefined();
});

test("a revision starts at the wall clock in microseconds and stays a safe integer", () => {
  expect(revisionFloor(1_796_000_000_000)).toBe(1_796_000_000_000_000);
  expect(revisionFloor(1.0007)).toBe(1_000);
  expect(revisionFloor(-5)).toBe(1);
  expect(revisionFloor(Number.MAX_SAFE_INTEGER)).toBe(Number.MAX_SAFE_INTEGER);
});

test("a cursor is taken back only as it was given", () => {
  const ids = ["a", "b", "c"].map((id) => ({ id }));
  const read = (afterId: string, limit: number) => ids.filter(({ id }) => id > afterId).slice(0, limit);
  const first = pageOf({ limit: 2 }, read);
  expect(first.items).toEqual([{ id: "a" }, { id: "b" }]);
  expect(pageOf({ limit: 2, after: first.next ?? "" }, read)).toEqual({ items: [{ id: "c" }], next: null });
  expect(() => pageOf({ limit: 2, after: `${first.next}=` }, read)).toThrow(/after/);
});

test("the cache keeps what is used, drops what is not, and never exceeds two generations", () => {
  const cache = new RecentMap<number, string>(10);
  cache.set(0, "kept");
  for (let key = 1; key <= 1_000; key += 1) {
    cache.set(key, "passing");
    expect(cache.get(0)).toBe("kept");
  }
  expect(cache.get(1)).toBeUndefined();
  const held = Array.from({ length: 1_001 }, (_, key) => key).filter((key) => cache.get(key) !== undefined);
  expect(held.length).toBeLessThanOrEqual(20);
  cache.delete(0);
  expect(cache.get(0)).toBeUndefined();
  cache.clear();
  expect(cache.get(1_000)).toBeUndefined();
});
