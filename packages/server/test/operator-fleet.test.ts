// The operator's view of the fleet, moves, jobs, corrections and token keys: what is asked of the parts, what is shown,
// what is refused, what the audit says.

import { ProtocolError } from "@moor/protocol";
import { createLogger } from "@moor/runtime";
import { verifies, VirtualRuntime } from "@moor/testkit";
import { beforeEach, expect, test } from "vitest";
import type {
  Directory,
  Job,
  MadeMove,
  Replica,
  ShardId,
  TokenKeyRecord,
} from "../src/directory/directory.ts";
import type { MoveOutcome, MoveRequest, TimelineSource } from "../src/moves/mover.ts";
import { OperatorApi } from "../src/operator/operator-api.ts";
import { readActor, type OperatorAnswer } from "../src/operator/operator-route.ts";
import { FakeFleet } from "./support/fake-fleet.ts";
import { idleParts } from "./support/operator-parts.ts";

const TENANT = `tunnel_${"a".repeat(32)}`;
const MOVE_ID = `move_${"b".repeat(32)}`;
const TOKEN_KEY: TokenKeyRecord = {
  id: "tk_1",
  state: "accepted",
  createdAtMs: 0,
  stateSinceMs: 0,
  createdBy: "eve",
  placementCount: 3,
};

let fleet: FakeFleet;
let api: OperatorApi;
let calls: unknown[];
let audits: Record<string, unknown>[];
let outcome: (request: MoveRequest) => MoveOutcome;
let correctionsOn: boolean;
let timeline: TimelineSource;

beforeEach(() => {
  fleet = new FakeFleet(new VirtualRuntime(), ["s1", "s2", "s3"]);
  fleet.states.set("s3", "draining");
  fleet.place(TENANT, "s1");
  calls = [];
  audits = [];
  correctionsOn = false;
  outcome = (request) => ({ kind: "moved", isAcked: true, move: moveOf(request) });
  timeline = { timeline: async () => ({ events: [], unreached: [] }) };
  api = new OperatorApi({
    directory: directoryOf(),
    replica: replicaOf(),
    mover: {
      move: async (request) => {
        calls.push(["move", request]);
        return outcome(request);
      },
      moveBatch: async () => ({ kind: "unknown-outcome" }),
    },
    drains: idleParts().drains,
    homeStatus: idleParts().homeStatus,
    timeline: { timeline: (tenant) => timeline.timeline(tenant) },
    leases: {
      ageMs: (shard) => (shard === "s1" ? 1_234.5 : undefined),
      isLate: (shard) => shard === "s2",
    },
    runtime: fleet.runtime,
    metrics: { directoryMutations: { inc: (label) => void calls.push(["count", label]) } },
    logger: createLogger({
      destination: { write: (line) => void audits.push(JSON.parse(line) as Record<string, unknown>) },
    }),
    publicUrl: () => "http://moor.example",
  });
});

function moveOf({ tenant, to, actor, reason }: MoveRequest): MadeMove {
  const placement = { shard: to, revision: 9, tokenKey: "tk_1", tokenFormat: 1 };
  const from = "s1" as ShardId;
  return { id: MOVE_ID, tenant, from, to, revision: 9, atMs: 0, actor, reason, job: null, placement };
}

function directoryOf(): Directory {
  const record =
    (name: string, value: unknown) =>
    async (...args: unknown[]): Promise<unknown> => {
      calls.push([name, ...args]);
      return value;
    };
  const job = (): Job => ({ ...fleet.addJob("s1", "s2", 5), id: "job_1" });
  return {
    createJob: async (input: unknown) => {
      calls.push(["createJob", input]);
      return job();
    },
    getJob: record("getJob", job()),
    listJobs: record("listJobs", { items: [job()], next: "n" }),
    abortJob: record("abortJob", { ...job(), state: "aborted" }),
    listMoves: record("listMoves", { items: [], next: null }),
    findMove: async (id: string) => (id === MOVE_ID ? moveOf(requestOf()) : undefined),
    setCorrections: async (isOn: boolean, order: unknown) => {
      calls.push(["setCorrections", isOn, order]);
      correctionsOn = isOn;
    },
    addTokenKey: record("addTokenKey", TOKEN_KEY),
    promoteTokenKey: record("promoteTokenKey", { ...TOKEN_KEY, state: "sealing" }),
    retireTokenKey: record("retireTokenKey", undefined),
    listTokenKeys: record("listTokenKeys", [TOKEN_KEY]),
  } as unknown as Directory;
}

function requestOf(): MoveRequest {
  return { tenant: TENANT, to: "s2" as ShardId, actor: "eve", reason: "hot" };
}

function replicaOf(): Replica {
  return {
    ...fleet.replica,
    health: { kind: "current" },
    residency: () => "eu",
    defaultShard: () => "s2",
    correctionsOn: () => correctionsOn,
    countsByShard: () => new Map([["s1", { tunnels: 2, homes: 1 }]]),
    nodes: () => [
      {
        id: "n",
        incarnation: "n1",
        internalUrl: "tcp://127.0.0.1:1",
        roles: ["entry", "shard"],
        version: "0.1.0",
        state: "live",
      },
    ],
    movesOf: (tenant: string) => (tenant === TENANT ? [{ ...moveOf(requestOf()), atMs: 2_000 }] : []),
  } as unknown as Replica;
}

async function run(method: string, path: string, body?: unknown): Promise<OperatorAnswer> {
  const [bare = "", query = ""] = path.split("?");
  return api.run({
    method,
    path: bare,
    query: new URLSearchParams(query),
    body: body === undefined ? new Uint8Array() : Buffer.from(JSON.stringify(body)),
    requestId: "req_1",
    actor: "eve",
  });
}

/** Code and param of a refusal. */
async function refusalOf(method: string, path: string, body?: unknown): Promise<(string | undefined)[]> {
  try {
    await run(method, path, body);
    return ["none"];
  } catch (error) {
    if (error instanceof ProtocolError) return [error.code, error.param];
    throw error;
  }
}

test("shards are shown with node, tenants, the age of their lease, and who is late", async () => {
  const { json } = await run("GET", "/v1/shards");
  const common = { node: "n", tunnels: 0, homes: 0, lease_age_ms: null, late: false, default: false };
  expect(json).toEqual({
    shards: [
      { ...common, id: "s1", state: "live", public_host: "s1", tunnels: 2, homes: 1, lease_age_ms: 1_235 },
      { ...common, id: "s2", state: "live", public_host: "s2", late: true, default: true },
      { ...common, id: "s3", state: "draining", public_host: "s3" },
    ],
    next: null,
  });
  fleet.states.set("s2", "down");
  const shards = (await run("GET", "/v1/shards")).json["shards"] as { late: boolean }[];
  expect(shards.map(({ late }) => late)).toEqual([false, false, false]);
});

test("nodes are shown with what they run", async () => {
  expect((await run("GET", "/v1/nodes")).json).toEqual({
    nodes: [
      {
        id: "n",
        state: "live",
        roles: ["entry", "shard"],
        shards: ["s1", "s2", "s3"],
        internal_url: "tcp://127.0.0.1:1",
        incarnation: "n1",
        version: "0.1.0",
      },
    ],
    next: null,
  });
});

test("where a tenant lives is told from the replica, and an unknown one is not found", async () => {
  expect((await run("GET", `/v1/tenants/${TENANT}`)).json).toEqual({
    tenant: TENANT,
    shard: "s1",
    state: "live",
    node: "n",
    public_host: "s1",
    revision: 1,
    view: "current",
  });
  const other = `tunnel_${"0".repeat(32)}`;
  expect(await refusalOf("GET", `/v1/tenants/${other}`)).toEqual(["tunnel_not_found", undefined]);
  expect(await refusalOf("GET", "/v1/tenants/anna")).toEqual(["home_not_found", undefined]);
  for (const neither of ["Notes", "tunnel_1"]) {
    expect(await refusalOf("GET", `/v1/tenants/${neither}`)).toEqual(["invalid_tunnel_id_format", "id"]);
  }
});

test("a timeline is moves of the directory and sights of the nodes in order of time, with who did not answer", async () => {
  timeline = {
    timeline: async () => ({
      events: [3_000, 1_000].map((atMs) => ({
        atMs,
        node: "n",
        event: "polls-closed",
        detail: `at ${atMs}`,
      })),
      unreached: ["m"],
    }),
  };
  const { json } = await run("GET", `/v1/tenants/${TENANT}/timeline`);
  expect(json["unreached"]).toEqual(["m"]);
  expect((json["events"] as { detail: string }[]).map(({ detail }) => detail)).toEqual([
    "at 1000",
    "s1 → s2 at revision 9 by eve: hot",
    "at 3000",
  ]);
});

test("a deleted tenant still has a past, one without any is not found", async () => {
  fleet.placements.delete(TENANT);
  expect((await run("GET", `/v1/tenants/${TENANT}/timeline`)).status).toBe(200);
  const other = `tunnel_${"0".repeat(32)}`;
  expect(await refusalOf("GET", `/v1/tenants/${other}/timeline`)).toEqual(["tunnel_not_found", undefined]);
});

test("a move is asked of the mover with its actor and reason, shown, counted and audited", async () => {
  const { json } = await run("POST", "/v1/moves", { tenant: TENANT, to: "s2", reason: "hot" });
  expect(calls).toEqual([
    ["move", { tenant: TENANT, to: "s2", actor: "eve", reason: "hot", isForced: false }],
    ["count", "committed"],
  ]);
  expect(json).toEqual({
    id: MOVE_ID,
    tenant: TENANT,
    from: "s1",
    to: "s2",
    revision: 9,
    at: "1970-01-01T00:00:00.000Z",
    actor: "eve",
    reason: "hot",
    job: null,
    acked: true,
  });
  expect(audits).toEqual([
    expect.objectContaining({
      event: "move-ordered",
      actor: "eve",
      tenant: TENANT,
      from: "s1",
      to: "s2",
      move: MOVE_ID,
    }),
  ]);
});

test("a refused move is the mover's refusal, and no audit line", async () => {
  outcome = () => ({ kind: "refused", error: new ProtocolError("conflict", { message: "s2 is down" }) });
  expect(await refusalOf("POST", "/v1/moves", { tenant: TENANT, to: "s2" })).toEqual(["conflict", undefined]);
  expect([calls.at(-1), audits]).toEqual([["count", "refused"], []]);
});

test("a move lost in the middle names the id to ask by, and asking tells", async () => {
  outcome = () => ({ kind: "unknown-outcome", moveId: MOVE_ID });
  const lost = run("POST", "/v1/moves", { tenant: TENANT, to: "s2" });
  await expect(lost).rejects.toMatchObject({
    code: "directory_unavailable",
    data: { outcome: "unknown", move: MOVE_ID },
  });
  expect((await run("GET", `/v1/moves/${MOVE_ID}`)).json).toMatchObject({ id: MOVE_ID, to: "s2" });
  expect(await refusalOf("GET", `/v1/moves/move_${"0".repeat(32)}`)).toEqual(["not_found", undefined]);
});

test("moves are listed by page and tenant", async () => {
  await run("GET", `/v1/moves?tenant=${TENANT}&limit=7&after=c`);
  expect(calls).toEqual([["listMoves", { limit: 7, after: "c", tenant: TENANT }]]);
  expect(await refusalOf("GET", "/v1/moves?tenant=X")).toEqual(["invalid_tunnel_id_format", "tenant"]);
});

test.each([
  [{ to: "s2" }, { from: "s1", to: "s2" }],
  [{ spread: true }, { from: "s1", to: "spread" }],
])("a job of %j is created for the leader to run", async (target, selector) => {
  const { status, json } = await run("POST", "/v1/jobs", { kind: "move", from: "s1", ...target, rate: 5 });
  expect(status).toBe(201);
  expect(calls[0]).toEqual(["createJob", { selector, ratePerS: 5, isForced: false, actor: "eve" }]);
  expect(json).toMatchObject({
    id: "job_1",
    from: "s1",
    to: "s2",
    spread: false,
    rate: 5,
    state: "running",
    error: null,
  });
  expect(audits[0]).toMatchObject({ event: "job-created", job: "job_1", actor: "eve" });
});

test.each([
  [{ from: "s1", to: "s3", rate: 5 }, ["conflict", "to"]],
  [{ from: "s1", to: "s9", rate: 5 }, ["shard_not_found", "to"]],
  [{ from: "s9", to: "s1", rate: 5 }, ["shard_not_found", "from"]],
  [{ from: "s1", to: "s1", rate: 5 }, ["invalid_request", "to"]],
  [{ from: "s1", rate: 5 }, ["invalid_request", "to"]],
  [{ from: "s1", to: "s2", spread: true, rate: 5 }, ["invalid_request", "to"]],
  [{ from: "s1", to: "s2", rate: 0 }, ["invalid_request", "rate"]],
  [{ from: "s1", to: "s2", rate: "5" }, ["invalid_request", "rate"]],
  [{ from: "S1", to: "s2", rate: 5 }, ["invalid_request", "from"]],
  [{ from: "s1", to: "s2", rate: 5, kind: "drain" }, ["invalid_request", "kind"]],
])("a job of %j is refused before it is made", async (body, refusal) => {
  expect(await refusalOf("POST", "/v1/jobs", { kind: "move", ...body })).toEqual(refusal);
  expect([calls, audits]).toEqual([[], []]);
});

test("nothing is spread when no other shard is live", async () => {
  fleet.states.set("s2", "down");
  const order = { kind: "move", from: "s1", spread: true, rate: 5 };
  expect(await refusalOf("POST", "/v1/jobs", order)).toEqual(["conflict", undefined]);
});

test("jobs are listed by state, shown and aborted", async () => {
  expect((await run("GET", "/v1/jobs?state=running")).json).toMatchObject({
    jobs: [{ id: "job_1" }],
    next: "n",
  });
  expect(calls[0]).toEqual(["listJobs", { limit: 100, state: "running" }]);
  expect(await refusalOf("GET", "/v1/jobs?state=lost")).toEqual(["invalid_request", "state"]);
  expect((await run("GET", "/v1/jobs/job_1")).json).toMatchObject({ id: "job_1" });
  const { json } = await run("POST", "/v1/jobs/job_1/abort", { reason: "enough" });
  expect(json).toMatchObject({ state: "aborted" });
  expect(calls).toContainEqual(["abortJob", "job_1", { actor: "eve", reason: "enough" }]);
  expect(audits.at(-1)).toMatchObject({ event: "job-aborted", job: "job_1", reason: "enough" });
});

verifies("R25", "corrections are switched for the residency, and the switch is audited", async () => {
  expect((await run("GET", "/v1/corrections")).json).toEqual({ residency: "eu", on: false });
  expect((await run("PUT", "/v1/corrections", { on: true })).json).toEqual({ residency: "eu", on: true });
  expect(calls).toContainEqual(["setCorrections", true, { actor: "eve" }]);
  expect(audits).toEqual([
    expect.objectContaining({ event: "corrections-switched", isOn: true, actor: "eve" }),
  ]);
  expect(await refusalOf("PUT", "/v1/corrections", { on: "yes" })).toEqual(["invalid_request", "on"]);
});

verifies(
  "R23",
  "token keys are added, promoted and retired with an audit line each, and shown without their bytes",
  async () => {
    const shown = {
      id: "tk_1",
      state: "accepted",
      created_at: "1970-01-01T00:00:00.000Z",
      state_since: "1970-01-01T00:00:00.000Z",
      created_by: "eve",
      placements: 3,
    };
    expect(await run("POST", "/v1/token-keys")).toEqual({ status: 201, json: shown });
    expect((await run("POST", "/v1/token-keys/tk_1/promote")).json).toEqual({ ...shown, state: "sealing" });
    expect((await run("DELETE", "/v1/token-keys/tk_1", { reason: "old" })).json).toEqual({
      id: "tk_1",
      retired: true,
    });
    expect((await run("GET", "/v1/token-keys")).json).toEqual({ token_keys: [shown], next: null });
    expect(calls).toContainEqual(["retireTokenKey", "tk_1", { actor: "eve", reason: "old" }]);
    expect(audits.map(({ event }) => event)).toEqual([
      "token-key-added",
      "token-key-promoted",
      "token-key-retired",
    ]);
  },
);

test("who asks is a printable name of up to 128 characters, else the operator", () => {
  expect(readActor(undefined)).toBe("operator");
  expect(readActor("eve @ laptop")).toBe("eve @ laptop");
  expect(readActor("x".repeat(128))).toBe("x".repeat(128));
  for (const name of ["", " eve", "eve ", "a\tb", "é", "x".repeat(129)]) {
    expect(() => readActor(name)).toThrow("X-Moor-Actor");
  }
});
