// Filling a new copy: what an end in the middle leaves, and that the finished copy has all it had.

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createTempDir, type TempDir } from "@moor/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { applyMigrations } from "../src/directory/migrations.ts";
import { copyTables, discardUnfinished, fillCopy, isEmptyCopy } from "../src/directory/replica-fill.ts";
import type { SqlValue } from "../src/directory/statements.ts";

let temp: TempDir;
let path: string;
let db: DatabaseSync;

beforeEach(async () => {
  temp = await createTempDir("replica-fill");
  path = join(temp.path, "replica.sqlite");
  open();
});
afterEach(async () => {
  if (db.isOpen) db.close();
  await temp.remove();
});

/** As the node does it. */
function open(): void {
  if (existsSync(path)) discardUnfinished(path);
  db = new DatabaseSync(path);
  db.exec("pragma journal_mode = wal");
  applyMigrations(db, 0);
}

const mark = () => existsSync(`${path}-unfinished`);
const journal = () => db.prepare("pragma journal_mode").get()?.["journal_mode"];
const schema = () => db.prepare("select type, name, sql from sqlite_schema order by name").all();
const placements = () => db.prepare("select count(*) as count from placements").get()?.["count"];

/** An authority of nothing but placements, asked for in pages. */
function authority(count: number) {
  const ids = Array.from({ length: count }, (_, at) => `tenant_${String(at).padStart(6, "0")}`);
  return {
    values: (sql: string, [after, limit]: readonly SqlValue[]): Promise<SqlValue[][]> => {
      if (!sql.includes("from placements")) return Promise.resolve([]);
      const start = after === "" ? 0 : ids.indexOf(after as string) + 1;
      const page = ids.slice(start, start + (limit as number));
      return Promise.resolve(page.map((id) => [id, "s1", 1, "k", 1, "created"]));
    },
  };
}

test("a filled copy has every row once, at and around the ends of pages, and its schema as before", async () => {
  const before = schema();
  for (const count of [0, 1_999, 2_000, 2_001, 4_000]) {
    await fillCopy(db, () => copyTables(db, authority(count)));
    expect([placements(), mark(), journal()]).toEqual([count, false, "wal"]);
    expect(schema()).toEqual(before);
    db.exec("delete from placements");
  }
});

test("the mark is there while rows are written; a fill that fails leaves the copy empty", async () => {
  const before = schema();
  const failing = fillCopy(db, async () => {
    expect([mark(), journal()]).toEqual([true, "memory"]);
    await copyTables(db, authority(10));
    throw new Error("lost in the middle");
  });
  await expect(failing).rejects.toThrow("lost in the middle");
  expect([isEmptyCopy(db), mark()]).toEqual([true, true]);
  expect(schema()).toEqual(before);
  await fillCopy(db, () => copyTables(db, authority(10)));
  expect([placements(), mark()]).toEqual([10, false]);
});

test("a file whose fill did not end is begun anew, whatever is in it; one without the mark is left alone", async () => {
  await fillCopy(db, () => copyTables(db, authority(10)));
  db.close();
  open();
  expect(placements()).toBe(10);
  db.close();
  writeFileSync(path, "half of a page");
  writeFileSync(`${path}-unfinished`, "");
  open();
  expect([isEmptyCopy(db), mark()]).toEqual([true, false]);
});
