// Commands of a home at its shard: delivered at most once to a link, and honest endings.

import { describe, expect, test } from "vitest";
import type { AppInstance, CommandId } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import type { SubmissionId } from "../src/peer/link-ports.ts";
import {
  COMMAND_LATE_ANSWER_MS,
  COMMAND_SETTLE_WAIT_MS,
  HOME_COMMANDS_OPEN_MAX,
  LINK_AWAY_MS,
} from "../src/server-limits.ts";
import { HOME, HomeStage, MOVED, OWNED } from "./support/home-stage.ts";

const MINUTE_MS = 60_000;
const LARGE = JSON.stringify("x".repeat(65_534));
const NO_BOX = { kind: "not-delivered", why: "no-box" };
const BUSY = { kind: "not-delivered", why: "busy" };
const ONE_SHOT = { app: undefined };

describe("a command", () => {
  verifies(
    "L31",
    "goes to the box with the time left, is acked once written, and ends with the box's result",
    () => {
      const stage = new HomeStage();
      const linkId = stage.box(stage.far);
      stage.far.take();
      const submission = stage.submit("c1", { data: '{"n": 1.0}' });
      expect(stage.far.take()).toEqual([
        [
          "deliverCommand",
          { linkId, home: HOME, id: "c1", app: "phone", remainingMs: 10_000, data: '{"n": 1.0}' },
        ],
      ]);
      expect(stage.near.take()).toEqual([["commandWritten", submission]]);
      stage.result(linkId, "c1", '{"r": 1.0}');
      expect(stage.near.take()).toEqual([
        ["commandEnded", submission, { kind: "result", data: '{"r": 1.0}' }],
      ]);
      expect(stage.status()?.commandsOpen).toBe(0);
    },
  );

  verifies(["L20", "L31"], "without a box is not delivered, at once, and held back by no limit", () => {
    const stage = HomeStage.settled();
    const submission = stage.submit("c1");
    expect(stage.near.take()).toEqual([["commandEnded", submission, NO_BOX]]);
    stage.submit("c1", { remainingMs: 0 });
    expect(stage.near.takeEndings()).toEqual([[expect.any(String), "expired"]]);
  });

  verifies(
    "L31",
    "waits while nobody knows of the box, goes to it when it links, or ends with the wait or its TTL",
    () => {
      const stage = new HomeStage();
      stage.submit("short", { remainingMs: 5_000 });
      stage.submit("long", { remainingMs: 60_000 });
      stage.runtime.advance(4_999);
      expect(stage.near.take()).toEqual([]);
      stage.runtime.advance(1);
      expect(stage.near.takeEndings()).toEqual([["sub1", "expired"]]);
      stage.submit("third", { remainingMs: 60_000 });
      stage.runtime.advance(5_000);
      const linkId = stage.box(stage.far);
      const given = stage.far.takeOnly("deliverCommand").map(([command]) => command);
      expect(given).toMatchObject([
        { linkId, id: "long", remainingMs: 50_000 },
        { linkId, id: "third", remainingMs: 55_000 },
      ]);
      const other = new HomeStage();
      other.submit("c1", { remainingMs: 60_000 });
      other.runtime.advance(15_000);
      expect(other.near.take()).toEqual([["commandEnded", "sub1", NO_BOX]]);
    },
  );

  verifies(
    ["L20", "L31"],
    "that was written is unknown 30 s after its TTL, never expired; a result until then counts",
    () => {
      const stage = new HomeStage();
      const linkId = stage.box(stage.far);
      const answered = stage.submit("c1");
      const silent = stage.submit("c2");
      stage.runtime.advance(10_000 + COMMAND_LATE_ANSWER_MS - 1);
      stage.result(linkId, "c1");
      stage.near.writing = "written";
      expect(stage.near.takeEndings()).toEqual([[answered, "result"]]);
      stage.runtime.advance(1);
      expect(stage.near.takeEndings()).toEqual([[silent, "unknown"]]);
    },
  );

  verifies(
    "L20",
    "whose box link ends after it was written is unknown; the result of the next link is kept",
    () => {
      const stage = new HomeStage();
      const first = stage.box(stage.far);
      const submission = stage.submit("c1");
      stage.near.take();
      stage.homes.withdrawLink(HOME, first);
      expect(stage.near.takeEndings()).toEqual([[submission, "unknown"]]);
      const second = stage.box(stage.far);
      stage.result(second, "c1", '"late"');
      expect(stage.near.takeEndings()).toEqual([]);
      stage.far.take();
      const repeat = stage.submit("c1");
      expect(stage.near.take()).toEqual([["commandEnded", repeat, { kind: "result", data: '"late"' }]]);
      expect(stage.far.take()).toEqual([]);
    },
  );

  verifies(
    "L20",
    "of a replaced box link is unknown at once, and what the older link says changes nothing",
    () => {
      const stage = new HomeStage();
      const older = stage.box(stage.far);
      const submission = stage.submit("c1");
      stage.box(stage.near);
      expect(stage.near.takeEndings()).toEqual([[submission, "unknown"]]);
      stage.result(older, "c1", '"old"');
      stage.submit("c1");
      expect(stage.near.takeEndings()).toEqual([]);
    },
  );

  verifies("L20", "that its entry could not write goes to a newer link, or ends as not delivered", () => {
    const stage = new HomeStage();
    stage.far.writing = "later";
    const older = stage.box(stage.far);
    const submission = stage.submit("c1");
    const newer = stage.box(stage.near);
    stage.near.take();
    stage.homes.commandSettled(HOME, older, "c1" as CommandId, "not-written");
    expect(stage.near.take()).toMatchObject([
      ["deliverCommand", { linkId: newer, id: "c1" }],
      ["commandWritten", submission],
    ]);
    stage.near.writing = "not-written";
    const refused = stage.submit("c2");
    expect(stage.near.takeOnly("commandEnded")).toEqual([[refused, NO_BOX]]);
  });

  verifies("L20", "whose link ended before it was settled waits 5 s for the word, then is unknown", () => {
    for (const [word, ending] of [
      ["written", "unknown"],
      ["not-written", "not-delivered"],
      [undefined, "unknown"],
    ] as const) {
      const stage = HomeStage.settled();
      stage.far.writing = "later";
      const linkId = stage.box(stage.far);
      const submission = stage.submit("c1", { remainingMs: 600_000 });
      stage.homes.withdrawLink(HOME, linkId);
      stage.runtime.advance(COMMAND_SETTLE_WAIT_MS - 1);
      expect([word, stage.near.takeEndings()]).toEqual([word, []]);
      if (word === undefined) stage.runtime.advance(1);
      else stage.homes.commandSettled(HOME, linkId, "c1" as CommandId, word);
      expect([word, stage.near.takeEndings()]).toEqual([word, [[submission, ending]]]);
    }
  });

  verifies("L20", "at an entry that is lost with its box is unknown when the link is given up", () => {
    const stage = HomeStage.settled();
    stage.box(stage.far);
    const submission = stage.submit("c1", { remainingMs: 600_000 });
    stage.homes.entryAway(stage.far.entry);
    const queued = stage.submit("c2", { remainingMs: 600_000 });
    stage.runtime.advance(LINK_AWAY_MS - 1);
    expect(stage.near.takeEndings()).toEqual([]);
    stage.runtime.advance(1);
    expect(stage.near.takeEndings()).toEqual([
      [queued, "not-delivered"],
      [submission, "unknown"],
    ]);
  });

  verifies("L20", "is not delivered at once when its box's entry is gone for good", () => {
    const stage = HomeStage.settled();
    stage.box(stage.far);
    stage.homes.entryAway(stage.far.entry);
    const queued = stage.submit("c1");
    stage.homes.entryGone(stage.far.entry);
    expect(stage.near.takeEndings()).toEqual([[queued, "not-delivered"]]);
  });

  test("of an entry that is gone is delivered to nobody any more", () => {
    const stage = new HomeStage();
    stage.submit("c1", {}, stage.far);
    stage.homes.entryGone(stage.far.entry);
    stage.box(stage.near);
    expect(stage.near.takeOnly("deliverCommand")).toEqual([]);
  });

  verifies("L20", "of a repeat is not touched by what a former link says late", () => {
    const stage = HomeStage.settled();
    stage.far.writing = "later";
    const older = stage.box(stage.far);
    stage.submit("c1", { remainingMs: 60_000 });
    stage.homes.withdrawLink(HOME, older);
    stage.runtime.advance(COMMAND_SETTLE_WAIT_MS);
    stage.box(stage.far);
    const repeat = stage.submit("c1", { remainingMs: 60_000 });
    stage.near.take();
    stage.homes.commandSettled(HOME, older, "c1" as CommandId, "not-written");
    stage.homes.commandSettled(HOME, older, "c1" as CommandId, "written");
    expect([stage.near.take(), stage.status()?.commandsOpen]).toEqual([[], 1]);
    expect(repeat).toBe("sub4");
  });

  test("in doubt is waited for no longer because another link ends too", () => {
    const stage = HomeStage.settled();
    stage.far.writing = "later";
    const older = stage.box(stage.far);
    const submission = stage.submit("c1", { remainingMs: 60_000 });
    stage.homes.withdrawLink(HOME, older);
    stage.runtime.advance(COMMAND_SETTLE_WAIT_MS - 1);
    stage.homes.withdrawLink(HOME, stage.box(stage.near));
    stage.runtime.advance(1);
    expect(stage.near.takeEndings()).toEqual([[submission, "unknown"]]);
  });

  test("that nobody waits for any more goes to no further link, and is forgotten with its own", () => {
    const stage = HomeStage.settled();
    stage.far.writing = "later";
    const older = stage.box(stage.far);
    for (const id of ["c1", "c2"]) stage.homes.withdrawCommand(HOME, stage.submit(id));
    stage.box(stage.near);
    stage.homes.commandSettled(HOME, older, "c1" as CommandId, "not-written");
    expect(stage.near.takeOnly("deliverCommand")).toEqual([]);
    expect(stage.budget.heldBytes).toBe(0);
  });

  verifies("L20", "waits for the box's entry to come back into reach, and goes there once", () => {
    const stage = HomeStage.settled();
    const linkId = stage.box(stage.far);
    const generation = stage.generation();
    const written = stage.submit("c1");
    stage.homes.entryAway(stage.far.entry);
    stage.submit("c2");
    stage.far.take();
    stage.box(stage.far, { linkId, generation });
    expect(stage.far.takeOnly("deliverCommand").map(([command]) => command)).toMatchObject([{ id: "c2" }]);
    stage.result(linkId, "c1");
    expect(stage.near.takeEndings()).toEqual([[written, "result"]]);
  });

  test("whose app left before it was delivered is not delivered; a written one runs, and its result is kept", () => {
    const stage = new HomeStage();
    stage.homes.withdrawCommand(HOME, stage.submit("c1"));
    const linkId = stage.box(stage.far);
    stage.homes.withdrawCommand(HOME, stage.submit("c2"));
    expect(stage.far.takeOnly("deliverCommand").map(([command]) => command)).toMatchObject([{ id: "c2" }]);
    expect(stage.status()?.commandsOpen).toBe(0);
    stage.result(linkId, "c2", '"kept"');
    const repeat = stage.submit("c2");
    expect(stage.near.takeOnly("commandEnded")).toEqual([[repeat, { kind: "result", data: '"kept"' }]]);
  });

  test("endings are counted", async () => {
    const stage = new HomeStage();
    const linkId = stage.box();
    stage.submit("c1");
    stage.result(linkId, "c1");
    expect(await stage.metric('moor_commands_total{ending="result"}')).toBe("1");
    expect(await stage.metric('moor_commands_total{ending="given_back"}')).toBe("0");
  });
});

describe("what the box says of a command", () => {
  verifies(["L20", "L31"], "an app link hears only result or unknown after its ack", () => {
    for (const outcome of ["unknown", "not_delivered", "expired"] as const) {
      const stage = new HomeStage();
      const linkId = stage.box();
      const submission = stage.submit("c1");
      stage.homes.boxAnswered(HOME, linkId, "c1" as CommandId, { kind: "outcome", outcome });
      expect(stage.near.takeEndings()).toEqual([[submission, "unknown"]]);
    }
  });

  verifies("L33", "a one-shot, which sees no ack, hears that the box did not act", () => {
    const stage = new HomeStage();
    const linkId = stage.box();
    for (const [outcome, ending] of [
      ["unknown", { kind: "unknown" }],
      ["not_delivered", { kind: "not-delivered", why: "box" }],
      ["expired", { kind: "expired" }],
    ] as const) {
      const submission = stage.submit(outcome, ONE_SHOT);
      stage.homes.boxAnswered(HOME, linkId, outcome as CommandId, { kind: "outcome", outcome });
      expect(stage.near.takeOnly("commandEnded")).toEqual([[submission, ending]]);
    }
  });

  verifies("L33", "a command the box did not act on may be given to it again", () => {
    const stage = new HomeStage();
    const linkId = stage.box();
    stage.submit("c1", ONE_SHOT);
    stage.homes.boxAnswered(HOME, linkId, "c1" as CommandId, { kind: "outcome", outcome: "not_delivered" });
    stage.near.take();
    stage.submit("c1", ONE_SHOT);
    expect(stage.near.takeOnly("deliverCommand")).toHaveLength(1);
  });

  test("a result that comes while its repeat still waits for the box ends it undelivered", () => {
    const stage = HomeStage.settled();
    stage.homes.withdrawLink(HOME, stage.box(), 30_000);
    const submission = stage.submit("c1");
    stage.near.take();
    stage.far.writing = "later";
    const linkId = stage.box(stage.far);
    stage.result(linkId, "c1");
    stage.homes.commandSettled(HOME, linkId, "c1" as CommandId, "written");
    expect(stage.near.take()).toMatchObject([["commandEnded", submission, { kind: "result" }]]);
  });
});

describe("a repeat of a command's id", () => {
  verifies(
    ["L31", "L33"],
    "joins the one that runs, is acked at once if that was written, and gets the same result",
    () => {
      const stage = new HomeStage();
      const linkId = stage.box(stage.far);
      const first = stage.submit("c1");
      stage.far.take();
      stage.near.take();
      const second = stage.submit("c1", { app: "tablet" as AppInstance });
      expect(stage.near.take()).toEqual([["commandWritten", second]]);
      expect(stage.far.take()).toEqual([]);
      stage.result(linkId, "c1");
      expect(stage.near.takeEndings()).toEqual([
        [first, "result"],
        [second, "result"],
      ]);
    },
  );

  verifies("L33", "has its own time", () => {
    const stage = new HomeStage();
    stage.submit("c1", { remainingMs: 1_000 });
    stage.submit("c1", { remainingMs: 9_000 });
    stage.runtime.advance(1_000);
    expect(stage.near.takeEndings()).toEqual([["sub1", "expired"]]);
    stage.box(stage.far);
    expect(stage.far.takeOnly("deliverCommand").map(([command]) => command)).toMatchObject([
      { id: "c1", remainingMs: 8_000 },
    ]);
  });

  verifies(
    "L31",
    "joins a written command that nobody waits for any more, instead of being written again",
    () => {
      const stage = new HomeStage();
      const linkId = stage.box(stage.far);
      stage.submit("c1", { remainingMs: 1_000 });
      stage.runtime.advance(1_000 + COMMAND_LATE_ANSWER_MS);
      stage.far.take();
      stage.near.take();
      const repeat = stage.submit("c1");
      expect([stage.far.take(), stage.near.take()]).toEqual([[], [["commandWritten", repeat]]]);
      stage.result(linkId, "c1");
      expect(stage.near.takeEndings()).toEqual([[repeat, "result"]]);
    },
  );

  verifies("L33", "gets the kept result for 10 min, then asks the box again", () => {
    const stage = new HomeStage();
    const linkId = stage.box(stage.far);
    stage.submit("c1", ONE_SHOT);
    stage.result(linkId, "c1");
    stage.runtime.advance(10 * MINUTE_MS - 1);
    stage.near.take();
    stage.far.take();
    stage.submit("c1", ONE_SHOT);
    expect(stage.near.takeEndings()).toEqual([[expect.any(String), "result"]]);
    stage.runtime.advance(1);
    stage.submit("c1", ONE_SHOT);
    expect(stage.far.takeOnly("deliverCommand")).toHaveLength(1);
  });

  verifies("L33", "of the oldest of more than 1,000 results, or of 4 MiB, asks the box again", () => {
    for (const { count, data, kept } of [
      { count: 1_001, data: "1", kept: 1_000 },
      { count: 70, data: LARGE, kept: 64 },
    ]) {
      const stage = new HomeStage();
      const linkId = stage.box(stage.far);
      const ids = Array.from({ length: count }, (_, at) => `c${at}`);
      for (const id of ids) stage.result(linkId, id, data);
      expect(stage.budget.heldBytes).toBe(kept * Buffer.byteLength(data));
      for (const id of [ids[count - kept - 1], ids[count - kept]]) stage.submit(id ?? "");
      expect(stage.far.takeOnly("deliverCommand").map(([command]) => command)).toMatchObject([
        { id: ids[count - kept - 1] },
      ]);
    }
  });

  test("holds bytes once, whether it joins or brings a result again, and none after a move", () => {
    const stage = new HomeStage();
    for (let repeat = 0; repeat < 3; repeat += 1) stage.submit("c1", { data: LARGE });
    expect(stage.budget.heldBytes).toBe(LARGE.length);
    const linkId = stage.box();
    for (let repeat = 0; repeat < 3; repeat += 1) stage.result(linkId, "c1", '"done"');
    expect(stage.budget.heldBytes).toBe(6);
    stage.far.writing = "later";
    stage.submit("c2", { data: LARGE });
    stage.move();
    expect(stage.budget.heldBytes).toBe(0);
  });

  test("gives the node its bytes back when they are over", () => {
    const stage = new HomeStage();
    const linkId = stage.box();
    stage.submit("c1");
    stage.result(linkId, "c1");
    stage.runtime.advance(12 * MINUTE_MS);
    expect(stage.budget.heldBytes).toBe(0);
  });
});

describe("a submission that is sent again after its shard was out of reach", () => {
  verifies(
    "L20",
    "goes on if it is here, gets the kept result, and else is unknown: nothing runs anew",
    () => {
      const stage = new HomeStage();
      const linkId = stage.box(stage.far);
      const open = stage.submit("open");
      stage.submit("over");
      stage.result(linkId, "over");
      stage.far.take();
      stage.near.take();
      stage.submit("open", { submission: open, isAgain: true });
      expect(stage.near.take()).toEqual([["commandWritten", open]]);
      stage.submit("over", { isAgain: true });
      stage.submit("lost", { isAgain: true });
      expect(stage.near.takeEndings().map(([, kind]) => kind)).toEqual(["result", "unknown"]);
      stage.submit("open", { isAgain: true });
      stage.result(linkId, "open");
      expect(stage.near.takeEndings().map(([, kind]) => kind)).toEqual(["result", "result"]);
      expect(stage.far.takeOnly("deliverCommand")).toEqual([]);
    },
  );

  test("is unknown also at a shard that does not own the home, or is full", () => {
    const stage = new HomeStage();
    for (let at = 0; at < HOME_COMMANDS_OPEN_MAX; at += 1) stage.submit(`c${at}`);
    stage.submit("c0", { submission: "sub1" as SubmissionId, isAgain: true });
    expect(stage.near.take()).toEqual([]);
    stage.submit("c0", { isAgain: true });
    expect(stage.near.takeEndings().map(([, kind]) => kind)).toEqual(["unknown"]);
    stage.move();
    stage.near.take();
    stage.submit("c1", { isAgain: true });
    expect(stage.near.takeEndings().map(([, kind]) => kind)).toEqual(["unknown"]);
  });
});

describe("limits of a home", () => {
  verifies("L25", "256 open commands, repeats among them: the next is not delivered, as busy", () => {
    const stage = new HomeStage();
    const linkId = stage.box();
    for (let at = 0; at < HOME_COMMANDS_OPEN_MAX - 1; at += 1) stage.submit(`c${at}`);
    stage.submit("c0");
    stage.near.take();
    const refused = [stage.submit("one-more"), stage.submit("c0")];
    expect(stage.near.takeOnly("commandEnded")).toEqual(refused.map((submission) => [submission, BUSY]));
    stage.result(linkId, "c1");
    stage.near.take();
    stage.submit("one-more");
    expect(stage.near.takeOnly("commandEnded")).toEqual([]);
  });

  verifies("L25", "4 MiB that its box does not have yet, and what the node has for all homes", () => {
    const waiting = new HomeStage();
    for (let at = 0; at < 65; at += 1) waiting.submit(`c${at}`, { data: LARGE });
    expect(waiting.near.takeOnly("commandEnded")).toEqual([["sub65", BUSY]]);
    waiting.box();
    expect(waiting.budget.heldBytes).toBe(0);
    const small = new HomeStage({ budgetBytes: 100_000 });
    small.submit("c1", { data: LARGE });
    small.submit("c2", { data: LARGE });
    expect(small.near.takeOnly("commandEnded")).toEqual([["sub2", BUSY]]);
    small.homes.withdrawCommand(HOME, "sub1" as SubmissionId);
    expect(small.budget.heldBytes).toBe(0);
  });

  verifies("L25", "what is kept of commands that ended leaves room for new ones, and for snapshots", () => {
    const stage = new HomeStage({ budgetBytes: 4 * LARGE.length });
    const linkId = stage.box(stage.far);
    for (let at = 0; at < 4; at += 1) stage.result(linkId, `c${at}`, LARGE);
    stage.homes.boxNow(HOME, linkId, '{"w":1}');
    expect(stage.now()).toMatchObject({ kind: "snapshot" });
    stage.submit("new", { data: LARGE });
    expect(stage.far.takeOnly("deliverCommand")).toMatchObject([[{ id: "new" }]]);
    stage.submit("c3");
    expect(stage.near.takeOnly("commandEnded").map(([, ending]) => ending)).toMatchObject([
      { kind: "result" },
    ]);
  });

  test("written commands that nobody waits for are remembered up to a bound, the oldest forgotten first", () => {
    const stage = new HomeStage();
    stage.box(stage.far);
    const count = HOME_COMMANDS_OPEN_MAX + 1_000 + 1;
    for (let at = 0; at < count; at += 1) stage.homes.withdrawCommand(HOME, stage.submit(`c${at}`));
    stage.far.take();
    stage.submit("c1");
    expect(stage.far.takeOnly("deliverCommand")).toEqual([]);
    stage.submit("c0");
    expect(stage.far.takeOnly("deliverCommand")).toHaveLength(1);
  });
});

describe("commands of a home that moves", () => {
  verifies(["L20", "L21"], "what was not written goes back to its entry, what was is unknown", () => {
    const stage = new HomeStage();
    const queued = stage.submit("c1");
    stage.move();
    expect(stage.near.takeOnly("commandEnded")).toEqual([[queued, { kind: "not-owner", placement: MOVED }]]);
    stage.move({ ...OWNED, revision: 3_000 });
    stage.box(stage.far);
    const written = stage.submit("c2");
    stage.move({ ...MOVED, revision: 4_000 });
    expect(stage.near.takeEndings()).toEqual([[written, "unknown"]]);
    const late = stage.submit("c3");
    expect(stage.near.takeEndings()).toEqual([[late, "not-owner"]]);
  });

  verifies("L20", "what is in doubt is given back only once it is known not to be written", () => {
    for (const [word, ending] of [
      ["written", "unknown"],
      ["not-written", "not-owner"],
      ["result", "result"],
      [undefined, "unknown"],
    ] as const) {
      const stage = new HomeStage();
      stage.far.writing = "later";
      const linkId = stage.box(stage.far);
      const submission = stage.submit("c1", { remainingMs: 600_000 });
      stage.move();
      expect(stage.near.takeEndings()).toEqual([]);
      if (word === "result") stage.result(linkId, "c1");
      else if (word !== undefined) stage.homes.commandSettled(HOME, linkId, "c1" as CommandId, word);
      else stage.runtime.advance(COMMAND_SETTLE_WAIT_MS);
      expect([word, stage.near.takeEndings()]).toEqual([word, [[submission, ending]]]);
      expect([word, stage.budget.heldBytes]).toEqual([word, 0]);
      stage.runtime.advance(20 * MINUTE_MS);
      expect([stage.homes.size, stage.budget.heldBytes]).toEqual([0, 0]);
    }
  });

  test("a home that comes back at once finds what is in doubt as it was", () => {
    const stage = new HomeStage();
    stage.far.writing = "later";
    const linkId = stage.box(stage.far);
    const submission = stage.submit("c1", { remainingMs: 60_000 });
    stage.move();
    stage.move({ ...OWNED, revision: 3_000 });
    stage.homes.commandSettled(HOME, linkId, "c1" as CommandId, "not-written");
    stage.box(stage.near);
    expect(stage.near.takeOnly("commandWritten")).toEqual([[submission]]);
  });
});

describe("the snapshot", () => {
  verifies("L34", "is kept over box links with its age and a tag that changes with it", () => {
    const stage = HomeStage.settled();
    expect(stage.now()).toEqual({ kind: "none" });
    const linkId = stage.box();
    stage.homes.boxNow(HOME, linkId, '{"w": 1.0}');
    stage.homes.withdrawLink(HOME, linkId);
    stage.runtime.advance(7_000);
    const first = stage.now();
    expect(first).toMatchObject({ kind: "snapshot", data: '{"w": 1.0}', ageMs: 7_000 });
    stage.homes.boxNow(HOME, linkId, '{"w":0}');
    expect(stage.now()).toEqual(first);
    stage.homes.boxNow(HOME, stage.box(), '{"w": 2.0}');
    const second = stage.now();
    expect(second).toMatchObject({ data: '{"w": 2.0}', ageMs: 0 });
    const etags = [first, second].map((outcome) => outcome?.kind === "snapshot" && outcome.etag);
    expect(new Set(etags).size).toBe(2);
    expect(etags[0]).toMatch(/^[\w-]{16}$/);
  });

  verifies("L34", "that does not fit the node's budget leaves none, rather than an old one", () => {
    const stage = HomeStage.settled({ budgetBytes: 100 });
    const linkId = stage.box();
    stage.homes.boxNow(HOME, linkId, '{"w":1}');
    stage.homes.boxNow(HOME, linkId, JSON.stringify("x".repeat(100)));
    expect([stage.now(), stage.budget.heldBytes]).toEqual([{ kind: "none" }, 0]);
  });
});
