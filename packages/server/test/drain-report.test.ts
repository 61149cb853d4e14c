// A drain over two processes: what the first notes, the second counts. And drains of shards that run elsewhere.

import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isProtocolError } from "@moor/protocol";
import { createLogger, createSilentLogger } from "@moor/runtime";
import { createTempDir, settle, VirtualRuntime, verifies } from "@moor/testkit";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import type { ShardId } from "../src/directory/records.ts";
import { askMarks, createDrainDesk, type DrainOrder } from "../src/drains/drain-desk.ts";
import { DRAIN_NOTE_FILE, markClients, markOf, NOTED_MAX, readDrainNote } from "../src/drains/drain-note.ts";
import type { DrainForecast, DrainReport } from "../src/drains/drain-report.ts";
import type { LinkedClient } from "../src/drains/link-drain-port.ts";
import { NodeDrain, type NodeDrainOptions } from "../src/drains/node-drain.ts";
import { findMarks } from "../src/drains/linked-marks.ts";
import { MISSING_MS } from "../src/drains/return-watch.ts";
import type { RawHead } from "../src/peer/peer-messages.ts";
import type { Peer } from "../src/peer/transport/peer-network.ts";
import { FakeLinks } from "./support/fake-links.ts";

const parts = {
  stopAccepting: async () => {},
  finishCalls: async () => {},
  finishOneShots: async () => {},
};

let dataDir: string;
let lines: Record<string, unknown>[];

beforeEach(async () => {
  const temp = await createTempDir("drain");
  onTestFinished(() => temp.remove());
  dataDir = temp.path;
  lines = [];
});

const logger = createLogger({
  destination: { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
});
const logged = (event: string) => lines.filter((line) => line["event"] === event);

/** A process of the node, from `runtime` on. */
function startProcess(
  runtime: VirtualRuntime,
  links: FakeLinks,
  more: { isServedMeanwhile?: boolean; askOthers?: NodeDrainOptions["askOthers"] } = {},
) {
  return new NodeDrain({
    node: "n1",
    shards: ["s1", "s2"],
    dataDir,
    links: () => links,
    isServedMeanwhile: () => more.isServedMeanwhile ?? false,
    isPortQueued: false,
    askOthers: more.askOthers ?? (async () => []),
    busyMs: () => 0,
    runtime,
    logger,
  });
}

async function leave(runtime: VirtualRuntime, drain: NodeDrain): Promise<void> {
  const ends: string[] = [];
  void drain.leave({ graceMs: 1_000 }, parts).then(() => ends.push("left"));
  for (let step = 0; step < 40_000 && ends.length === 0; step += 1) await runtime.advanceAsync(5);
  expect(ends).toEqual(["left"]);
  drain.close();
}

const box = (at: number): LinkedClient => ({ home: `h${at}`, role: "box" });

verifies(
  "L24",
  "who was linked is counted when they come back: here within the spread or late, elsewhere, or never",
  async () => {
    const runtime = new VirtualRuntime(3);
    const first = new FakeLinks(runtime, 10);
    const app = { home: "h0", role: "app", app: "phone" } as const;
    first.add(app);
    await leave(runtime, startProcess(runtime, first));
    const closedAtMs = runtime.wallMs();
    runtime.advance(300);

    const next = startProcess(runtime, new FakeLinks(runtime, 0));
    next.ready();
    expect(next.returningMs).toBe(5_000 + 3_022 - 300 - 25);
    expect(next.report()).toMatchObject({
      state: "watching",
      links: 11,
      closed: 11,
      never: 11,
      down_ms: 300,
    });
    for (let at = 0; at < 6; at += 1) next.linkVerified(box(at));
    next.linkVerified(box(0)); // the same one again
    next.linkVerified({ home: "h77", role: "box" }); // who was not here
    next.linkVerified({ ...app, app: "tablet" });
    next.linkedElsewhere(box(6));
    runtime.advance(4_000);
    next.linkVerified(app);
    expect(logged("drain-report")).toEqual([]);
    await runtime.advanceAsync(MISSING_MS);
    const report = next.report();
    expect(report).toMatchObject<Partial<DrainReport>>({
      state: "done",
      node: "n1",
      shards: ["s1", "s2"],
      spread_ms: 3_022,
      waves: 1,
      links: 11,
      closed: 11,
      destroyed: 0,
      back: 7,
      back_within_spread: 6,
      elsewhere: 1,
      never: 3,
      unknown: 0,
      down_ms: 300,
    });
    expect(report?.started_at).toBe(new Date(closedAtMs - 25).toISOString());
    expect(report?.p50_ms).toBeLessThan(1_000);
    expect(report?.max_ms).toBeGreaterThan(2_000);
    for (const at of [7, 8, 9]) next.linkVerified(box(at)); // too late to be counted
    expect(logged("drain-report")).toMatchObject([{ back: 7, backWithinSpread: 6, elsewhere: 1, never: 3 }]);
    expect(existsSync(join(dataDir, DRAIN_NOTE_FILE))).toBe(false);
  },
);

test("when everybody is back the report is logged at once, and only once", async () => {
  const runtime = new VirtualRuntime(1);
  await leave(runtime, startProcess(runtime, new FakeLinks(runtime, 3)));
  const next = startProcess(runtime, new FakeLinks(runtime, 0));
  next.ready();
  for (let at = 0; at < 3; at += 1) next.linkVerified(box(at));
  expect(logged("drain-report")).toMatchObject([{ back: 3, never: 0 }]);
  runtime.advance(10 * MISSING_MS);
  expect(logged("drain-report").length).toBe(1);
  expect(runtime.pendingCount).toBe(0);
});

verifies(
  "L24",
  "a process whose port was taken over closes its links at once: the next one cannot wait for waves",
  async () => {
    for (const isTakenOver of [false, true]) {
      const runtime = new VirtualRuntime(1);
      const links = new FakeLinks(runtime, 60_000);
      const drain = startProcess(runtime, links, { isServedMeanwhile: true });
      expect(drain.foretell().waves.length).toBe(2);
      void drain.leave({ graceMs: 1_000, isTakenOver }, parts);
      await runtime.advanceAsync(10_000);
      expect([isTakenOver, links.links()]).toEqual([isTakenOver, isTakenOver ? 0 : 30_000]);
      expect(drain.report()).toMatchObject({ waves: isTakenOver ? 1 : 2, spread_ms: 60_000 });
    }
  },
);

test("who comes back elsewhere while waves go on is counted by the process that leaves", async () => {
  const runtime = new VirtualRuntime(1);
  const drain = startProcess(runtime, new FakeLinks(runtime, 60_000), { isServedMeanwhile: true });
  const left = leave(runtime, drain);
  await runtime.advanceAsync(500);
  expect(drain.report()).toMatchObject({
    state: "closing",
    links: 60_000,
    waves: 2,
    unknown: 60_000 - NOTED_MAX,
  });
  let elsewhere = 0;
  for (let at = 0; at < 1_000; at += 1) drain.linkedElsewhere(box(at));
  elsewhere = drain.report()?.elsewhere ?? 0;
  expect(elsewhere).toBeGreaterThan(700);
  await left;
  const note = readDrainNote(dataDir);
  expect([note?.elsewhere, note?.marks.length]).toEqual([elsewhere, NOTED_MAX - elsewhere]);
  const next = startProcess(runtime, new FakeLinks(runtime, 0));
  next.ready();
  expect(next.report()).toMatchObject({ elsewhere, never: NOTED_MAX - elsewhere, unknown: 10_000 });
}, 60_000);

test("beyond the bound clients are noted by lot, those who came last as likely as the first", () => {
  const runtime = new VirtualRuntime(5);
  const total = 2 * NOTED_MAX;
  const clients = Array.from({ length: total }, (_, at) => box(at));
  const marks = new Set(markClients(clients, total, "salt", runtime));
  expect(marks.size).toBeLessThanOrEqual(NOTED_MAX);
  for (const part of [clients.slice(0, 10_000), clients.slice(-10_000)]) {
    const noted = part.filter((client) => marks.has(markOf("salt", client))).length;
    expect(noted).toBeGreaterThan(4_500);
    expect(noted).toBeLessThan(5_500);
  }
});

test("the note is the owner's alone, names nobody, and is bounded however many were linked", async () => {
  const runtime = new VirtualRuntime(1);
  await leave(runtime, startProcess(runtime, new FakeLinks(runtime, 60_000)));
  const path = join(dataDir, DRAIN_NOTE_FILE);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const text = readFileSync(path, "utf8");
  expect(text.length).toBeLessThan(1_000_000);
  expect(/"h[0-9]{1,6}"/.test(text)).toBe(false);
});

test.each([["nothing"], ["{}"], ['{"v":2}'], ["not JSON"]])(
  "a note that cannot be read (%s) is none",
  async (text) => {
    if (text !== "nothing") writeFileSync(join(dataDir, DRAIN_NOTE_FILE), text);
    const runtime = new VirtualRuntime(1);
    const drain = startProcess(runtime, new FakeLinks(runtime, 0));
    drain.ready();
    expect(drain.report()).toBeUndefined();
  },
);

test("a note with numbers that no drain has is none: it neither ends the process nor holds presence for ever", async () => {
  const runtime = new VirtualRuntime(1);
  await leave(runtime, startProcess(runtime, new FakeLinks(runtime, 3)));
  const path = join(dataDir, DRAIN_NOTE_FILE);
  const note = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
  const wrong = [
    { startedAtMs: 1e300 },
    { startedAtMs: -1 },
    { closedAtMs: 1e16 },
    { endMs: 1e15 },
    { spreadMs: 1e12 },
  ];
  for (const change of wrong) {
    writeFileSync(path, JSON.stringify({ ...note, ...change }));
    const drain = startProcess(runtime, new FakeLinks(runtime, 0));
    drain.ready();
    expect([drain.report(), drain.returningMs]).toEqual([undefined, 0]);
  }
});

test("clients whose homes live elsewhere are asked for at the other nodes, by marks alone", async () => {
  const runtime = new VirtualRuntime(1);
  await leave(runtime, startProcess(runtime, new FakeLinks(runtime, 10)));
  const other = new FakeLinks(runtime, 6);
  const asked: number[] = [];
  const next = startProcess(runtime, new FakeLinks(runtime, 0), {
    askOthers: async (salt, marks) => {
      asked.push(marks.length);
      return findMarks(other.clients(), salt, marks, runtime);
    },
  });
  next.ready();
  for (const at of [7, 8]) next.linkVerified(box(at));
  await runtime.advanceAsync(10_000);
  expect(asked).toEqual([8]);
  expect(next.report()).toMatchObject({ state: "watching", back: 2, elsewhere: 6, never: 2 });
  other.add(box(6));
  other.add(box(9));
  await runtime.advanceAsync(MISSING_MS);
  expect(asked).toEqual([8, 2]);
  expect(next.report()).toMatchObject({ state: "done", back: 2, elsewhere: 8, never: 0 });
});

test("a drain that begins before the last one's report is due ends that report", async () => {
  const runtime = new VirtualRuntime(1);
  await leave(runtime, startProcess(runtime, new FakeLinks(runtime, 5)));
  const next = startProcess(runtime, new FakeLinks(runtime, 2));
  next.ready();
  next.linkVerified(box(0));
  await leave(runtime, next);
  expect(logged("drain-report")).toMatchObject([{ links: 5, back: 1, never: 0, unknown: 4 }]);
  expect(readDrainNote(dataDir)?.links).toBe(2);
});

verifies(
  "L24",
  "the next drain counts on the gap of the last one, from its close until the node served",
  async () => {
    const runtime = new VirtualRuntime(1);
    const first = startProcess(runtime, new FakeLinks(runtime, 5_000));
    expect(first.foretell()).toMatchObject({ gap_ms: 3_000, spread_ms: 13_000 });
    const leftAtMs = runtime.wallMs();
    await leave(runtime, first);
    const closingMs = runtime.wallMs() - leftAtMs;
    expect(closingMs).toBeGreaterThan(0);
    runtime.advance(1_200);
    const next = startProcess(runtime, new FakeLinks(runtime, 5_000));
    next.ready();
    const { gap_ms: gapMs, spread_ms: spreadMs } = next.foretell();
    expect(gapMs).toBe(closingMs + 1_200);
    expect([spreadMs, next.spreadMs]).toEqual([10_000 + gapMs, 10_000 + gapMs]);
    next.close();
  },
);

test("a node that was stopped for an hour had no gap that the next drain could count on", async () => {
  const runtime = new VirtualRuntime(1);
  await leave(runtime, startProcess(runtime, new FakeLinks(runtime, 10)));
  runtime.advance(3_600_000);
  const next = startProcess(runtime, new FakeLinks(runtime, 0));
  next.ready();
  expect(next.foretell().gap_ms).toBe(3_000);
});

test("a folder that cannot be written costs the report, not the drain", async () => {
  const runtime = new VirtualRuntime(1);
  const links = new FakeLinks(runtime, 5);
  dataDir = join(dataDir, "gone");
  await leave(runtime, startProcess(runtime, links));
  expect(links.closes.length).toBe(5);
  expect(logged("drain-not-noted").length).toBeGreaterThan(0);
});

const ORDER: DrainOrder = {
  shard: "s1" as ShardId,
  spreadMs: 5_000,
  isDryRun: false,
  actor: "ada",
  reason: "upgrade",
};

/** Two nodes' desks, joined: `a` runs s1, `b` runs s2, nobody runs s3. */
function createDesks() {
  const nodes: Record<string, string> = { s1: "a", s2: "b", s3: "" };
  const orders: unknown[] = [];
  const forecast = { node: "a", links: 7 } as unknown as DrainForecast;
  const report = { node: "a", state: "done" } as unknown as DrainReport;
  const desks: Record<string, ReturnType<typeof createDrainDesk>> = {};
  const state = { isCut: false, isLeaving: false, report: report as DrainReport | undefined, nodes };
  const create = (selfNode: string) =>
    createDrainDesk({
      selfNode,
      drain: {
        get isLeaving() {
          return state.isLeaving;
        },
        order: (spreadMs) => {
          orders.push([selfNode, "order", spreadMs]);
          return forecast;
        },
        foretell: (spreadMs) => {
          orders.push([selfNode, "foretell", spreadMs]);
          return forecast;
        },
        report: () => state.report,
        linkedHere: async (salt, marks) => marks.filter((mark) => mark === `${salt}-${selfNode}`),
      },
      nodeOf: (shard) => nodes[shard],
      ask: async (node, head) => {
        if (state.isCut) return undefined;
        const replies: RawHead[] = [];
        const asked = JSON.parse(JSON.stringify(head)) as RawHead; // as it travels
        const handler = desks[node]?.handlers[String(head["t"])];
        handler?.(undefined as unknown as Peer, { head: asked }, (reply) => replies.push(reply));
        return replies[0] === undefined ? undefined : { head: replies[0] };
      },
      logger: createSilentLogger(),
    });
  desks["a"] = create("a");
  desks["b"] = create("b");
  const ask = async (node: string, head: RawHead) => {
    const replies: RawHead[] = [];
    const handler = desks[node]?.handlers[String(head["t"])];
    handler?.(undefined as unknown as Peer, { head }, (reply) => replies.push(reply));
    await settle();
    return replies[0] === undefined ? undefined : { head: replies[0] };
  };
  return { a: desks["a"].desk, b: desks["b"].desk, ask, orders, state, forecast, report };
}

async function refusalOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "no refusal",
    (error: unknown) => (isProtocolError(error) ? error.code : "another error"),
  );
}

verifies(
  "L24",
  "a drain ordered at any node reaches the node that runs the shard, and it alone",
  async () => {
    const { a, b, orders, forecast } = createDesks();
    expect(await a.order(ORDER)).toEqual(forecast);
    expect(await b.order({ ...ORDER, spreadMs: undefined })).toEqual(forecast);
    expect(await b.order({ ...ORDER, isDryRun: true })).toEqual(forecast);
    expect(orders).toEqual([
      ["a", "order", 5_000],
      ["a", "order", undefined],
      ["a", "foretell", 5_000],
    ]);
  },
);

test("an order that cannot be carried out says why", async () => {
  const { b, orders, state } = createDesks();
  expect(await refusalOf(b.order({ ...ORDER, shard: "s9" as ShardId }))).toBe("shard_not_found");
  expect(await refusalOf(b.order({ ...ORDER, shard: "s3" as ShardId }))).toBe("conflict");
  state.isCut = true;
  expect(await refusalOf(b.order(ORDER))).toBe("node_unreachable");
  expect(await refusalOf(b.report(ORDER.shard))).toBe("node_unreachable");
  expect(orders).toEqual([]);
});

verifies(
  "L24",
  "a node that is leaving takes no second order, from wherever it comes; a forecast it gives",
  async () => {
    const { a, b, orders, state } = createDesks();
    state.isLeaving = true;
    for (const desk of [a, b]) {
      await expect(desk.order(ORDER)).rejects.toMatchObject({
        code: "conflict",
        message: "a is leaving already",
      });
      await desk.order({ ...ORDER, isDryRun: true });
    }
    expect(orders).toEqual([
      ["a", "foretell", 5_000],
      ["a", "foretell", 5_000],
    ]);
  },
);

test("a node is leaving once it was ordered to, or told so otherwise", async () => {
  const runtime = new VirtualRuntime(1);
  const [ordered, told] = [
    startProcess(runtime, new FakeLinks(runtime, 1)),
    startProcess(runtime, new FakeLinks(runtime, 1)),
  ];
  expect([ordered.isLeaving, told.isLeaving]).toEqual([false, false]);
  ordered.foretell(2_000);
  expect(ordered.isLeaving).toBe(false);
  ordered.order(2_000);
  await ordered.ordered;
  await leave(runtime, told);
  expect([ordered.isLeaving, told.isLeaving]).toEqual([true, true]);
});

test("a node that does not run the shard any more does not leave for it", async () => {
  const { ask, orders } = createDesks();
  const { spreadMs: _spreadMs, ...order } = ORDER;
  const reply = await ask("b", { t: "drain", ...order });
  expect([reply?.head["forecast"], orders]).toEqual([null, []]);
});

test("a report is the shard's node's, asked at any node; one that does not exist is not found", async () => {
  const { a, b, state, report } = createDesks();
  expect(await a.report(ORDER.shard)).toEqual(report);
  expect(await b.report(ORDER.shard)).toEqual(report);
  state.report = undefined;
  expect(await refusalOf(a.report(ORDER.shard))).toBe("not_found");
  expect(await refusalOf(b.report(ORDER.shard))).toBe("not_found");
});

test("every node is asked for the marks it knows; one that does not answer knows of none", async () => {
  const { ask } = createDesks();
  const marks = ["salt-a", "salt-b", "salt-c"];
  expect(await askMarks(["a", "b", "gone"], ask, "salt", marks)).toEqual(["salt-a", "salt-b"]);
  expect(await askMarks(["a"], async () => ({ head: { marks: "broken" } }), "salt", marks)).toEqual([]);
});
