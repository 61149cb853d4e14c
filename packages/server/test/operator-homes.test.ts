// The operator's view of homes, their tokens and boxes, the service's keys and the default shard, on a real directory.

import { ProtocolError, parseHomeId, type AppInstance, type HomeId } from "@moor/protocol";
import { createLogger } from "@moor/runtime";
import { createTempDir, verifies, VirtualRuntime, type TempDir } from "@moor/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { mintMoveId } from "../src/directory/operations/move-operations.ts";
import { openSqliteDirectory, type OpenDirectory } from "../src/directory/sqlite-directory.ts";
import { parseHomeToken } from "../src/directory/keys.ts";
import type { Mover } from "../src/moves/mover.ts";
import { OperatorApi } from "../src/operator/operator-api.ts";
import type { HomeStatus } from "../src/peer/link-ports.ts";
import type { EntryId } from "../src/peer/peer-link.ts";
import { registerShards } from "./directory-contract.ts";
import { idleParts } from "./support/operator-parts.ts";
import { writerWithoutThread } from "./support/writer-without-thread.ts";

const INSTANT = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
const BOX_KEY = Buffer.alloc(32, 7).toString("base64url");

let temp: TempDir;
let open: OpenDirectory;
let api: OperatorApi;
let runtime: VirtualRuntime;
let lines: string[];
/** What a home's owner says of its links. */
let status: HomeStatus | undefined;

beforeEach(async () => {
  temp = await createTempDir("operator-homes");
  runtime = new VirtualRuntime(3);
  lines = [];
  status = undefined;
  const logger = createLogger({ destination: { write: (line) => void lines.push(line) } });
  open = await openSqliteDirectory({ dir: temp.path, runtime, logger, startWorker: writerWithoutThread });
  await registerShards(open.directory, "s1", "s2");
  const mover: Mover = {
    move: async (request) => {
      const move = await open.directory.moveTenant({ moveId: mintMoveId(runtime), ...request });
      return { kind: "moved", isAcked: true, move };
    },
    moveBatch: async () => ({ kind: "unknown-outcome" }),
  };
  api = new OperatorApi({
    ...open,
    ...idleParts(),
    mover,
    homeStatus: async () => status,
    runtime,
    logger,
    metrics: { directoryMutations: { inc: () => {} } },
    publicUrl: () => "https://moor.example/",
  });
});
afterEach(async () => {
  await open.directory.close();
  await temp.remove();
});

/** Status and body of an answer, or the error's code, param and data. */
async function ask(
  method: string,
  path: string,
  body?: unknown,
): Promise<[unknown, Record<string, unknown>]> {
  const [bare = "", query = ""] = path.split("?");
  const text = body === undefined ? "" : JSON.stringify(body);
  const request = { method, path: bare, query: new URLSearchParams(query), body: Buffer.from(text) };
  try {
    const { status, json } = await api.run({ ...request, requestId: "req_1", actor: "eve" });
    return [status, json];
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return [error.code, { param: error.param, ...error.data }];
  }
}

/** Audit lines so far: event and the fields that say what. */
function audits(): Record<string, unknown>[] {
  return lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ actor }) => actor === "eve")
    .map(({ time: _time, level: _level, requestId: _id, actor: _actor, ...fields }) => fields);
}

const home = (id: string) => parseHomeId(id) as HomeId;

test("a home is created, shown, listed, relabelled and deleted, with an audit line each", async () => {
  const [status, created] = await ask("POST", "/v1/homes", { id: "anna", label: "Anna", unknown: 1 });
  const shown = {
    id: "anna",
    label: "Anna",
    shard: "s1",
    revision: expect.any(Number),
    box: { enrolled: false, key_id: null, shard: null, last_seen_at: null },
    tunnel: null,
    mcp_url: null,
    created_at: INSTANT,
  };
  expect([status, created]).toEqual([201, { ...shown, created_tunnel: null }]);
  const neverSeen = [{ kind: "box", shard: null, last_seen_at: null }];
  const detail = { ...shown, live: null, apps: [], move_blockers: neverSeen };
  expect(await ask("GET", "/v1/homes/anna")).toEqual([200, detail]);
  expect(await ask("GET", "/v1/homes?limit=1")).toEqual([200, { homes: [shown], next: null }]);
  const relabelled = { ...shown, label: "A" };
  expect(await ask("POST", "/v1/homes/anna", { label: "A" })).toEqual([200, relabelled]);
  expect(await ask("GET", "/v1/tenants/anna")).toMatchObject([200, { tenant: "anna", shard: "s1" }]);
  const gone = { id: "anna", deleted: true, tunnel: null };
  expect(await ask("DELETE", "/v1/homes/anna")).toEqual([200, gone]);
  expect(await ask("GET", "/v1/homes/anna")).toMatchObject(["home_not_found", {}]);
  expect(audits()).toMatchObject([
    { event: "home-created", home: "anna" },
    { event: "home-updated", home: "anna", fields: "label" },
    { event: "home-deleted", home: "anna" },
  ]);
});

test("what a home may not be is refused, naming the field", async () => {
  await ask("POST", "/v1/homes", { id: "anna" });
  for (const id of ["", "A", "tunnel_1", "a.b", "x".repeat(65)]) {
    expect(await ask("POST", "/v1/homes", { id })).toMatchObject(["invalid_request", { param: "id" }]);
  }
  expect(await ask("POST", "/v1/homes", { id: "anna" })).toMatchObject(["home_exists", {}]);
  expect(await ask("POST", "/v1/homes", { tunnel: "x" })).toMatchObject([
    "invalid_tunnel_id_format",
    { param: "tunnel" },
  ]);
  expect(await ask("GET", "/v1/homes/A")).toMatchObject(["invalid_request", { param: "id" }]);
  for (const path of ["/v1/homes/berta", "/v1/homes/berta/tokens"]) {
    expect(await ask("GET", path)).toMatchObject(["home_not_found", {}]);
  }
  expect(await ask("POST", "/v1/homes/berta/tokens", { kind: "app" })).toMatchObject(["home_not_found", {}]);
  expect(await ask("POST", "/v1/homes/berta/enrolment")).toMatchObject(["home_not_found", {}]);
  expect(await ask("POST", "/v1/homes/anna/tokens", { kind: "agent" })).toMatchObject([
    "invalid_request",
    { param: "kind" },
  ]);
});

verifies("L26", "a home made with a tunnel shows where it is called, and its keys once", async () => {
  const [, made] = await ask("POST", "/v1/homes", { id: "anna", tunnel: "new" });
  const tunnel = made["created_tunnel"] as Record<string, string>;
  expect(made).toMatchObject({ tunnel: tunnel["id"], mcp_url: "https://moor.example/v1/mcp/anna" });
  expect([tunnel["agent_key"], tunnel["connector_key"]]).toEqual([
    expect.stringMatching(/^moor_agent_/),
    expect.stringMatching(/^moor_connector_/),
  ]);
  const [, shown] = await ask("GET", "/v1/homes/anna");
  expect(JSON.stringify(shown)).not.toContain("moor_");
  expect(await ask("POST", "/v1/homes/anna", { tunnel: null })).toMatchObject([200, { mcp_url: null }]);
  expect(await ask("POST", "/v1/homes/anna", { tunnel: tunnel["id"] })).toMatchObject([200, { id: "anna" }]);
  expect(await ask("DELETE", "/v1/homes/anna")).toMatchObject([200, { tunnel: tunnel["id"] }]);
  expect(lines.join("")).not.toMatch(/moor_(agent|connector)_/);
});

verifies("L7", "a home's token is shown once, listed without its text, and revoked like a key", async () => {
  await ask("POST", "/v1/homes", { id: "anna" });
  const [status, made] = await ask("POST", "/v1/homes/anna/tokens", { kind: "app", label: "phone" });
  const { token, ...record } = made;
  expect([status, record]).toEqual([
    201,
    {
      id: expect.stringMatching(/^key_/),
      kind: "app",
      home: "anna",
      label: "phone",
      prefix: expect.stringMatching(/^moor_app_.{6}$/),
      created_at: INSTANT,
      revoked: false,
    },
  ]);
  const hash = parseHomeToken(String(token))?.hash as Uint8Array;
  expect(open.replica.keyByHash(hash)?.tenant).toBe("anna");
  expect(await ask("GET", "/v1/homes/anna/tokens")).toEqual([200, { tokens: [record], next: null }]);
  const asKey = { ...record, tunnel: null };
  expect(await ask("GET", `/v1/keys/${String(record["id"])}`)).toEqual([200, asKey]);
  expect(await ask("GET", "/v1/keys")).toEqual([200, { keys: [asKey], next: null }]);
  const revoked = await ask("DELETE", `/v1/keys/${String(record["id"])}`);
  expect(revoked).toEqual([200, { ...asKey, revoked: true }]);
  expect(open.replica.keyByHash(hash)).toBeUndefined();
  expect(audits().slice(1)).toMatchObject([
    { event: "home-token-created", kind: "app", home: "anna" },
    { event: "key-revoked", kind: "app", home: "anna" },
  ]);
  expect(lines.join("")).not.toContain(String(token).slice(-30));
});

verifies("L28", "an enrolment code is shown once with its end, and makes a box the home's", async () => {
  await ask("POST", "/v1/homes", { id: "anna" });
  const [status, made] = await ask("POST", "/v1/homes/anna/enrolment");
  expect([status, made]).toEqual([
    201,
    {
      home: "anna",
      code: expect.any(String),
      expires_at: new Date(runtime.wallMs() + 600_000).toISOString(),
    },
  ]);
  await open.directory.redeemEnrolment(String(made["code"]), BOX_KEY);
  const [, shown] = await ask("GET", "/v1/homes/anna");
  expect(shown["box"]).toMatchObject({ enrolled: true, key_id: expect.stringMatching(/^[\w-]{16}$/) });
  expect(JSON.stringify(shown)).not.toContain(BOX_KEY);
  for (const group of String(made["code"]).split("-")) expect(lines.join("")).not.toContain(group);
  expect(audits().at(-1)).toMatchObject({ event: "enrolment-created", home: "anna" });
});

verifies(
  "L22",
  "a home's blockers are shown, its move refused naming them, and made when it is forced",
  async () => {
    await ask("POST", "/v1/homes", { id: "anna" });
    await open.directory.recordHomeSightings([
      { home: home("anna"), app: null, hasShard: true },
      { home: home("anna"), app: "phone", hasShard: false },
      { home: home("anna"), app: "watch", hasShard: true },
    ]);
    const blockers = [{ kind: "app", app: "phone", shard: false, last_seen_at: INSTANT }];
    expect(await ask("GET", "/v1/homes/anna")).toMatchObject([
      200,
      {
        apps: [
          { app: "phone", shard: false, last_seen_at: INSTANT },
          { app: "watch", shard: true, last_seen_at: INSTANT },
        ],
        move_blockers: blockers,
      },
    ]);
    const order = { tenant: "anna", to: "s2", reason: "hot" };
    expect(await ask("POST", "/v1/moves", order)).toEqual([
      "move_blocked",
      { param: undefined, blockers, total: 1, breaks: expect.stringContaining("base host") },
    ]);
    expect(await ask("POST", "/v1/moves", { ...order, force: true })).toMatchObject([200, { to: "s2" }]);
    expect(audits().at(-1)).toMatchObject({
      event: "move-ordered",
      tenant: "anna",
      to: "s2",
      isForced: true,
    });
    expect(await ask("GET", "/v1/moves?tenant=anna")).toMatchObject([200, { moves: [{ tenant: "anna" }] }]);
    runtime.jumpWallClock(30 * 24 * 3_600_000 + 1);
    expect(await ask("GET", "/v1/homes/anna")).toMatchObject([200, { move_blockers: [] }]);
  },
);

test("a job says whether it is forced, and which homes it left", async () => {
  const job = { kind: "move", from: "s1", to: "s2", rate: 5 };
  const [, made] = await ask("POST", "/v1/jobs", { ...job, force: true });
  expect(made).toMatchObject({ forced: true, blocked: 0, blocked_tenants: [] });
  await open.directory.tryLead({ node: "n1", incarnation: "i1", ttlMs: 60_000 });
  await open.directory.updateJob({ id: String(made["id"]), blocked: { count: 2, tenants: ["a", "b"] } });
  expect(await ask("GET", `/v1/jobs/${String(made["id"])}`)).toMatchObject([
    200,
    { blocked: 2, blocked_tenants: ["a", "b"] },
  ]);
});

test("service keys are added, listed and retired by their public halves", async () => {
  const [, before] = await ask("GET", "/v1/service-keys");
  const first = (before["service_keys"] as Record<string, string>[])[0];
  expect(first).toEqual({
    id: open.replica.serviceKeys()?.active.id,
    public_key: open.replica.serviceKeys()?.active.publicKey,
    state: "active",
    created_at: INSTANT,
    state_since: INSTANT,
    created_by: "foundation",
  });
  const path = `/v1/service-keys/${first?.["id"]}`;
  expect(await ask("DELETE", path)).toMatchObject(["conflict", {}]);
  const [status, next] = await ask("POST", "/v1/service-keys", { reason: "yearly" });
  expect([status, next]).toMatchObject([201, { state: "next", created_by: "eve" }]);
  expect(await ask("DELETE", path)).toEqual([200, { id: first?.["id"], retired: true }]);
  expect(await ask("DELETE", path)).toMatchObject(["service_key_not_found", {}]);
  expect(await ask("GET", "/v1/service-keys")).toMatchObject([
    200,
    { service_keys: [{ id: next["id"], state: "active" }], next: null },
  ]);
  expect(audits()).toMatchObject([
    { event: "service-key-added", serviceKey: next["id"], reason: "yearly" },
    { event: "service-key-retired", serviceKey: first?.["id"] },
  ]);
});

test("the default shard is shown with the shards, and set for homes that come after", async () => {
  const defaults = async () => {
    const [, { shards }] = await ask("GET", "/v1/shards");
    return (shards as { id: string; default: boolean }[])
      .filter((shard) => shard.default)
      .map(({ id }) => id);
  };
  expect(await defaults()).toEqual(["s1"]);
  const set = await ask("POST", "/v1/shards/s2/default", { reason: "s1 is full" });
  expect(set).toEqual([200, { id: "s2", default: true }]);
  expect(await defaults()).toEqual(["s2"]);
  expect(await ask("POST", "/v1/homes", { id: "anna" })).toMatchObject([201, { shard: "s2" }]);
  expect(await ask("POST", "/v1/shards/s9/default")).toMatchObject(["shard_not_found", {}]);
  expect(await ask("POST", "/v1/shards/S/default")).toMatchObject(["invalid_request", { param: "id" }]);
  expect(audits()[0]).toMatchObject({ event: "default-shard-set", shard: "s2", reason: "s1 is full" });
});

verifies(
  "L23",
  "a home is shown with its links as its owner sees them, and whether two boxes share its identity",
  async () => {
    await ask("POST", "/v1/homes", { id: "anna" });
    const [node] = open.replica.nodes();
    if (node === undefined) throw new Error("no node");
    const entry = node.incarnation as EntryId;
    status = {
      presence: { box: "online", sinceMs: 7_000 },
      box: { entry, ageMs: 7_000, isFollowing: true, generation: 1_800_000_000_000_001 },
      apps: [{ entry: "gone" as EntryId, ageMs: 10, isFollowing: false, app: "phone" as AppInstance }],
      duplicateIdentity: { remainingMs: 60_000, heldOff: 3 },
      commandsOpen: 2,
    };
    const [, shown] = await ask("GET", "/v1/homes/anna");
    expect(shown["live"]).toEqual({
      presence: "online",
      since_ms: 7_000,
      box: { node: node.id, age_ms: 7_000, shard: true, generation: 1_800_000_000_000_001 },
      apps: [{ app: "phone", node: null, age_ms: 10, shard: false }],
      duplicate_identity: { remaining_ms: 60_000, held_off: 3 },
      commands_open: 2,
    });
    status = { ...status, box: undefined, apps: [], duplicateIdentity: undefined };
    expect((await ask("GET", "/v1/homes/anna"))[1]["live"]).toMatchObject({
      box: null,
      apps: [],
      duplicate_identity: null,
    });
  },
);
