// The numbers of one transaction of the directory.

import { verifies } from "@moor/testkit";
import { expect, test } from "vitest";
import { Ledger, type ResidencyHead } from "../src/directory/ledger.ts";
import { WRITE } from "../src/directory/write-statements.ts";

const HOUR_MS = 3_600_000;

function headAt(seq: number, lastRevision = 0): ResidencyHead {
  return { name: "global", incarnation: "i", isCorrecting: false, defaultShard: "", seq, lastRevision };
}

verifies("R22", "a revision is the database's time in microseconds, or one more than the last", () => {
  const ledger = new Ledger(headAt(7, 5_000_001), 5_000, "t");
  expect([ledger.takeRevision(), ledger.takeRevision()]).toEqual([5_000_002, 5_000_003]);
  const later = new Ledger(headAt(7, 5_000_001), 6_000.9, "t");
  expect([later.takeRevision(), later.takeRevision()]).toEqual([6_000_000, 6_000_001]);
  later.raiseRevision(9_000_000);
  later.raiseRevision(1);
  expect(later.takeRevision()).toBe(9_000_001);
});

test("what a refused mutation took is given again", () => {
  const ledger = new Ledger(headAt(10, 100), 0, "t");
  ledger.change("tunnel", "a");
  const mark = ledger.mark();
  ledger.change("tunnel", "b");
  const revision = ledger.takeRevision();
  ledger.rollBack(mark);
  expect(ledger.takeRevision()).toBe(revision);
  expect(ledger.change("tunnel", "c")).toBe(12);
  expect(ledger.firstSeq).toBe(11);
  expect(ledger.closingQueries()[0]?.params).toEqual(
    [
      [11, "tunnel", "a", "t", 0, ""],
      [12, "tunnel", "c", "t", 0, ""],
    ].flat(),
  );
});

test("a kind that programs of schema 2 do not know is the residency to them", () => {
  const ledger = new Ledger(headAt(0), 0, "t");
  ledger.change("home", "h1");
  expect(ledger.closingQueries()[0]?.params).toEqual([1, "residency", "h1", "t", 0, "home"]);
});

test("a transaction that gives out nothing writes nothing", () => {
  expect(new Ledger(headAt(10, 100), 5, "t").closingQueries()).toEqual([]);
  expect(new Ledger(undefined, 5, "t").closingQueries()).toEqual([]);
});

test("the feed is trimmed now and then, to an hour or a hundred thousand changes, whichever is more", () => {
  const trims = (seq: number) => {
    const ledger = new Ledger(headAt(seq), 10 * HOUR_MS, "t");
    ledger.change("tunnel", "a");
    return ledger.closingQueries().filter(({ sql }) => sql === WRITE.trimChanges);
  };
  expect(trims(204_997)).toEqual([]);
  expect(trims(204_999).map(({ params }) => params)).toEqual([[105_000, 9 * HOUR_MS]]);
  expect(trims(205_000)).toEqual([]);
});

test("changes beyond one statement's size go in several, numbered on", () => {
  const ledger = new Ledger(headAt(0), 0, "t");
  for (let count = 0; count < 1_200; count += 1) ledger.change("placement", `tunnel_${count}`);
  const inserts = ledger.closingQueries().slice(0, 3);
  expect(inserts.map(({ params }) => params.length / 6)).toEqual([500, 500, 200]);
  expect(inserts[1]?.params[0]).toBe(501);
});
