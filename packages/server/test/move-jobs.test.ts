// Move jobs on virtual time: pace, ends, aborts, outages, crashes, changes of the leader.

import { ProtocolError } from "@moor/protocol";
import { createSilentLogger } from "@moor/runtime";
import { verifies, VirtualRuntime } from "@moor/testkit";
import { expect, test } from "vitest";
import type { Replica } from "../src/directory/directory.ts";
import { jobMoveId } from "../src/moves/move-job.ts";
import { MoveJobRunner } from "../src/moves/move-job-runner.ts";
import { movePace } from "../src/moves/move-pace.ts";
import { FakeFleet } from "./support/fake-fleet.ts";

function fleetOf(...shards: string[]): { fleet: FakeFleet; runtime: VirtualRuntime } {
  const runtime = new VirtualRuntime(7);
  return { runtime, fleet: new FakeFleet(runtime, shards) };
}

function runnerOf(fleet: FakeFleet, node = "a"): MoveJobRunner {
  return new MoveJobRunner({
    directory: fleet.directory,
    replica: fleet.replica as unknown as Replica,
    mover: fleet.mover,
    node,
    incarnation: `${node}1`,
    runtime: fleet.runtime,
    logger: createSilentLogger(),
  });
}

test("a job moves every tenant of its source, once each, and ends as done", async () => {
  const { fleet, runtime } = fleetOf("s1", "s2", "s3");
  fleet.fill("s1", 37);
  fleet.place("x1", "s3");
  const { id } = fleet.addJob("s1", "s2", 10);
  const runner = runnerOf(fleet);
  runner.start();
  await runtime.advanceAsync(10_000);
  expect(fleet.counts()).toEqual({ s2: 37, s3: 1 });
  expect(fleet.job(id)).toMatchObject({ state: "done", moved: 37, total: 37 });
  expect(new Set(fleet.moves.map(({ tenant }) => tenant)).size).toBe(37);
  await runner.stop();
  expect(runtime.pendingCount).toBe(0);
});

test("the rate is kept, and a stall is not made up for", async () => {
  const { fleet, runtime } = fleetOf("s1", "s2");
  fleet.fill("s1", 100);
  fleet.addJob("s1", "s2", 20);
  const runner = runnerOf(fleet);
  runner.start();
  await runtime.advanceAsync(1_000);
  expect(fleet.counts()["s2"]).toBe(25);
  fleet.faults.moveBatch = () => ({ kind: "refused", error: new ProtocolError("directory_unavailable") });
  await runtime.advanceAsync(3_000);
  expect(fleet.counts()["s2"]).toBe(25);
  delete fleet.faults.moveBatch;
  await runtime.advanceAsync(2_000);
  const moved = fleet.counts()["s2"] ?? 0;
  expect(moved).toBeGreaterThanOrEqual(50);
  expect(moved).toBeLessThanOrEqual(65);
  const gaps = fleet.batchAtMs.slice(1).map((atMs, at) => atMs - (fleet.batchAtMs[at] ?? 0));
  expect(Math.min(...gaps)).toBe(250);
  await runner.stop();
});

test("a slow rate moves one at a time, a fast one at most 500 at once", () => {
  expect(movePace(0.5)).toEqual({ batchSize: 1, intervalMs: 2_000 });
  expect(movePace(100)).toEqual({ batchSize: 25, intervalMs: 250 });
  expect(movePace(10_000)).toEqual({ batchSize: 500, intervalMs: 50 });
});

test("an abort is honoured within one batch", async () => {
  const { fleet, runtime } = fleetOf("s1", "s2");
  fleet.fill("s1", 100);
  const { id } = fleet.addJob("s1", "s2", 20);
  const runner = runnerOf(fleet);
  runner.start();
  await runtime.advanceAsync(1_000);
  const before = fleet.moves.length;
  fleet.abort(id);
  await runtime.advanceAsync(60_000);
  expect(fleet.moves.length).toBe(before);
  expect(fleet.job(id)).toMatchObject({ state: "aborted", moved: before });
  await runner.stop();
});

test("spread goes to every live shard but the source, and to no other", async () => {
  const { fleet, runtime } = fleetOf("s1", "s2", "s3", "s4");
  fleet.states.set("s4", "draining");
  fleet.fill("s1", 90);
  const { id } = fleet.addJob("s1", "spread", 1_000);
  const runner = runnerOf(fleet);
  runner.start();
  await runtime.advanceAsync(2_000);
  const counts = fleet.counts();
  expect(fleet.job(id).state).toBe("done");
  expect(Object.keys(counts).toSorted()).toEqual(["s2", "s3"]);
  expect(Math.min(...Object.values(counts))).toBeGreaterThan(25);
  await runner.stop();
});

verifies("L22", "tenants that may not go are skipped, counted and named, and the rest is moved", async () => {
  const { fleet, runtime } = fleetOf("s1", "s2");
  fleet.fill("s1", 40);
  for (const tenant of ["t003", "t030", "t039"]) fleet.kept.add(tenant);
  const { id } = fleet.addJob("s1", "s2", 20);
  const runner = runnerOf(fleet);
  runner.start();
  await runtime.advanceAsync(10_000);
  expect(fleet.counts()).toEqual({ s1: 3, s2: 37 });
  expect(fleet.job(id)).toMatchObject({
    state: "done",
    moved: 37,
    blocked: 3,
    blockedTenants: ["t003", "t030", "t039"],
  });
  await runner.stop();
});

verifies("L22", "a forced job skips nobody", async () => {
  const { fleet, runtime } = fleetOf("s1", "s2");
  fleet.fill("s1", 5);
  fleet.kept.add("t003");
  const { id } = fleet.addJob("s1", "s2", 20, true);
  const runner = runnerOf(fleet);
  runner.start();
  await runtime.advanceAsync(10_000);
  expect(fleet.job(id)).toMatchObject({ state: "done", moved: 5, blocked: 0 });
  await runner.stop();
});

test.each(["draining", "down"] as const)(
  "a target that turns %s fails the job by name, and nobody goes there",
  async (state) => {
    const { fleet, runtime } = fleetOf("s1", "s2");
    fleet.fill("s1", 100);
    const { id } = fleet.addJob("s1", "s2", 20);
    const runner = runnerOf(fleet);
    runner.start();
    await runtime.advanceAsync(1_000);
    const before = fleet.moves.length;
    fleet.states.set("s2", state);
    await runtime.advanceAsync(5_000);
    expect(fleet.moves.length).toBe(before);
    expect(fleet.job(id)).toMatchObject({ state: "failed", error: "shard s2 is not live" });
    await runner.stop();
  },
);

test("a directory that keeps refusing for a reason nobody here sees fails the job instead of looping", async () => {
  const { fleet, runtime } = fleetOf("s1", "s2");
  fleet.fill("s1", 3);
  const { id } = fleet.addJob("s1", "s2", 20);
  fleet.faults.moveBatch = () => ({ kind: "refused", error: new ProtocolError("conflict") });
  const runner = runnerOf(fleet);
  runner.start();
  await runtime.advanceAsync(10_000);
  expect(fleet.job(id).state).toBe("failed");
  await runner.stop();
});

verifies(
  "R22",
  "a batch whose progress was lost is done again by the next leader and moves nobody twice",
  async () => {
    const { fleet, runtime } = fleetOf("s1", "s2");
    fleet.fill("s1", 40);
    const { id } = fleet.addJob("s1", "s2", 20);
    // The first leader dies between a batch and its cursor.
    fleet.faults.updateJob = () => {
      throw new ProtocolError("directory_unavailable");
    };
    const first = runnerOf(fleet, "a");
    first.start();
    await runtime.advanceAsync(0);
    expect([fleet.moves.length, fleet.job(id).cursor]).toEqual([5, null]);
    await first.stop();
    // Somebody puts one of the moved tenants back: it stays where it was put.
    const [moved] = fleet.moves;
    fleet.place(moved?.tenant ?? "", "s1");
    delete fleet.faults.updateJob;
    fleet.leader = undefined;
    const second = runnerOf(fleet, "b");
    second.start();
    await runtime.advanceAsync(10_000);
    expect(fleet.job(id).state).toBe("done");
    const perTenant = Map.groupBy(fleet.moves, ({ tenant }) => tenant);
    expect([...perTenant.values()].every((moves) => moves.length === 1)).toBe(true);
    expect(fleet.counts()).toEqual({ s1: 1, s2: 39 });
    await second.stop();
  },
);

test("a batch of unknown outcome is asked again with the same move ids", async () => {
  const { fleet, runtime } = fleetOf("s1", "s2");
  fleet.fill("s1", 4);
  const { id } = fleet.addJob("s1", "s2", 20);
  fleet.faults.moveBatch = () => {
    // Committed, but the answer is lost.
    delete fleet.faults.moveBatch;
    fleet.commit({
      moves: [{ moveId: jobMoveId(id, "t000"), tenant: "t000", from: "s1" as never, to: "s2" as never }],
      actor: "operator",
      reason: "test",
      job: id,
    });
    return { kind: "unknown-outcome" };
  };
  const runner = runnerOf(fleet);
  runner.start();
  await runtime.advanceAsync(5_000);
  expect(fleet.moves.map(({ tenant }) => tenant)).toEqual(["t000", "t001", "t002", "t003"]);
  expect(fleet.job(id).state).toBe("done");
  await runner.stop();
});

test("only the leader runs jobs, a new one takes over where the old one was, and the old one writes nothing more", async () => {
  const { fleet, runtime } = fleetOf("s1", "s2");
  fleet.fill("s1", 100);
  const { id } = fleet.addJob("s1", "s2", 20);
  const runners = [runnerOf(fleet, "a"), runnerOf(fleet, "b")];
  for (const runner of runners) runner.start();
  await runtime.advanceAsync(1_000);
  expect(runners.map(({ isLeading }) => isLeading)).toEqual([true, false]);
  fleet.leader = "b";
  await runtime.advanceAsync(5_000);
  expect(runners.map(({ isLeading }) => isLeading)).toEqual([false, true]);
  await runtime.advanceAsync(20_000);
  expect(fleet.job(id)).toMatchObject({ state: "done", moved: 100 });
  expect(fleet.moves.length).toBe(100);
  for (const runner of runners) await runner.stop();
  expect(runtime.pendingCount).toBe(0);
});

test("a leader that cannot reach the directory stops leading when its lease is over", async () => {
  const { fleet, runtime } = fleetOf("s1");
  const runner = runnerOf(fleet);
  runner.start();
  await runtime.advanceAsync(0);
  fleet.directory.tryLead = () => Promise.reject(new ProtocolError("directory_unavailable"));
  await runtime.advanceAsync(14_999);
  expect(runner.isLeading).toBe(true);
  await runtime.advanceAsync(1);
  expect(runner.isLeading).toBe(false);
  await runner.stop();
});

test("a job ordered while the node leads begins at once, and jobs run side by side", async () => {
  const { fleet, runtime } = fleetOf("s1", "s2", "s3");
  fleet.fill("s1", 20);
  for (const at of [1, 2, 3]) fleet.place(`u${at}`, "s2");
  const runner = runnerOf(fleet);
  runner.start();
  await runtime.advanceAsync(100);
  const first = fleet.addJob("s1", "s3", 1);
  const second = fleet.addJob("s2", "s3", 1);
  await runtime.advanceAsync(2_500);
  expect([fleet.job(first.id).moved, fleet.job(second.id).moved]).toEqual([3, 3]);
  await runner.stop();
});
