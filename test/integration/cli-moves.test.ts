// The commands that move tunnels, against a real node: one, many, aborted, resumed, and over a kill -9 of the node.

import {
  createTempDir,
  createTunnel,
  openOperator,
  runMoor,
  startMoor,
  startMoorDev,
  verifies,
  type MoorDev,
  type MoorRun,
} from "@moor/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { postTunnel } from "./cli-kit.ts";

interface Item {
  readonly tenant: string;
  readonly from: string;
  readonly to: string;
  readonly revision: number;
  readonly job: string | null;
}

let dev: MoorDev;
beforeAll(async () => {
  dev = await startMoorDev();
});
afterAll(() => dev.stop());

const moor = (...args: string[]): Promise<MoorRun> => runMoor([...args, "--data", dev.dataDir]);

async function json<Answer>(...args: string[]): Promise<Answer> {
  const run = await moor(...args, "--json");
  expect([run.code, run.stderr.includes("refused")]).toEqual([0, false]);
  return JSON.parse(run.stdout) as Answer;
}

async function shardOf(id: string): Promise<string> {
  return (await json<{ shard: string }>("where", id)).shard;
}

/** Tunnels by shard. */
async function counts(node = dev): Promise<Record<string, number>> {
  const run = await runMoor(["shards", "--json", "--data", node.dataDir]);
  const { items } = JSON.parse(run.stdout) as { items: { id: string; tunnels: number }[] };
  return Object.fromEntries(items.map(({ id, tunnels }) => [id, tunnels]));
}

const otherThan = (shard: string) => (shard === "s1" ? "s2" : "s1");

test("a tunnel moves, and where, moves and why tell of it with who and why", async () => {
  const { id } = await createTunnel(dev);
  const from = await shardOf(id);
  const to = otherThan(from);
  const moved = await moor("move", id, "--to", to, "--reason", "too hot");
  expect([moved.code, moved.stdout]).toEqual([
    0,
    expect.stringContaining(`moved ${id} from ${from} to ${to}`),
  ]);
  expect(moved.stderr).toContain(`To undo: moor move ${id} --to ${from}`);
  expect(await shardOf(id)).toBe(to);
  const { items } = await json<{ items: Item[] }>("moves", "--tenant", id);
  expect(items).toEqual([expect.objectContaining({ tenant: id, from, to, reason: "too hot", job: null })]);
  const why = await moor("why", id);
  expect(why.stdout).toMatch(
    new RegExp(`directory +moved +${from} → ${to} at revision \\d+ by \\S+: too hot`),
  );
  const back = await moor("move", id, "--to", to);
  expect([back.code, back.stderr]).toEqual([1, expect.stringContaining("refused (conflict)")]);
  const nowhere = await moor("move", id, "--to", "s9");
  expect([nowhere.code, nowhere.stderr]).toEqual([1, expect.stringContaining("refused (shard_not_found)")]);
});

verifies("R22", "revisions grow from move to move of all tunnels, and no two moves share one", async () => {
  const operator = await openOperator(dev.dataDir);
  const tunnels = await Promise.all([operator.createTunnel(), operator.createTunnel()]);
  const revisions: number[] = [];
  for (let round = 0; round < 10; round += 1) {
    for (const { id } of tunnels) {
      const { shard = "" } = (await operator.where(id)) ?? {};
      const { status, body } = await operator.move(id, otherThan(shard));
      expect(status).toBe(200);
      revisions.push(Number(body["revision"]));
    }
  }
  expect(revisions).toEqual([...new Set(revisions)].toSorted((one, other) => one - other));
});

test("all of a shard move at a pace with progress, and the answer says how many", async () => {
  await fill(20);
  const before = await counts();
  const run = await moor("move", "--from", "s1", "--to", "s2", "--rate", "100/s");
  expect([run.code, run.stdout]).toEqual([
    0,
    expect.stringMatching(`moved ${String(before["s1"])} from s1: job_`),
  ]);
  expect(run.stderr).toMatch(/s1 → s2 \[#{20}\] \d+\/\d+ at 100\/s, done/);
  const after = await counts();
  expect(after["s1"]).toBe(0);
  expect(after["s2"]).toBe((before["s1"] ?? 0) + (before["s2"] ?? 0));
});

test("an aborted job ends within its batch; resumed, the rest moves", async () => {
  await fill(20);
  await json("move", "--from", "s2", "--to", "s1", "--rate", "1000/s");
  const { s1: total = 0 } = await counts();
  const job = await json<{ id: string }>("move", "--from", "s1", "--to", "s2", "--rate", "2/s", "--detach");
  const watch = await startMoor(["move", "--resume", job.id, "--data", dev.dataDir]);
  await watch.stderr.waitFor(job.id);
  const aborted = await moor("move", "--abort", job.id);
  expect([aborted.code, aborted.stdout]).toEqual([0, expect.stringContaining(`aborted ${job.id}`)]);
  expect(await watch.ended).toEqual({ kind: "exited", code: 1 });
  expect(watch.stderr.text()).toContain("refused (job_aborted)");
  const left = (await counts())["s1"] ?? 0;
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThanOrEqual(total);
  const resumed = await moor("move", "--resume", job.id, "--rate", "1000/s");
  expect([resumed.code, resumed.stdout]).toEqual([0, expect.stringContaining(`moved ${left} from s1`)]);
  expect((await counts())["s1"]).toBe(0);
});

test("a watcher that is told to stop leaves the job running and says how to watch it again", async () => {
  await json("move", "--from", "s2", "--spread", "--rate", "1000/s");
  const job = await json<{ id: string }>("move", "--from", "s1", "--to", "s2", "--rate", "1/s", "--detach");
  const watch = await startMoor(["move", "--resume", job.id, "--data", dev.dataDir]);
  await watch.stderr.waitFor(/left/);
  watch.signal("SIGINT");
  await watch.ended;
  expect(watch.stderr.text()).toContain(`To watch: moor move --resume ${job.id}`);
  const state = await json<{ state: string }>("move", "--abort", job.id);
  expect(state.state).toBe("aborted");
});

test("a job goes on after kill -9 of the node that ran it, and moves nobody twice", async () => {
  const temp = await createTempDir("cli-moves");
  let node = await startMoorDev({ dataDir: temp.path, args: ["--log-level", "debug"] });
  await Promise.all(Array.from({ length: 40 }, () => postTunnel(node)));
  const at = ["--data", temp.path];
  const started = await runMoor([
    "move",
    "--from",
    "s1",
    "--to",
    "s2",
    "--rate",
    "8/s",
    "--detach",
    "--json",
    ...at,
  ]);
  const { id, total } = JSON.parse(started.stdout) as { id: string; total: number };
  expect(total).toBeGreaterThan(8);
  await node.process.stderr.waitFor('"move-job-batch"');
  await node.kill();
  node = await startMoorDev({ dataDir: temp.path });
  const watched = await runMoor(["move", "--resume", id, ...at]);
  expect([watched.code, watched.stdout]).toEqual([0, `moved ${total} from s1: ${id} is done`]);
  const { items } = JSON.parse((await runMoor(["moves", "--limit", "500", "--json", ...at])).stdout) as {
    items: Item[];
  };
  const ofJob = items.filter(({ job }) => job === id);
  expect([ofJob.length, new Set(ofJob.map(({ tenant }) => tenant)).size]).toEqual([total, total]);
  expect((await counts(node))["s1"]).toBe(0);
  await node.stop();
  await temp.remove();
});

test("corrections are on in a development node, and switched by command", async () => {
  expect((await moor("corrections", "status")).stdout).toBe("corrections are on in residency global");
  expect((await moor("corrections", "off")).code).toBe(0);
  expect(await json("corrections", "status")).toEqual({ residency: "global", on: false });
  expect(await json("corrections", "on", "--reason", "test")).toEqual({ residency: "global", on: true });
});

verifies(
  "R23",
  "a token key is rotated by command: added, promoted, and the old one retired with what it sealed placed anew",
  async () => {
    const { id } = await createTunnel(dev);
    const before = await json<{ revision: number; shard: string }>("where", id);
    const [old] = (await json<{ items: { id: string; state: string }[] }>("token-key", "list")).items;
    const added = await json<{ id: string; state: string }>("token-key", "add");
    expect(added.state).toBe("accepted");
    const early = await moor("token-key", "retire", String(old?.id));
    expect([early.code, early.stderr]).toEqual([1, expect.stringContaining("refused (conflict)")]);
    expect(await json("token-key", "promote", added.id)).toMatchObject({ id: added.id, state: "sealing" });
    expect(await json("token-key", "retire", String(old?.id))).toMatchObject({ retired: true });
    const { items } = await json<{ items: { id: string; state: string; placements: number }[] }>(
      "token-key",
      "list",
    );
    expect(items.map((key) => [key.id, key.state])).toEqual([[added.id, "sealing"]]);
    const after = await json<{ revision: number; shard: string }>("where", id);
    expect(after.shard).toBe(before.shard);
    expect(after.revision).toBeGreaterThan(before.revision);
  },
);

/** Creates tunnels, which are spread over the shards. */
async function fill(count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => postTunnel(dev)));
}
