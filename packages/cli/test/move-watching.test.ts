// Watching a job and settling a move on virtual time: progress, outages, and moves whose answer was lost.

import { createNodeRuntime } from "@moor/runtime";
import { VirtualRuntime } from "@moor/testkit";
import { expect, test } from "vitest";
import { RefusedError, UnreachableError } from "../src/exit-code.ts";
import type { JobJson, MoveJson } from "../src/fleet-client.ts";
import { progressText, watchJob } from "../src/job-watch.ts";
import { settleMove } from "../src/move-settlement.ts";

const JOB: JobJson = {
  id: "job_1",
  kind: "move",
  from: "s1",
  to: null,
  spread: true,
  rate: 10,
  state: "running",
  forced: false,
  moved: 0,
  blocked: 0,
  blocked_tenants: [],
  total: 100,
  actor: "eve",
  reason: "",
  created_at: "",
  error: null,
};
const MOVE: MoveJson = {
  id: "move_1",
  tenant: "t",
  from: "s1",
  to: "s2",
  revision: 2,
  at: "",
  actor: "eve",
  reason: "",
  job: null,
};

function watching(isTerminal: boolean, showJob: (atMs: number) => Promise<JobJson>) {
  const runtime = new VirtualRuntime();
  const written: string[] = [];
  const output = { isTerminal, write: (text: string) => void written.push(text) };
  const client = { showJob: () => showJob(runtime.monotonicMs()) };
  return { runtime, written, ended: watchJob(JOB, { client, runtime, output }) };
}

const atPace = async (atMs: number): Promise<JobJson> => {
  const moved = Math.min(atMs / 100, 100);
  return { ...JOB, moved, state: moved === 100 ? "done" : "running" };
};

test("progress is one line rewritten on a terminal, a line every 5 s elsewhere", async () => {
  const terminal = watching(true, atPace);
  await terminal.runtime.advanceAsync(20_000);
  expect((await terminal.ended).state).toBe("done");
  expect(terminal.written.length).toBe(22);
  expect(terminal.written.slice(0, -1).every((text) => text.startsWith("\r"))).toBe(true);
  expect(terminal.written.at(-1)).toBe("\n");
  const plain = watching(false, atPace);
  await plain.runtime.advanceAsync(20_000);
  expect(plain.written).toEqual([
    "s1 → the others [--------------------] 0/100 at 10/s, 10 s left\n",
    "s1 → the others [##########----------] 50/100 at 10/s, 5 s left\n",
    "s1 → the others [####################] 100/100 at 10/s, done\n",
  ]);
});

test("tenants that came later are counted, and an empty shard is done at once", () => {
  expect(progressText({ ...JOB, moved: 120 })).toContain("120/120");
  expect(progressText({ ...JOB, total: 0, state: "done" })).toContain("[####################] 0/0");
});

test("a node that is away for a while is asked again, one that stays away is given up", async () => {
  const away = new UnreachableError("away", "check");
  const back = watching(false, (atMs) => (atMs < 50_000 ? Promise.reject(away) : atPace(atMs)));
  await back.runtime.advanceAsync(60_000);
  expect((await back.ended).state).toBe("done");
  const gone = watching(false, () => Promise.reject(away));
  const ended = gone.ended.catch((error: unknown) => error);
  await gone.runtime.advanceAsync(61_000);
  expect(await ended).toBe(away);
});

test("what is said after a watch that failed begins on a line of its own", async () => {
  const refused = new RefusedError("job_not_found", "no such job");
  const watch = watching(true, () => Promise.reject(refused));
  const ended = watch.ended.catch((error: unknown) => error);
  await watch.runtime.advanceAsync(1_000);
  expect(await ended).toBe(refused);
  expect(watch.written.at(-1)).toBe("\n");
});

const lost = new RefusedError("directory_unavailable", "lost", { outcome: "unknown", move: "move_1" });
const absent = new RefusedError("not_found", "no such move was made");
const down = new RefusedError("directory_unavailable", "down");

/** Settles a move whose answer was lost, with these answers to asking for it. */
async function settleWith(answers: readonly (MoveJson | RefusedError)[]) {
  const runtime = new VirtualRuntime();
  let at = 0;
  const client = {
    move: () => Promise.reject(lost),
    showMove: async () => {
      const answer = answers[Math.min(at, answers.length - 1)];
      at += 1;
      if (answer instanceof RefusedError || answer === undefined) throw answer ?? down;
      return answer;
    },
  };
  const said: string[] = [];
  const settlement = { client, runtime, say: (text: string) => void said.push(text) };
  const settled = settleMove({ tenant: "t", to: "s2" }, settlement).catch((error: unknown) => error);
  await runtime.advanceAsync(70_000);
  const outcome: unknown = await settled;
  expect(said).toEqual([expect.stringContaining("asking whether move_1 was made")]);
  return { outcome, asked: at };
}

test("a move whose answer was lost is looked up until the directory tells that it was made", async () => {
  expect(await settleWith([down, down, MOVE])).toEqual({ outcome: MOVE, asked: 3 });
});

test("a move that the directory does not know twice in a row was not made", async () => {
  const { outcome, asked } = await settleWith([absent, down, absent, absent]);
  expect(asked).toBe(4);
  expect(String(outcome)).toContain("nothing was moved");
});

test("a move nobody can be asked about for a minute stays unknown, with how to ask later", async () => {
  const { outcome } = await settleWith([down]);
  expect(String(outcome)).toContain("moor moves --id move_1");
});

test("a plain refusal is not looked up", async () => {
  const unasked = () => Promise.reject(new Error("not to be asked"));
  const client = { move: () => Promise.reject(down), showMove: unasked };
  const settlement = { client, runtime: createNodeRuntime(), say: () => {} };
  await expect(settleMove({ tenant: "t", to: "s2" }, settlement)).rejects.toBe(down);
});
