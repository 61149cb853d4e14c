// The commands of shards, moves, corrections and token keys against an operator listener that answers as told.

import { expect, test } from "vitest";
import { refusal, startFakeOperator, type Asked, type OperatorReply } from "./fake-operator.ts";
import { runInProcess, type ProgramRun } from "./run-in-process.ts";

const TENANT = `tunnel_${"a".repeat(32)}`;
const MOVE_ID = `move_${"b".repeat(32)}`;
const JOB_ID = `job_${"c".repeat(24)}`;
const WHERE = {
  tenant: TENANT,
  shard: "s1",
  state: "live",
  node: "n1",
  public_host: "s1.moor.example",
  revision: 7,
  view: "current",
};
const MOVE = {
  id: MOVE_ID,
  tenant: TENANT,
  from: "s1",
  to: "s2",
  revision: 8,
  at: "2026-01-01T00:00:00.000Z",
  actor: "eve",
  reason: "hot",
  job: null,
};
const JOB = {
  id: JOB_ID,
  kind: "move",
  from: "s1",
  to: "s2",
  spread: false,
  rate: 50,
  state: "running",
  forced: false,
  moved: 0,
  blocked: 0,
  blocked_tenants: [],
  total: 10,
  actor: "eve",
  reason: "",
  created_at: "2026-01-01T00:00:00.000Z",
  error: null,
};
const SHARD = {
  id: "s1",
  state: "live",
  node: "n1",
  public_host: "s1.moor.example",
  tunnels: 12,
  homes: 0,
  lease_age_ms: 2_345,
  late: false,
  default: false,
};

/** Runs a command against a listener; gives the run and what was asked. */
async function runAgainst(
  answer: (asked: Asked) => OperatorReply,
  ...args: string[]
): Promise<ProgramRun & { readonly asked: readonly Asked[] }> {
  const operator = await startFakeOperator(answer);
  return { ...(await runInProcess([...args, ...operator.args])), asked: operator.asked };
}

const jsonOf = (run: ProgramRun): unknown => JSON.parse(run.stdout);

test("shards are a table for people and items for programs, with the age of leases and who is late", async () => {
  const late = { ...SHARD, id: "s2", lease_age_ms: 31_000, late: true, default: true };
  const unknown = { ...SHARD, id: "s3", lease_age_ms: null };
  const answer = (): OperatorReply => [200, { shards: [SHARD, late, unknown], next: null }];
  const table = await runAgainst(answer, "shards");
  expect(table.stdout.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
    ["SHARD", "STATE", "NODE", "HOST", "TUNNELS", "HOMES", "LEASE"],
    ["s1", "live", "n1", "s1.moor.example", "12", "0", "2.3 s"],
    ["s2", "live, default", "n1", "s1.moor.example", "12", "0", "LATE 31.0 s"],
    ["s3", "live", "n1", "s1.moor.example", "12", "0", "unknown"],
    [""],
  ]);
  const { items } = jsonOf(await runAgainst(answer, "shards", "--json")) as { items: unknown[] };
  expect(items[0]).toEqual({
    id: "s1",
    state: "live",
    node: "n1",
    publicHost: "s1.moor.example",
    tunnels: 12,
    homes: 0,
    leaseAgeMs: 2_345,
    late: false,
    default: false,
  });
});

test("nodes are listed", async () => {
  const node = {
    id: "n1",
    state: "live",
    roles: ["entry"],
    shards: [],
    internal_url: "",
    incarnation: "i",
    version: "1",
  };
  const answer = (): OperatorReply => [200, { nodes: [node], next: null }];
  expect((await runAgainst(answer, "nodes")).stdout).toMatch(/n1 +live +entry +none +none +1/);
  expect(jsonOf(await runAgainst(answer, "nodes", "--json"))).toMatchObject({
    items: [{ id: "n1", internalUrl: "" }],
  });
});

test("where says where, and on stderr when the node may be out of date", async () => {
  const current = await runAgainst(() => [200, WHERE], "where", TENANT);
  expect([current.code, current.stderr]).toEqual([0, ""]);
  expect(current.stdout).toMatch(/shard +s1\n/);
  const behind = await runAgainst(() => [200, { ...WHERE, view: "behind" }], "where", TENANT, "--json");
  expect(behind.stderr).toContain("what it knew last");
  expect(jsonOf(behind)).toMatchObject({ shard: "s1", publicHost: "s1.moor.example", revision: 7 });
});

test("why tells a tenant's past in columns, and who could not be asked", async () => {
  const events = [{ at: "2026-01-01T00:00:00.000Z", node: "directory", event: "moved", detail: "s1 → s2" }];
  const answer = (): OperatorReply => [200, { tenant: TENANT, events, unreached: ["n2"] }];
  const run = await runAgainst(answer, "why", TENANT);
  expect(run.stdout).toMatch(/2026-01-01T00:00:00.000Z +directory +moved +s1 → s2/);
  expect(run.stderr).toBe("Without what these nodes saw: n2\n");
  expect(jsonOf(await runAgainst(answer, "why", TENANT, "--json"))).toEqual({
    items: events,
    unreached: ["n2"],
  });
});

const moving =
  (reply: OperatorReply) =>
  ({ method }: Asked): OperatorReply =>
    method === "POST" ? reply : [200, WHERE];

test("a move says what it did, who did it, and how to undo it", async () => {
  const run = await runAgainst(
    moving([200, { ...MOVE, acked: true }]),
    "move",
    TENANT,
    "--to",
    "s2",
    "--reason",
    "hot",
  );
  expect(run.asked.at(-1)).toEqual({
    method: "POST",
    path: "/v1/moves",
    body: { tenant: TENANT, to: "s2", reason: "hot" },
    actor: "eve",
  });
  expect([run.code, run.stdout]).toEqual([0, `moved ${TENANT} from s1 to s2 at revision 8\n`]);
  expect(run.stderr).toBe(`To undo: moor move ${TENANT} --to s1\n`);
  const json = await runAgainst(
    moving([200, { ...MOVE, acked: true }]),
    "move",
    TENANT,
    "--to",
    "s2",
    "--json",
  );
  expect(jsonOf(json)).toEqual(MOVE);
});

test("a dry run moves nobody, and refuses what the move would be refused for", async () => {
  const shards = [SHARD, { ...SHARD, id: "s2" }, { ...SHARD, id: "s3", state: "down" }];
  const answer = ({ path }: Asked): OperatorReply =>
    path.startsWith("/v1/shards") ? [200, { shards, next: null }] : [200, WHERE];
  const dryRun = (to: string) => runAgainst(answer, "move", TENANT, "--to", to, "--dry-run");
  const run = await dryRun("s2");
  expect(run.asked.map(({ method }) => method)).toEqual(["GET", "GET"]);
  expect(run.stdout).toBe(`would move ${TENANT} from s1 to s2\n`);
  const down = await dryRun("s3");
  expect([down.code, down.stderr]).toEqual([
    1,
    "moor: refused (conflict): shard s3 is not a live one besides s1\n",
  ]);
  expect((await dryRun("s9")).stderr).toBe("moor: refused (shard_not_found): there is no shard s9\n");
});

test("a refused move ends with 1 and the reason", async () => {
  const run = await runAgainst(
    moving(refusal(409, "conflict", "shard s2 is down")),
    "move",
    TENANT,
    "--to",
    "s2",
  );
  expect([run.code, run.stdout, run.stderr]).toEqual([1, "", "moor: refused (conflict): shard s2 is down\n"]);
});

test("a node that goes away with the answer ends with 3 and how to ask whether it moved", async () => {
  const run = await runAgainst(moving(undefined), "move", TENANT, "--to", "s2");
  expect(run.code).toBe(3);
  expect(run.stderr).toContain(`moor moves --tenant ${TENANT}`);
});

test("all of a shard move as a job that is watched to its end", async () => {
  const seen = [
    { ...JOB, moved: 4 },
    { ...JOB, moved: 10, state: "done" },
  ];
  const answer = ({ method }: Asked): OperatorReply =>
    method === "POST" ? [201, JOB] : [200, seen.length > 1 ? seen.shift() : seen[0]];
  const run = await runAgainst(answer, "move", "--from", "s1", "--to", "s2", "--rate", "50/s", "--json");
  expect(run.asked[0]?.body).toEqual({ kind: "move", from: "s1", to: "s2", rate: 50 });
  expect(run.code).toBe(0);
  expect(jsonOf(run)).toMatchObject({ id: JOB_ID, state: "done", moved: 10, total: 10 });
  expect(run.stderr).toContain("s1 → s2 [--------------------] 0/10 at 50/s, 1 s left\n");
  expect(run.stderr).toContain("s1 → s2 [####################] 10/10 at 50/s, done\n");
});

test("a job that fails ends with 1 and says how far it came", async () => {
  const failed = { ...JOB, state: "failed", moved: 4, error: "shard s2 is not live" };
  const answer = ({ method }: Asked): OperatorReply => (method === "POST" ? [201, JOB] : [200, failed]);
  const run = await runAgainst(answer, "move", "--from", "s1", "--spread", "--rate", "50");
  expect(run.asked[0]?.body).toEqual({ kind: "move", from: "s1", spread: true, rate: 50 });
  expect(run.code).toBe(1);
  expect(run.stderr).toContain("refused (job_failed): 4 of 10 have moved: shard s2 is not live");
});

test("a detached job is not watched; a dry run of one asks for shards alone", async () => {
  const detached = await runAgainst(
    () => [201, JOB],
    "move",
    "--from",
    "s1",
    "--to",
    "s2",
    "--rate",
    "1",
    "--detach",
  );
  expect([detached.code, detached.asked.length]).toEqual([0, 1]);
  expect(detached.stderr).toContain(`moor move --resume ${JOB_ID}`);
  const shards = [SHARD, { ...SHARD, id: "s2" }, { ...SHARD, id: "s3", state: "down" }];
  const dry = ["move", "--from", "s1", "--spread", "--rate", "5", "--dry-run"];
  const told = await runAgainst(() => [200, { shards, next: null }], ...dry);
  expect(told.stdout).toBe("would move 12 from s1 to s2 in about 3 s\n");
  const alone = await runAgainst(() => [200, { shards: [SHARD], next: null }], ...dry);
  expect([alone.code, alone.stderr]).toEqual([1, "moor: refused (conflict): no shard but s1 is live\n"]);
});

test("resume watches a running job, and begins an aborted one anew with what is left", async () => {
  const done = { ...JOB, state: "done", moved: 10 };
  const watched = await runAgainst(() => [200, done], "move", "--resume", JOB_ID);
  expect([watched.code, watched.stdout]).toEqual([0, `moved 10 from s1: ${JOB_ID} is done\n`]);
  const aborted = { ...JOB, state: "aborted", moved: 4 };
  const answer = ({ method }: Asked): OperatorReply =>
    method === "POST" ? [201, { ...done, id: "job_2" }] : [200, aborted];
  const anew = await runAgainst(answer, "move", "--resume", JOB_ID);
  expect(anew.asked[1]?.body).toEqual({
    kind: "move",
    from: "s1",
    to: "s2",
    rate: 50,
    reason: `goes on from ${JOB_ID}`,
  });
  expect(anew.stdout).toBe("moved 10 from s1: job_2 is done\n");
});

test("abort ends a job and says that what moved stays", async () => {
  const run = await runAgainst(
    () => [200, { ...JOB, state: "aborted", moved: 4 }],
    "move",
    "--abort",
    JOB_ID,
  );
  expect(run.asked[0]).toMatchObject({ method: "POST", path: `/v1/jobs/${JOB_ID}/abort` });
  expect(run.stdout).toBe(`aborted ${JOB_ID}: 4 of 10 have moved and stay where they are\n`);
});

test("moves are listed a page at a time, of one tenant, or one by its id", async () => {
  const page = await runAgainst(() => [200, { moves: [MOVE], next: "c2" }], "moves", "--tenant", TENANT);
  expect(page.asked[0]?.path).toBe(`/v1/moves?limit=50&tenant=${TENANT}`);
  expect(page.stdout).toMatch(/s1 +s2 +8 +eve +hot/);
  expect(page.stderr).toBe("More: --after c2\n");
  const one = await runAgainst(() => [200, MOVE], "moves", "--id", MOVE_ID, "--json");
  expect(jsonOf(one)).toEqual({ items: [MOVE], next: null });
});

test("corrections are switched and shown, with how to undo it", async () => {
  const on = await runAgainst(
    () => [200, { residency: "eu", on: true }],
    "corrections",
    "on",
    "--reason",
    "all new",
  );
  expect(on.asked[0]).toMatchObject({
    method: "PUT",
    path: "/v1/corrections",
    body: { on: true, reason: "all new" },
  });
  expect([on.stdout, on.stderr]).toEqual([
    "corrections are on in residency eu\n",
    "To undo: moor corrections off\n",
  ]);
  const status = await runAgainst(
    () => [200, { residency: "eu", on: false }],
    "corrections",
    "status",
    "--json",
  );
  expect(jsonOf(status)).toEqual({ residency: "eu", on: false });
});

const TOKEN_KEY = {
  id: "tk_00000001",
  state: "sealing",
  created_at: "2026-01-01T00:00:00.000Z",
  state_since: "2026-01-01T00:00:00.000Z",
  created_by: "eve",
  placements: 3,
};

test("a token key's rotation names the next step at each step", async () => {
  const added = { ...TOKEN_KEY, id: "tk_00000002", state: "accepted", placements: 0 };
  const answer = ({ method, path }: Asked): OperatorReply => {
    if (method === "GET") return [200, { token_keys: [TOKEN_KEY, added], next: null }];
    if (method === "DELETE") return [200, { id: "tk_00000001", retired: true }];
    return path.endsWith("/promote") ? [200, { ...added, state: "sealing" }] : [201, added];
  };
  const add = await runAgainst(answer, "token-key", "add");
  expect(add.stderr).toContain("Next: moor token-key promote tk_00000002");
  const promote = await runAgainst(answer, "token-key", "promote", "tk_00000002");
  expect(promote.stderr).toContain("Next: moor token-key retire tk_00000001");
  const dry = await runAgainst(answer, "token-key", "retire", "tk_00000001", "--dry-run");
  expect([dry.asked.length, dry.stdout]).toEqual([1, "would retire tk_00000001 and place 3 tenants anew\n"]);
  const retire = await runAgainst(answer, "token-key", "retire", "tk_00000001");
  expect(retire.stdout).toBe("retired tk_00000001 and placed 3 tenants anew\n");
  const list = await runAgainst(answer, "token-key", "list", "--json");
  expect((jsonOf(list) as { items: unknown[] }).items[0]).toMatchObject({ id: "tk_00000001", placements: 3 });
  const none = await runAgainst(answer, "token-key", "retire", "tk_00000009");
  expect([none.code, none.asked.length]).toEqual([1, 1]);
});
