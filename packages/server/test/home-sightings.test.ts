// Hellos on their way to the directory: written in batches, once an hour each, the last word right.

import type { AppInstance, HomeId } from "@moor/protocol";
import { createSilentLogger } from "@moor/runtime";
import { verifies, VirtualRuntime } from "@moor/testkit";
import { expect, test } from "vitest";
import type { HomeSighting } from "../src/directory/directory.ts";
import { HomeSightings } from "../src/entry/home-sightings.ts";
import { FakeReplica } from "./support/fake-replica.ts";

const HOUR_MS = 3_600_000;
const PHONE = "phone" as AppInstance;
const KEY = "k".repeat(43);

function start() {
  const runtime = new VirtualRuntime(1);
  const replica = new FakeReplica(runtime);
  const batches: (readonly HomeSighting[])[] = [];
  const state = { isDown: false, isSlow: false };
  const show = (sightings: readonly HomeSighting[]) => {
    for (const { home, app, hasShard } of sightings) {
      const lastSeenAtMs = runtime.wallMs();
      if (app === null) replica.updateHome(home, { boxHasShard: hasShard, boxSeenAtMs: lastSeenAtMs });
      else {
        const others = replica.homeApps(home).filter((each) => each.app !== app);
        replica.setHomeApps(home, [...others, { app, hasShard, lastSeenAtMs }]);
      }
    }
  };
  const recordHomeSightings = async (sightings: readonly HomeSighting[]) => {
    const { isDown } = state;
    if (state.isSlow) await new Promise<void>((resolve) => void runtime.schedule(100, resolve));
    if (isDown) throw new Error("down");
    batches.push(sightings);
    show(sightings);
  };
  const logger = createSilentLogger();
  const recorder = new HomeSightings({ directory: { recordHomeSightings }, replica, runtime, logger });
  return { runtime, replica, batches, state, recorder, home: replica.addHome().id };
}

verifies("L22", "what boxes and apps can do is written down, those within a second together", async () => {
  const { runtime, replica, batches, recorder, home } = start();
  const other = replica.addHome().id;
  recorder.noteBoxHello(home, KEY, true);
  await runtime.advanceAsync(0);
  expect(batches).toEqual([[{ home, app: null, hasShard: true, boxKey: KEY }]]);
  recorder.noteBoxHello(other, KEY, false);
  recorder.noteAppHello(home, PHONE, true);
  recorder.noteAppHello(home, PHONE, false);
  await runtime.advanceAsync(1_000);
  expect(batches.slice(1)).toEqual([
    [
      { home: other, app: null, hasShard: false, boxKey: KEY },
      { home, app: PHONE, hasShard: false },
    ],
  ]);
});

test("a fleet that redials writes nothing for an hour, unless it changed", async () => {
  const { runtime, batches, recorder, home } = start();
  const hello = async (hasShard: boolean) => {
    recorder.noteBoxHello(home, KEY, hasShard);
    recorder.noteAppHello(home, PHONE, hasShard);
    await runtime.advanceAsync(2_000);
    return batches.flat().length;
  };
  expect(await hello(true)).toBe(2);
  for (let redial = 0; redial < 10; redial += 1) expect(await hello(true)).toBe(2);
  expect(await hello(false)).toBe(4);
  expect(await hello(false)).toBe(4);
  await runtime.advanceAsync(HOUR_MS);
  expect(await hello(false)).toBe(6);
});

test("the last hello is the one that stays, also when it says what was known before", async () => {
  const { runtime, replica, state, recorder, home } = start();
  const settled = async () => {
    await runtime.advanceAsync(3_000);
    return [replica.home(home)?.boxHasShard, replica.homeApps(home)[0]?.hasShard];
  };
  recorder.noteBoxHello(home, KEY, true);
  recorder.noteAppHello(home, PHONE, true);
  expect(await settled()).toEqual([true, true]);
  // Held, and corrected before it is written.
  state.isDown = true;
  recorder.noteBoxHello(home, KEY, false);
  recorder.noteAppHello(home, PHONE, false);
  await runtime.advanceAsync(1_000);
  recorder.noteBoxHello(home, KEY, true);
  recorder.noteAppHello(home, PHONE, true);
  state.isDown = false;
  expect(await settled()).toEqual([true, true]);
  // Being written, and corrected meanwhile.
  state.isSlow = true;
  recorder.noteBoxHello(home, KEY, false);
  await runtime.advanceAsync(50);
  recorder.noteBoxHello(home, KEY, true);
  expect((await settled())[0]).toBe(true);
});

test("what the directory does not take is held until it does, the newest word of each", async () => {
  const { runtime, batches, state, recorder, home } = start();
  state.isDown = true;
  recorder.noteBoxHello(home, KEY, false);
  await runtime.advanceAsync(5_000);
  recorder.noteBoxHello(home, KEY, true);
  state.isDown = false;
  await runtime.advanceAsync(2_000);
  expect(batches).toEqual([[{ home, app: null, hasShard: true, boxKey: KEY }]]);
});

test("a word said during a write that fails is newer than what that write held", async () => {
  const { runtime, batches, state, recorder, home } = start();
  [state.isDown, state.isSlow] = [true, true];
  recorder.noteBoxHello(home, KEY, false);
  await runtime.advanceAsync(50);
  recorder.noteBoxHello(home, KEY, true);
  state.isDown = false;
  await runtime.advanceAsync(5_000);
  expect(batches).toEqual([[{ home, app: null, hasShard: true, boxKey: KEY }]]);
});

test("a batch has at most 500 hellos, and the rest follows", async () => {
  const { runtime, batches, recorder, home } = start();
  for (let app = 0; app < 1_200; app += 1) recorder.noteAppHello(home, `app-${app}` as AppInstance, true);
  await runtime.advanceAsync(5_000);
  expect(batches.map((batch) => batch.length)).toEqual([500, 500, 200]);
});

test("a hello of a home that is not known is nobody's", async () => {
  const { runtime, batches, recorder } = start();
  recorder.noteBoxHello("nobody" as HomeId, KEY, true);
  await runtime.advanceAsync(5_000);
  expect(batches).toEqual([]);
});

test("closing writes what is held", async () => {
  const { batches, recorder, home, runtime } = start();
  recorder.noteBoxHello(home, KEY, true);
  await runtime.advanceAsync(0);
  recorder.noteAppHello(home, PHONE, true);
  await recorder.close();
  expect(batches).toHaveLength(2);
});
