// The commands of homes, tokens, service keys and the default shard against an operator listener that answers as told.

import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { createTempDir, verifies } from "@moor/testkit";
import { expect, onTestFinished, test } from "vitest";
import { refusal, startFakeOperator, type Asked, type OperatorReply } from "./fake-operator.ts";
import { runInProcess, type ProgramRun } from "./run-in-process.ts";

const AT = "2026-01-01T00:00:00.000Z";
const TUNNEL_ID = `tunnel_${"a".repeat(32)}`;
const HOME = {
  id: "anna",
  label: "Anna",
  shard: "s1",
  revision: 7,
  box: { enrolled: true, key_id: "0123456789abcdef", shard: true, last_seen_at: AT },
  tunnel: null,
  mcp_url: null,
  created_at: AT,
};
const BLOCKERS = [
  { kind: "box", shard: null, last_seen_at: null },
  { kind: "app", app: "phone", shard: false, last_seen_at: AT },
];
const TUNNEL = {
  id: TUNNEL_ID,
  name: "home anna",
  description: "",
  access: "key",
  deadline: "55s",
  created_at: AT,
  seen: false,
  shard: "s1",
  connector_url: `http://moor.example/v1/mcp/${TUNNEL_ID}`,
  agent_key: "moor_agent_planted",
  connector_key: "moor_connector_planted",
};
const TOKEN = {
  id: `key_${"b".repeat(24)}`,
  kind: "app",
  home: "anna",
  label: "phone",
  prefix: "moor_app_abcdef",
  created_at: AT,
  revoked: false,
};
const shardOf = (id: string, fields: object = {}) => ({
  id,
  state: "live",
  node: "n1",
  public_host: `${id}.moor.example`,
  tunnels: 0,
  homes: 0,
  lease_age_ms: 1,
  late: false,
  default: false,
  ...fields,
});
const SHARDS = [shardOf("s1", { default: true, homes: 3 }), shardOf("s2"), shardOf("s3", { state: "down" })];

/** Runs a command against a listener; gives the run and what was asked. */
async function runAgainst(
  answer: (asked: Asked) => OperatorReply,
  ...args: string[]
): Promise<ProgramRun & { readonly asked: readonly Asked[] }> {
  const operator = await startFakeOperator(answer);
  return { ...(await runInProcess([...args, ...operator.args])), asked: operator.asked };
}

const jsonOf = (run: ProgramRun): unknown => JSON.parse(run.stdout);
const columns = (text: string) => text.split("\n").map((line) => line.split(/ {2,}/));

test("a home is created by its name, its fields given, and what to do next is said", async () => {
  const answer = (): OperatorReply => [201, { ...HOME, created_tunnel: null }];
  const run = await runAgainst(answer, "home", "create", "anna", "--label", "Anna");
  expect(run.asked).toEqual([
    { method: "POST", path: "/v1/homes", body: { id: "anna", label: "Anna" }, actor: "eve" },
  ]);
  expect([run.code, columns(run.stdout)[0]]).toEqual([0, ["home", "anna"]]);
  expect(run.stderr).toContain("home enroll anna");
  const nameless = await runAgainst(answer, "home", "create", "--json");
  expect(nameless.asked[0]?.body).toEqual({});
  expect(jsonOf(nameless)).toEqual({
    id: "anna",
    label: "Anna",
    shard: "s1",
    revision: 7,
    box: { enrolled: true, keyId: "0123456789abcdef", shard: true, lastSeenAt: AT },
    tunnel: null,
    mcpUrl: null,
    createdAt: AT,
  });
});

test("a home's new tunnel shows its keys once, or keeps the agent's in a file", async () => {
  const temp = await createTempDir("home-key");
  onTestFinished(() => temp.remove());
  const made = { ...HOME, tunnel: TUNNEL_ID, mcp_url: "http://moor.example/v1/mcp/anna" };
  const answer = (): OperatorReply => [201, { ...made, created_tunnel: TUNNEL }];
  const shown = await runAgainst(answer, "home", "create", "anna", "--tunnel", "new");
  expect(shown.asked[0]?.body).toEqual({ id: "anna", tunnel: "new" });
  expect(shown.stdout).toMatch(/^agent key +moor_agent_planted$/m);
  expect(shown.stdout).toMatch(/^connector URL +http:\/\/moor.example\/v1\/mcp\/anna$/m);
  expect(shown.stderr).not.toContain("planted");
  const file = join(temp.path, "agent.key");
  const args = ["home", "create", "anna", "--tunnel", "new", "--agent-key-out", file, "--json"];
  const kept = await runAgainst(answer, ...args);
  expect(jsonOf(kept)).toMatchObject({ agentKey: null, agentKeyFile: file });
  expect(kept.stdout).not.toContain("moor_agent_");
  expect([readFileSync(file, "utf8"), statSync(file).mode & 0o777]).toEqual(["moor_agent_planted\n", 0o600]);
});

test.each([
  ["home", "create", "Anna"],
  ["home", "create", "tunnel_1"],
  ["home", "create", "anna", "--tunnel", "x"],
  ["home", "show", "a.b"],
  ["home", "token", "create", "anna"],
  ["home", "token", "create", "anna", "--kind", "box"],
  ["home", "token", "revoke", "anna.moor_app_x"],
  ["service-key", "retire", "-bcdefghijklmnop"],
  ["shard", "default", "S 1"],
  ["move", "anna.b", "--to", "s2"],
])("%j is a mistake in the command line: exit code 2, nothing asked, nothing repeated", async (...args) => {
  const run = await runAgainst(() => [200, {}], ...args);
  expect([run.code, run.stdout, run.asked]).toEqual([2, "", []]);
  expect(run.stderr).not.toContain("moor_app_x");
});

test("homes are a table for people and items for programs", async () => {
  const bare = {
    ...HOME,
    id: "berta",
    box: { enrolled: false, key_id: null, shard: null, last_seen_at: null },
  };
  const answer = (): OperatorReply => [200, { homes: [HOME, bare], next: "c2" }];
  const table = await runAgainst(answer, "home", "list", "--limit", "2");
  expect(columns(table.stdout).slice(0, 3)).toEqual([
    ["HOME", "LABEL", "SHARD", "BOX", "FOLLOWS SHARDS", "TUNNEL"],
    ["anna", "Anna", "s1", "enrolled", "yes", "none"],
    ["berta", "Anna", "s1", "none", "unknown", "none"],
  ]);
  expect(table.stderr).toBe("More: --after c2\n");
  const json = await runAgainst(answer, "home", "list", "--limit", "2", "--json");
  expect(jsonOf(json)).toMatchObject({ items: [{ id: "anna" }, { id: "berta" }], next: "c2" });
});

const LIVE = {
  presence: "online",
  since_ms: 7_400,
  box: { node: "a", age_ms: 7_400, shard: true, generation: 1_800_000_000_000_001 },
  apps: [{ app: "phone", node: null, age_ms: 10, shard: false }],
  duplicate_identity: { remaining_ms: 61_000, held_off: 3 },
  commands_open: 2,
};

test("a home is shown with its links, its apps and who keeps it where it is", async () => {
  const apps = [{ app: "phone", shard: false, last_seen_at: AT }];
  const answer = (): OperatorReply => [200, { ...HOME, live: LIVE, apps, move_blockers: BLOCKERS }];
  const run = await runAgainst(answer, "home", "show", "anna");
  expect(run.stdout).toMatch(
    /^box +enrolled \(key 0123456789abcdef\), follows shards, last seen about 2026/m,
  );
  expect(run.stdout).toMatch(/^phone +no +2026/m);
  expect(run.stdout).toMatch(/^now +box online for 7 s at node a, generation 1800000000000001$/m);
  expect(run.stdout).toMatch(/^ +apps linked: 1, commands open: 2$/m);
  expect(run.stderr).toContain("stays for 2 min more, 3 times another was held off");
  expect(run.stderr).toContain(
    "its box: never seen\n  app phone: does not follow shards, last seen about 2026",
  );
  const away = (): OperatorReply => [200, { ...HOME, live: null, apps, move_blockers: [] }];
  expect((await runAgainst(away, "home", "show", "anna")).stdout).toMatch(
    /^now +its shard is out of reach$/m,
  );
  expect(jsonOf(await runAgainst(away, "home", "show", "anna", "--json"))).toMatchObject({ live: null });
  expect(jsonOf(await runAgainst(answer, "home", "show", "anna", "--json"))).toMatchObject({
    live: {
      presence: "online",
      sinceMs: 7_400,
      box: { node: "a", ageMs: 7_400, shard: true, generation: 1_800_000_000_000_001 },
      apps: [{ app: "phone", node: null, ageMs: 10, shard: false }],
      duplicateIdentity: { remainingMs: 61_000, heldOff: 3 },
      commandsOpen: 2,
    },
    apps: [{ app: "phone", shard: false, lastSeenAt: AT }],
    moveBlockers: [
      { kind: "box", shard: null, lastSeenAt: null },
      { kind: "app", app: "phone", shard: false, lastSeenAt: AT },
    ],
  });
});

test("deleting a home tells what goes and what stays, a dry run first", async () => {
  const answer = ({ method, path }: Asked): OperatorReply => {
    if (path.startsWith("/v1/homes/anna/tokens")) return [200, { tokens: [TOKEN], next: null }];
    if (method === "DELETE") return [200, { id: "anna", deleted: true, tunnel: TUNNEL_ID }];
    return [200, { ...HOME, live: null, tunnel: TUNNEL_ID, apps: [], move_blockers: [] }];
  };
  const dry = await runAgainst(answer, "home", "delete", "anna", "--dry-run");
  expect(dry.asked.map(({ method }) => method)).toEqual(["GET", "GET"]);
  expect(dry.stdout).toBe(`would delete home anna and its tokens: ${TOKEN.id}\n`);
  expect(dry.stderr).toContain("Nothing was changed.");
  const gone = await runAgainst(answer, "home", "delete", "anna", "--json");
  expect(jsonOf(gone)).toEqual({
    id: "anna",
    deleted: true,
    dryRun: false,
    tokens: [TOKEN.id],
    tunnel: TUNNEL_ID,
  });
});

verifies("L28", "an enrolment code is printed once, with its end", async () => {
  const answer = (): OperatorReply => [201, { home: "anna", code: "0123-456789AB-CDEFGHJK", expires_at: AT }];
  const run = await runAgainst(answer, "home", "enroll", "anna");
  expect(run.asked[0]).toMatchObject({ method: "POST", path: "/v1/homes/anna/enrolment" });
  expect(columns(run.stdout)).toEqual([
    ["home", "anna"],
    ["code", "0123-456789AB-CDEFGHJK"],
    ["good until", AT],
    [""],
  ]);
  expect(run.stderr).not.toContain("0123-");
  const json = await runAgainst(answer, "home", "enroll", "anna", "--json");
  expect(jsonOf(json)).toEqual({ home: "anna", code: "0123-456789AB-CDEFGHJK", expiresAt: AT });
});

verifies("L7", "tokens are created, listed without their text, and revoked, a dry run first", async () => {
  const asKey = { ...TOKEN, tunnel: null };
  const answer = ({ method, path }: Asked): OperatorReply => {
    if (method === "POST") return [201, { ...TOKEN, token: "anna.moor_app_planted" }];
    if (method === "DELETE") return [200, { ...asKey, revoked: true }];
    return path.startsWith("/v1/keys/") ? [200, asKey] : [200, { tokens: [TOKEN], next: null }];
  };
  const create = ["home", "token", "create", "anna", "--kind", "app", "--label", "phone"];
  const made = await runAgainst(answer, ...create);
  expect(made.asked[0]).toMatchObject({
    path: "/v1/homes/anna/tokens",
    body: { kind: "app", label: "phone" },
  });
  expect(made.stdout).toMatch(/^token +anna.moor_app_planted$/m);
  const list = await runAgainst(answer, "home", "token", "list", "anna", "--json");
  expect(jsonOf(list)).toMatchObject({
    items: [{ id: TOKEN.id, kind: "app", home: "anna", revoked: false }],
  });
  const dry = await runAgainst(answer, "home", "token", "revoke", TOKEN.id, "--dry-run", "--json");
  expect([dry.asked[0]?.method, jsonOf(dry)]).toMatchObject(["GET", { revoked: false, dryRun: true }]);
  const revoked = await runAgainst(answer, "home", "token", "revoke", TOKEN.id);
  expect(revoked.stdout).toBe(`revoked ${TOKEN.id} (app token of anna)\n`);
  const keys = await runAgainst(() => [200, { keys: [asKey], next: null }], "key", "list");
  expect(columns(keys.stdout)[1]).toEqual([TOKEN.id, "app", "anna", "moor_app_abcdef…", "phone", "valid"]);
});

const keyOf = (id: string, state: string) => ({
  id,
  public_key: `raw-${id}`,
  state,
  created_at: AT,
  state_since: AT,
  created_by: "eve",
});

test("a service key's rotation names the next step, and a retired one what signs from now on", async () => {
  const [active, next] = [keyOf("aaaaaaaaaaaaaaaa", "active"), keyOf("bbbbbbbbbbbbbbbb", "next")];
  const answer = ({ method }: Asked): OperatorReply => {
    if (method === "POST") return [201, next];
    if (method === "DELETE") return [200, { id: active.id, retired: true }];
    return [200, { service_keys: [active, next], next: null }];
  };
  const add = await runAgainst(answer, "service-key", "add", "--reason", "yearly");
  expect(add.asked[0]?.body).toEqual({ reason: "yearly" });
  expect(add.stdout).toBe(`added ${next.id}: announced, does not sign yet\npublic key raw-${next.id}\n`);
  expect(add.stderr).toContain(`Next: moor service-key retire ${active.id}`);
  const dry = await runAgainst(answer, "service-key", "retire", active.id, "--dry-run");
  expect([dry.asked.length, dry.stdout]).toEqual([1, `would retire ${active.id}; ${next.id} signs\n`]);
  const retire = await runAgainst(answer, "service-key", "retire", active.id, "--json");
  expect(jsonOf(retire)).toEqual({ id: active.id, retired: true, dryRun: false, signs: next.id });
  const list = await runAgainst(answer, "service-key", "list");
  expect(columns(list.stdout)[1]).toEqual([active.id, "active", AT, "eve", `raw-${active.id}`]);
  const alone = (): OperatorReply => [200, { service_keys: [active], next: null }];
  const refused = await runAgainst(alone, "service-key", "retire", active.id);
  expect([refused.code, refused.asked.length]).toEqual([1, 1]);
});

test("the default shard is set with how to undo it, and a dry run is refused as the order would be", async () => {
  const answer = ({ method }: Asked): OperatorReply =>
    method === "POST" ? [200, { id: "s2", default: true }] : [200, { shards: SHARDS, next: null }];
  const set = await runAgainst(answer, "shard", "default", "s2", "--reason", "full");
  expect(set.asked.at(-1)).toMatchObject({ path: "/v1/shards/s2/default", body: { reason: "full" } });
  expect([set.code, set.stdout]).toEqual([0, "placing new homes on s2, where the base host leads\n"]);
  expect(set.stderr).toContain("3 homes stay on s1");
  expect(set.stderr).toContain("To undo: moor shard default s1");
  const dry = await runAgainst(answer, "shard", "default", "s2", "--dry-run", "--json");
  expect([dry.asked.length, jsonOf(dry)]).toEqual([1, { shard: "s2", before: "s1", dryRun: true }]);
  for (const to of ["s3", "s9"]) {
    expect((await runAgainst(answer, "shard", "default", to, "--dry-run")).code).toBe(1);
  }
});

const MOVE = {
  id: `move_${"c".repeat(32)}`,
  tenant: "anna",
  from: "s1",
  to: "s2",
  revision: 8,
  at: AT,
  actor: "eve",
  reason: "",
  job: null,
  acked: true,
};
const WHERE = {
  tenant: "anna",
  shard: "s1",
  state: "live",
  node: "n1",
  public_host: "h",
  revision: 7,
  view: "current",
};

const moving =
  (reply: OperatorReply, blockers: readonly unknown[] = BLOCKERS) =>
  ({ method, path }: Asked): OperatorReply => {
    if (method === "POST") return reply;
    if (path.startsWith("/v1/shards")) return [200, { shards: SHARDS, next: null }];
    return path.startsWith("/v1/homes")
      ? [200, { ...HOME, live: null, apps: [], move_blockers: blockers }]
      : [200, WHERE];
  };

verifies("L22", "a home's refused move names who blocks it and what --force breaks", async () => {
  const data = { blockers: BLOCKERS, total: 30, breaks: "…" };
  const refused = moving(refusal(409, "move_blocked", "home anna stays", data));
  const run = await runAgainst(refused, "move", "anna", "--to", "s2");
  expect([run.code, run.stdout]).toEqual([1, ""]);
  expect(run.asked.at(-1)?.body).toEqual({ tenant: "anna", to: "s2" });
  expect(run.stderr).toContain("its box: never seen\n  app phone: does not follow shards");
  expect(run.stderr).toContain("and 28 more");
  expect(run.stderr).toMatch(/--force moves it all the same\. They stay at the base host/);
  expect(run.stderr).toContain("moor: refused (move_blocked): home anna stays\n");
  const dry = await runAgainst(refused, "move", "anna", "--to", "s2", "--dry-run");
  expect([dry.code, dry.stdout]).toEqual([1, ""]);
  expect(dry.stderr).toContain("app phone: does not follow shards");
  expect(dry.asked.every(({ method }) => method === "GET")).toBe(true);
});

verifies("L22", "a forced move is made and says for whom it breaks what", async () => {
  const run = await runAgainst(moving([200, MOVE]), "move", "anna", "--to", "s2", "--force");
  expect(run.asked.at(-1)?.body).toEqual({ tenant: "anna", to: "s2", force: true });
  expect(run.stdout).toBe("moved anna from s1 to s2 at revision 8\n");
  expect(run.stderr).toMatch(/These do not follow shards:\n {2}its box: never seen\n/);
  const free = await runAgainst(moving([200, MOVE], []), "move", "anna", "--to", "s2", "--force");
  expect(free.stderr).toBe("To undo: moor move anna --to s1\n");
  const home = await runAgainst(moving([200, MOVE]), "move", "anna", "--to", "s1", "--dry-run");
  expect(home.asked.some(({ path }) => path.startsWith("/v1/homes"))).toBe(false);
});

verifies("L22", "a job that left homes behind ends with 1 and names them", async () => {
  const job = {
    id: `job_${"d".repeat(24)}`,
    kind: "move",
    from: "s1",
    to: "s2",
    spread: false,
    rate: 50,
    state: "done",
    forced: false,
    moved: 8,
    blocked: 2,
    blocked_tenants: ["anna"],
    total: 10,
    actor: "eve",
    reason: "",
    created_at: AT,
    error: null,
  };
  const args = ["move", "--from", "s1", "--to", "s2", "--rate", "50"];
  const run = await runAgainst(() => [201, job], ...args);
  expect([run.code, run.stdout]).toEqual([1, `moved 8 from s1: ${job.id} is done\n`]);
  expect(run.stderr).toContain("refused (move_blocked): 2 of 10 stay on s1");
  expect(run.stderr).toContain(": anna and 1 more.");
  const forced = await runAgainst(() => [201, { ...job, moved: 10, blocked: 0 }], ...args, "--force");
  expect([forced.code, forced.asked[0]?.body]).toMatchObject([0, { force: true }]);
  const again = await runAgainst(
    ({ method }) => [200, method === "POST" ? job : { ...job, state: "failed", forced: true }],
    "move",
    "--resume",
    job.id,
  );
  expect(again.asked[1]?.body).toMatchObject({ force: true });
});
