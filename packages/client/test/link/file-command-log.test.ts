// What a box remembers of commands on a real disk: over restarts, power cuts, full and broken disks, and for how long (L20).

import { appendFile, cp, readdir, readFile, symlink, truncate, writeFile } from "node:fs/promises";
import path from "node:path";
import { openFileCommandLog, type CommandLog, type FileCommandLogOptions } from "@moor/client";
import { createTempDir, verifies, VirtualRuntime } from "@moor/testkit";
import { expect, onTestFinished, test } from "vitest";
import { createFailingDisk } from "./failing-disk.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;

async function makeDir(): Promise<string> {
  const folder = await createTempDir("log");
  onTestFinished(() => folder.remove());
  return folder.path;
}

/** A log in `dir`, closed with the test if not before. */
async function openLog(dir: string, options: Partial<FileCommandLogOptions> = {}): Promise<CommandLog> {
  const log = await openFileCommandLog({
    path: path.join(dir, "log"),
    home: "kitchen",
    runtime: new VirtualRuntime(),
    ...options,
  });
  onTestFinished(() => log.close());
  return log;
}

/** What a power cut now would leave, as a log of its own. */
async function afterPowerCut(dir: string, options: Partial<FileCommandLogOptions> = {}): Promise<CommandLog> {
  const copy = await makeDir();
  await cp(dir, copy, { recursive: true });
  return openLog(copy, options);
}

const ids = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => `c${from + at}`);

verifies(
  "L20",
  "an id survives a power cut as soon as it is begun, and its result as soon as it has ended",
  async () => {
    const dir = await makeDir();
    const log = await openLog(dir);
    expect(await log.look("c1")).toEqual({ kind: "new" });
    expect(await log.begin("c1")).toBe("begun");
    expect(await (await afterPowerCut(dir)).look("c1")).toEqual({ kind: "begun" });
    expect(await log.end("c1", '{\n"a" : 1.0}')).toBe("ended");
    const kept = { kind: "ended", resultJson: '{\n"a" : 1.0}' };
    expect(await log.look("c1")).toEqual(kept);
    expect(await (await afterPowerCut(dir)).look("c1")).toEqual(kept);
  },
);

verifies("L20", "begin resolves after the fsync, and those who wait together share one", async () => {
  const dir = await makeDir();
  const disk = createFailingDisk();
  const log = await openLog(dir, { disk });
  const held = Promise.withResolvers<void>();
  disk.hold = held.promise;
  const begun: string[] = [];
  const all = ids(0, 100).map(async (id) => {
    await log.begin(id);
    begun.push(id);
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(begun).toEqual([]);
  held.resolve();
  await Promise.all(all);
  expect(begun).toHaveLength(100);
  expect(disk.journal.filter((operation) => operation === "sync").length).toBeLessThanOrEqual(3);
});

verifies("L20", "a segment is in its folder for good before its first line is told durable", async () => {
  const disk = createFailingDisk();
  const log = await openLog(await makeDir(), { disk });
  disk.journal.length = 0;
  await log.begin("c1");
  await log.begin("c2");
  expect(disk.journal).toEqual(["open", "syncDir", "append", "sync", "append", "sync"]);
});

verifies(
  "L20",
  "after an fsync that failed the segment is left: what the disk did with it is not known",
  async () => {
    const dir = await makeDir();
    const disk = createFailingDisk();
    const log = await openLog(dir, { disk });
    await log.begin("c1");
    disk.failing.add("sync");
    await log.begin("c2");
    disk.failing.clear();
    await log.begin("c2");
    expect(await readdir(dir)).toEqual(["log.kitchen.00000001", "log.kitchen.00000002"]);
  },
);

verifies("L20", "an id of one home says nothing about another's", async () => {
  const dir = await makeDir();
  await (await openLog(dir)).begin("c1");
  expect(await (await openLog(dir, { home: "cellar" })).look("c1")).toEqual({ kind: "new" });
});

verifies(
  "L20",
  "a last line that a power cut tore is skipped, and the next run writes behind it",
  async () => {
    const dir = await makeDir();
    const log = await openLog(dir);
    await log.begin("c1");
    await log.end("c1", "1");
    await log.begin("c2");
    await log.close();
    const [segment = ""] = await readdir(dir);
    const bytes = await readFile(path.join(dir, segment));
    for (let length = 0; length < bytes.length; length += 1) {
      const copy = await makeDir();
      await writeFile(path.join(copy, segment), bytes.subarray(0, length));
      const warnings: string[] = [];
      const cut = await openLog(copy, { onWarning: (warning) => warnings.push(warning) });
      expect(await cut.begin("c3")).toBe("begun");
      await cut.end("c3", "3");
      const again = await afterPowerCut(copy);
      expect(await again.look("c3")).toEqual({ kind: "ended", resultJson: "3" });
      const lines = bytes.subarray(0, length).toString().split("\n");
      // A line that lacks its end alone says all it has to say.
      const isWhole = (index: number) => lines.length > index + 1 || lines[index]?.endsWith("}") === true;
      expect(await again.look("c1")).toEqual(
        isWhole(1) ? { kind: "ended", resultJson: "1" } : { kind: isWhole(0) ? "begun" : "new" },
      );
      expect(warnings).toEqual([]);
      await again.close();
      await cut.close();
    }
  },
);

verifies("L20", "lines that are no lines are skipped, and told of", async () => {
  const dir = await makeDir();
  const log = await openLog(dir);
  await log.begin("c1");
  await log.close();
  const [segment = ""] = await readdir(dir);
  await appendFile(path.join(dir, segment), '{"id":7,"at":1}\n\u0000\u0000\u0000\n[]\n');
  const warnings: string[] = [];
  const again = await openLog(dir, { onWarning: (warning) => warnings.push(warning) });
  expect(await again.look("c1")).toEqual({ kind: "begun" });
  expect(warnings).toEqual(["log-damaged"]);
});

for (const operation of ["open", "append", "sync"] as const) {
  verifies(
    "L20",
    `while ${operation} fails nothing is begun; then everything works again, and nothing is lost`,
    async () => {
      const dir = await makeDir();
      const disk = createFailingDisk();
      const warnings: string[] = [];
      const log = await openLog(dir, { disk, onWarning: (warning) => warnings.push(warning) });
      if (operation !== "open") {
        await log.begin("c1");
        await log.end("c1", "1");
      }
      disk.failing.add(operation);
      for (const id of ["c2", "c3"]) expect(await log.begin(id)).toBe("unwritable");
      expect(warnings).toEqual(["log-unusable"]);
      expect(await log.look("c2")).toEqual({ kind: "new" });
      disk.failing.clear();
      for (const id of ["c2", "c3"]) expect(await log.begin(id)).toBe("begun");
      expect(await log.end("c3", "3")).toBe("ended");
      const again = await afterPowerCut(dir);
      if (operation !== "open") expect(await again.look("c1")).toEqual({ kind: "ended", resultJson: "1" });
      expect(await again.look("c2")).toEqual({ kind: "begun" });
      expect(await again.look("c3")).toEqual({ kind: "ended", resultJson: "3" });
    },
  );
}

verifies("L20", "a write that stops half way is no line, and what comes after it is", async () => {
  const dir = await makeDir();
  const disk = createFailingDisk();
  const log = await openLog(dir, { disk });
  await log.begin("c1");
  disk.tornAfterBytes = 5;
  expect(await log.begin("c2")).toBe("unwritable");
  expect(await log.begin("c3")).toBe("begun");
  const again = await afterPowerCut(dir);
  for (const [id, kind] of [
    ["c1", "begun"],
    ["c2", "new"],
    ["c3", "begun"],
  ] as const) {
    expect(await again.look(id)).toEqual({ kind });
  }
});

verifies("L20", "a disk that is really full refuses, and takes no more files for it", async () => {
  const dir = await makeDir();
  const log = await openLog(dir);
  await symlink("/dev/full", path.join(dir, "log.kitchen.00000001"));
  for (const id of ids(0, 20)) expect(await log.begin(id)).toBe("unwritable");
  expect((await readdir(dir)).length).toBeLessThanOrEqual(2);
});

verifies("L20", "a log that cannot be read acts on nothing until it can", async () => {
  const dir = await makeDir();
  const log = await openLog(dir);
  await log.begin("c1");
  await log.close();
  const disk = createFailingDisk();
  disk.failing.add("read");
  const again = await openLog(dir, { disk });
  expect(await again.look("c1")).toEqual({ kind: "unreadable" });
  expect(await again.begin("c2")).toBe("unwritable");
  disk.failing.clear();
  expect(await again.look("c1")).toEqual({ kind: "begun" });
  expect(await again.begin("c2")).toBe("begun");
});

test("a folder that is not there, or is a file, is a log that cannot be used, not a failure to open", async () => {
  const dir = await makeDir();
  await writeFile(path.join(dir, "file"), "");
  for (const name of ["nowhere/log", "file/log"]) {
    const log = await openLog(dir, { path: path.join(dir, name) });
    expect(await log.begin("c1")).toBe("unwritable");
  }
});

verifies(
  "L20",
  "a log that was closed is written no more, whatever ends late: another process may have it",
  async () => {
    const dir = await makeDir();
    const log = await openLog(dir);
    await log.begin("c1");
    const file = path.join(dir, "log.kitchen.00000001");
    const before = await readFile(file, "utf8");
    const closed = log.close();
    expect(await Promise.all([log.end("c1", "1"), log.begin("c2")])).toEqual(["unwritable", "unwritable"]);
    await closed;
    expect(await readFile(file, "utf8")).toBe(before);
  },
);

verifies("L20", "a log whose holder is just letting go is waited for", async () => {
  const dir = await makeDir();
  const log = await openLog(dir);
  await log.begin("c1");
  const next = openLog(dir);
  await new Promise((resolve) => setImmediate(resolve));
  await log.close();
  expect(await (await next).look("c1")).toEqual({ kind: "begun" });
});

verifies("L20", "two who open one log are one too many", async () => {
  const dir = await makeDir();
  const log = await openLog(dir);
  await expect(openLog(dir)).rejects.toThrow("--log");
  await log.close();
  await openLog(dir);
});

const SMALL = { segmentBytes: 400, resultBytesMax: 600, keepIds: 10, keepMs: DAY_MS };

verifies("L20", "an id is forgotten only when it is a day old and enough newer ones are known", async () => {
  const dir = await makeDir();
  const runtime = new VirtualRuntime();
  const log = await openLog(dir, { runtime, limits: SMALL });
  const beginAll = async (from: number, to: number) => {
    for (const id of ids(from, to)) {
      await log.begin(id);
      await log.end(id, "1");
    }
  };
  await beginAll(0, 50);
  expect(await log.look("c0")).not.toEqual({ kind: "new" }); // many newer, not old
  runtime.advance(DAY_MS + 1);
  await beginAll(50, 53);
  expect(await log.look("c40")).not.toEqual({ kind: "new" }); // old, not enough newer ones beside those like it
  await beginAll(53, 200);
  expect(await log.look("c0")).toEqual({ kind: "new" }); // both
  for (const id of ids(50, 200)) expect(await log.look(id), id).not.toEqual({ kind: "new" });
});

verifies(
  "L20",
  "a day is time for which the log was open: a clock that jumps, or a box that is off, forgets nothing",
  async () => {
    const dir = await makeDir();
    for (let run = 0; run < 5; run += 1) {
      const runtime = new VirtualRuntime(run + 1, Date.UTC(1970 + run * 30, 0, 1));
      const log = await openLog(dir, { runtime, limits: SMALL });
      for (const id of ids(run * 20, run * 20 + 20)) await log.begin(id);
      runtime.advance(DAY_MS / 6);
      runtime.jumpWallClock(DAY_MS * 10_000);
      await log.begin(`last-${run}`);
      await log.close();
    }
    const log = await openLog(dir, { limits: SMALL });
    for (const id of ids(0, 100)) expect(await log.look(id), id).toEqual({ kind: "begun" });
  },
);

verifies(
  "L20",
  "results beyond their bound are dropped, the oldest first; their ids are known on",
  async () => {
    const dir = await makeDir();
    const limits = { ...SMALL, segmentBytes: 1_000, resultBytesMax: 3_000 };
    const log = await openLog(dir, { limits });
    const result = JSON.stringify("r".repeat(100));
    for (const id of ids(0, 200)) {
      await log.begin(id);
      await log.end(id, result);
    }
    const kinds = async (opened: CommandLog) => {
      const found: string[] = [];
      for (const id of ids(0, 200)) found.push((await opened.look(id)).kind);
      return found;
    };
    const known = await kinds(log);
    const firstKept = known.indexOf("ended");
    expect(known.slice(0, firstKept).every((kind) => kind === "begun")).toBe(true);
    expect(known.slice(firstKept).every((kind) => kind === "ended")).toBe(true);
    expect(firstKept).toBeGreaterThan(100);
    expect(firstKept).toBeLessThan(190);
    expect(await kinds(await afterPowerCut(dir, { limits }))).toEqual(known);
    // 200 ids in some 30 bytes each, and the results that are left.
    const files = await readdir(dir);
    const sizes = await Promise.all(files.map(async (name) => (await readFile(path.join(dir, name))).length));
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(200 * 40 + 3_000 + 2 * 1_000);
    expect(files.length).toBeLessThan(20);
  },
);

verifies(
  "L20",
  "a power cut at any operation of the disk loses no id that was begun and no result that was told",
  async () => {
    const limits = { ...SMALL, segmentBytes: 500, resultBytesMax: 500 };
    const live = createFailingDisk();
    for (let cutAfter = 0; cutAfter <= live.journal.length; cutAfter += 1) {
      const dir = await makeDir();
      const disk = cutAfter === 0 ? live : createFailingDisk();
      disk.cutAfter = cutAfter === 0 ? undefined : cutAfter;
      const log = await openLog(dir, { disk, limits });
      const begun: string[] = [];
      for (const id of ids(0, 12)) {
        if ((await log.begin(id)) === "begun") begun.push(id);
        await log.end(id, JSON.stringify("r".repeat(100)));
      }
      await log.close();
      const again = await openLog(dir, { limits });
      for (const id of begun)
        expect(await again.look(id), `cut after ${cutAfter}`).not.toEqual({ kind: "new" });
      await again.close();
    }
    expect(live.journal).toEqual(expect.arrayContaining(["rename", "remove"]));
  },
);

verifies("L20", "at the most ids that can be known nothing further is begun", async () => {
  const dir = await makeDir();
  const warnings: string[] = [];
  const runtime = new VirtualRuntime();
  const limits = { ...SMALL, keepIds: 3, idsMax: 40 };
  const log = await openLog(dir, { runtime, limits, onWarning: (warning) => warnings.push(warning) });
  for (const id of ids(0, 40)) expect(await log.begin(id)).toBe("begun");
  expect(await log.begin("c40")).toBe("unwritable");
  expect(warnings).toEqual(["log-full"]);
  expect(await log.look("c40")).toEqual({ kind: "new" });
  expect(await log.end("c3", "3")).toBe("ended");
  runtime.advance(DAY_MS + 1);
  expect(await log.begin("c41")).toBe("begun");
});

test("a segment that is shorter than it was answers unknown, not another id's result", async () => {
  const dir = await makeDir();
  const log = await openLog(dir);
  await log.begin("c1");
  await log.end("c1", "1");
  await truncate(path.join(dir, "log.kitchen.00000001"), 10);
  expect(await log.look("c1")).toEqual({ kind: "begun" });
});
