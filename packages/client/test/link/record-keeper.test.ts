// The link record: what is read of it, when it is written, and that neither stops a link (L12, L13).

import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { createFileRecordStore } from "@moor/client";
import { parseHomeId, type HomeId } from "@moor/protocol";
import { createTempDir, settle, verifies } from "@moor/testkit";
import { expect, onTestFinished, test } from "vitest";
import { RecordKeeper } from "../../src/link/record-keeper.ts";
import type { LinkRecordStore } from "../../src/link/record-store.ts";
import { createFailingDisk } from "./failing-disk.ts";

const HOME = parseHomeId("villa") as HomeId;
const OTHER = parseHomeId("cellar") as HomeId;

async function setUp(text?: string) {
  const folder = await createTempDir("record");
  onTestFinished(() => folder.remove());
  const file = path.join(folder.path, "link.json");
  if (text !== undefined) await writeFile(file, text);
  const disk = createFailingDisk();
  const warnings: string[] = [];
  const keeper = new RecordKeeper(createFileRecordStore(file, disk), (warning) => warnings.push(warning));
  return { dir: folder.path, file, disk, warnings, keeper };
}

verifies(
  "L12",
  "a record is made with mode 0600, by temporary file, fsync, rename and directory fsync",
  async () => {
    const { keeper, file, disk, dir } = await setUp();
    expect(await keeper.load(HOME)).toEqual({ record: undefined, learnedKeys: [] });
    disk.journal.length = 0;
    keeper.keep(HOME, "a.cloud.example", []);
    await keeper.idle();
    expect(disk.journal).toEqual(["remove", "open", "append", "sync", "rename", "syncDir"]);
    expect(await readFile(file, "utf8")).toBe('{"v":1,"home":"villa","host":"a.cloud.example"}\n');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(dir)).toEqual(["link.json"]);
  },
);

verifies(
  "L12",
  "fields of a newer version are kept, and what the record holds already is not written again",
  async () => {
    const { keeper, file, disk } = await setUp('{"later":[1.0,{"a":1}],"v":1,"home":"villa","host":"a.b.c"}');
    expect((await keeper.load(HOME)).record).toMatchObject({ home: "villa", host: "a.b.c" });
    keeper.keep(HOME, undefined, []);
    await keeper.idle();
    expect(await readFile(file, "utf8")).toBe('{"v":1,"home":"villa","later":[1.0,{"a":1}]}\n');
    disk.journal.length = 0;
    keeper.keep(HOME, undefined, []);
    await keeper.idle();
    expect(disk.journal).toEqual([]);
    keeper.keep(HOME, "d.b.c", []);
    await keeper.idle();
    expect(await readFile(file, "utf8")).toContain('"host":"d.b.c"');
  },
);

for (const operation of ["open", "append", "sync", "rename", "syncDir"] as const) {
  verifies("L12", `while ${operation} fails there is one warning, and the next order writes`, async () => {
    const before = '{"v":1,"home":"villa"}\n';
    const { keeper, file, disk, warnings, dir } = await setUp(before);
    await keeper.load(HOME);
    disk.failing.add(operation);
    for (const host of ["a.b.c", "d.b.c"]) {
      keeper.keep(HOME, host, []);
      await keeper.idle();
    }
    expect(warnings).toEqual(["record-unwritable"]);
    if (operation !== "syncDir") expect(await readFile(file, "utf8")).toBe(before);
    expect(await readdir(dir)).toEqual(["link.json"]);
    disk.failing.clear();
    keeper.keep(HOME, "d.b.c", []);
    await keeper.idle();
    expect(await readFile(file, "utf8")).toContain("d.b.c");
    disk.failing.add(operation);
    keeper.keep(HOME, "e.b.c", []);
    await keeper.idle();
    expect(warnings).toEqual(["record-unwritable", "record-unwritable"]);
  });
}

verifies("L13", "a corrupt record lies beside as .bad and is as none", async () => {
  for (const text of [
    "",
    "{",
    "[]",
    '{"v":2,"home":"villa"}',
    '{"v":1}',
    '{"v":1,"home":"villa","home":"villa"}',
  ]) {
    const { keeper, warnings, dir, file } = await setUp(text);
    expect((await keeper.load(HOME)).record, text).toBeUndefined();
    expect([warnings, await readdir(dir)]).toEqual([["record-corrupt"], ["link.json.bad"]]);
    expect(await readFile(`${file}.bad`, "utf8")).toBe(text);
  }
});

verifies("L13", "a record that cannot be read or set aside stops nothing", async () => {
  const { keeper, disk, warnings } = await setUp("{");
  disk.failing.add("read");
  expect((await keeper.load(HOME)).record).toBeUndefined();
  disk.failing.clear();
  disk.failing.add("rename");
  expect((await keeper.load(HOME)).record).toBeUndefined();
  expect(warnings).toEqual(["record-unreadable", "record-corrupt"]);
});

test("a folder in the record's place stops nothing either", async () => {
  const { keeper, warnings, file } = await setUp();
  await mkdir(file);
  expect((await keeper.load(HOME)).record).toBeUndefined();
  keeper.keep(HOME, "a.b.c", []);
  await keeper.idle();
  expect(warnings).toEqual(["record-unreadable", "record-unwritable"]);
});

verifies("L12", "writes are serialised, and of those that wait only the newest is made", async () => {
  const saved: string[] = [];
  const gates: (() => void)[] = [];
  const store: LinkRecordStore = {
    load: () => Promise.resolve(undefined),
    setAside: () => Promise.resolve(),
    save: (text) => {
      saved.push(text);
      return new Promise((resolve) => gates.push(resolve));
    },
  };
  const keeper = new RecordKeeper(store, () => {});
  for (const host of ["a.b.c", "d.b.c", "e.b.c"]) keeper.keep(HOME, host, []);
  await settle();
  expect(saved).toHaveLength(1);
  gates[0]?.();
  await settle();
  expect(saved.map((text) => JSON.parse(text) as unknown)).toMatchObject([
    { host: "a.b.c" },
    { host: "e.b.c" },
  ]);
  gates[1]?.();
  await keeper.idle();
});

verifies("L29", "learned keys are kept for the home they were learned for", async () => {
  const key = "A".repeat(43);
  const { keeper, file } = await setUp();
  await keeper.load(HOME);
  keeper.keep(HOME, undefined, [key]);
  await keeper.idle();
  const again = new RecordKeeper(createFileRecordStore(file), () => {});
  expect((await again.load(HOME)).learnedKeys).toEqual([key]);
  expect((await again.load(OTHER)).learnedKeys).toEqual([]);
});
