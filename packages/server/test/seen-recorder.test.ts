import { expect, test } from "vitest";
import { createSilentLogger } from "@moor/runtime";
import { verifies, VirtualRuntime } from "@moor/testkit";
import type { TunnelId } from "@moor/protocol";
import type { Directory } from "../src/directory/directory.ts";
import { SeenRecorder } from "../src/entry/seen-recorder.ts";

const id = (digit: number) => `tunnel_${String(digit).repeat(32)}` as TunnelId;

function start() {
  const runtime = new VirtualRuntime(1);
  const batches: (readonly string[])[] = [];
  const directory = { isDown: false };
  const recordSeen = async (ids: readonly TunnelId[]) => {
    if (directory.isDown) throw new Error("down");
    batches.push(ids);
  };
  const recorder = new SeenRecorder(
    { recordSeen } as Partial<Directory> as Directory,
    runtime,
    createSilentLogger(),
  );
  return { runtime, batches, directory, recorder };
}

verifies(
  "T12",
  "a first poll is written down at once, those that follow within a second together",
  async () => {
    const { runtime, batches, recorder } = start();
    recorder.note(id(1));
    await runtime.advanceAsync(0);
    expect(batches).toEqual([[id(1)]]);
    recorder.note(id(2));
    recorder.note(id(3));
    await runtime.advanceAsync(999);
    expect(batches).toHaveLength(1);
    await runtime.advanceAsync(1);
    expect(batches.slice(1)).toEqual([[id(2), id(3)]]);
  },
);

test("what the directory did not take is written again until it does, once a second", async () => {
  const { runtime, batches, directory, recorder } = start();
  directory.isDown = true;
  recorder.note(id(1));
  await runtime.advanceAsync(5_000);
  expect(batches).toEqual([]);
  directory.isDown = false;
  await runtime.advanceAsync(1_000);
  expect(batches).toEqual([[id(1)]]);
});
