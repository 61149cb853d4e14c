// The judge of commands: what it must never overlook.

import { expect, test } from "vitest";
import {
  commandFaultsOf,
  judgeCommands,
  NO_COMMAND_FAULTS,
  type AskEnding,
  type CommandRecord,
} from "@moor/testkit/link-command-verdict";

const UNKNOWN: AskEnding = { kind: "unknown" };
const DENIED: AskEnding = { kind: "not_delivered" };
const result = (did: string, turn = 1): AskEnding => ({ kind: "result", did, turn });
/** Asked at 100, 200, and so on. */
const record = (id: string, ...endings: AskEnding[]): CommandRecord => ({
  id,
  home: "h1",
  asks: endings.map((ending, at) => ({ askedAtMs: (at + 1) * 100, ending })),
  tookMs: 5,
});
const act = (id: string, home = "h1", atMs = 150) => ({ id, home, atMs });

test("results that were acted on once, denials that were not, and unknown either way have no fault", () => {
  const records = [
    record("plain", result("plain")),
    record("again", UNKNOWN, result("again")),
    record("denied", DENIED),
    record("expired", { kind: "expired" }),
    record("lost", UNKNOWN, UNKNOWN),
    record("acted-first", UNKNOWN, DENIED),
    record("in-the-end", DENIED, result("in-the-end")),
  ];
  const acts = ["plain", "again", "lost", "acted-first", "other-run"].map((id) => act(id));
  const verdict = judgeCommands(records, [...acts, act("in-the-end", "h1", 250)]);
  expect(commandFaultsOf(verdict)).toEqual(NO_COMMAND_FAULTS);
  expect(verdict).toMatchObject({
    commands: 7,
    results: 3,
    resultsByAskingAgain: 1,
    leftUnknown: 1,
    leftUnknownExamples: ["lost: unknown ×2"],
    endings: { result: 3, unknown: 4, not_delivered: 3, expired: 1 },
  });
});

test("every kind of fault is counted in its own place", () => {
  const records = [
    record("twice", result("twice")),
    record("unacted", result("unacted")),
    record("denied", DENIED, DENIED),
    record("denied-first", DENIED, result("denied-first")),
    record("elsewhere", result("elsewhere")),
    record("foreign", result("twice")),
    record("changed", result("changed", 1), result("changed", 2)),
    record("broken", { kind: "broken", fault: "ECONNREFUSED" }),
  ];
  const acts = [
    ...["twice", "twice", "denied", "denied-first", "foreign", "changed"].map((id) => act(id)),
    act("elsewhere", "h2"),
  ];
  const verdict = judgeCommands(records, acts);
  expect(commandFaultsOf(verdict)).toEqual({
    actedTwice: 1,
    resultsUnacted: 1,
    deniedAndActed: 2,
    actedElsewhere: 1,
    foreignResults: 2,
  });
  expect(verdict.leftUnknownExamples).toEqual(["broken: broken: ECONNREFUSED"]);
});
