// The judge of a crowd that comes back: what it must never overlook.

import { expect, test } from "vitest";
import { fullestSecond, judgeReturn, perSecond, type LinkEvent } from "@moor/testkit/link-journal";

const dial = (atMs: number, client: number): LinkEvent => ({ kind: "dial", atMs, client });
const online = (atMs: number, client: number): LinkEvent => ({ kind: "online", atMs, client });
const lost = (atMs: number, client: number, code = 4503): LinkEvent => ({ kind: "lost", atMs, client, code });
const failed = (atMs: number, client: number): LinkEvent => ({ kind: "failed", atMs, client, code: 0 });

test("the fullest second is found wherever it begins, and a second is not more than a second", () => {
  expect(fullestSecond([])).toBe(0);
  expect(fullestSecond([0, 900, 1000, 1899, 1900])).toBe(3);
  expect(fullestSecond([0, 1000, 2000])).toBe(1);
  expect(perSecond([500, 999, 1000, 3200, -1], 0)).toEqual([2, 1, 0, 1]);
});

test("a crowd that came back is counted from the first lost link, failed dials beside it", () => {
  const events = [
    dial(0, 0),
    online(10, 0),
    dial(0, 1),
    online(10, 1),
    lost(1000, 0),
    lost(1100, 1, 1006),
    dial(2000, 0),
    failed(2010, 0),
    dial(2500, 0),
    online(2520, 0),
    dial(4000, 1),
    online(4100, 1),
  ];
  expect(judgeReturn(events, { clients: 2, sinceMs: 500, spreadMs: 3000 })).toEqual({
    clients: 2,
    lost: 2,
    back: 2,
    lostBy: { 4503: 1, 1006: 1 },
    dials: 3,
    failedDials: 1,
    peakDialsPerS: 2,
    meanDialsPerS: 1,
    peakHelloOksPerS: 1,
    helloOksPerS: 1.3,
    backP50Ms: 1520,
    backP95Ms: 1520,
    lastBackMs: 3100,
  });
});

test("a client that is online again is not back when it was lost once more, whatever the order of the journals", () => {
  const events = [online(3000, 0), lost(2000, 0), lost(4000, 0), online(5000, 1)];
  const verdict = judgeReturn(events, { clients: 2, sinceMs: 0, spreadMs: 1000 });
  expect(verdict).toMatchObject({ lost: 1, back: 0 });
});
