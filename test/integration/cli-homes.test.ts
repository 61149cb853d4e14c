// `moor home …`, `moor service-key …`, `moor shard default` and the moves of homes against a real node; the commands run in
// this process but where it is said: each start of one costs more than all it does.

import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  createTempDir,
  openOperator,
  runMoor,
  startLedgerServer,
  startMoorAgent,
  startMoorDev,
  verifies,
  type MoorDev,
  type TempDir,
} from "@moor/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runInProcess } from "../../packages/cli/test/run-in-process.ts";

let dev: MoorDev;
let temp: TempDir;

beforeAll(async () => {
  [dev, temp] = await Promise.all([startMoorDev(), createTempDir("cli-homes")]);
});
afterAll(async () => {
  await dev.stop();
  await temp.remove();
});

const moor = (...args: string[]) => runInProcess([...args, "--data", dev.dataDir]);

async function json<Answer = Record<string, unknown>>(...args: string[]): Promise<Answer> {
  const run = await moor(...args, "--json");
  expect([args.join(" "), run.code]).toEqual([args.join(" "), 0]);
  return JSON.parse(run.stdout) as Answer;
}

test("as processes of their own, the commands answer on stdout and end with 0, or with 1 for a refusal", async () => {
  const run = (...args: string[]) => runMoor([...args, "--data", dev.dataDir]);
  const [made, refused] = await Promise.all([
    run("home", "create", "alone", "--json"),
    run("home", "enroll", "nobody"),
  ]);
  expect([made.code, JSON.parse(made.stdout)]).toMatchObject([0, { id: "alone", shard: "s1" }]);
  expect([refused.code, refused.stdout]).toEqual([1, ""]);
  expect(refused.stderr).toContain("refused (home_not_found)");
});

test("a home created by command is listed, shown, and gone when it is deleted", async () => {
  const created = await json("home", "create", "anna", "--label", "Anna's flat");
  expect(created).toMatchObject({ id: "anna", label: "Anna's flat", shard: "s1", tunnel: null });
  expect((await json<{ items: unknown[] }>("home", "list")).items).toContainEqual(created);
  expect(await json("home", "show", "anna")).toMatchObject({ ...created, apps: [] });
  expect(await json("where", "anna")).toMatchObject({ tenant: "anna", shard: "s1", state: "live" });
  const twice = await moor("home", "create", "anna");
  expect([twice.code, twice.stderr]).toEqual([1, expect.stringContaining("refused (home_exists)")]);
  expect(await json("home", "delete", "anna", "--dry-run")).toMatchObject({ deleted: false });
  expect(await json("home", "delete", "anna")).toMatchObject({ deleted: true, dryRun: false });
  const gone = await moor("home", "show", "anna");
  expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining("refused (home_not_found)")]);
});

verifies("L7", "a token goes to a file of the owner's only, and revoking it shows at once", async () => {
  await json("home", "create", "tokens");
  const file = join(temp.path, "phone.token");
  const made = await json("home", "token", "create", "tokens", "--kind", "app", "--out", file);
  expect(made).toMatchObject({ kind: "app", home: "tokens", token: null, tokenFile: file, revoked: false });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const token = readFileSync(file, "utf8").trim();
  expect(token).toMatch(/^tokens\.moor_app_[\w-]{43}_[\w-]{6}$/);
  const listed = await moor("home", "token", "list", "tokens", "--json");
  expect(JSON.parse(listed.stdout)).toMatchObject({
    items: [{ id: made["id"], revoked: false }],
    next: null,
  });
  expect(listed.stdout).not.toContain(token.slice(20));
  const id = String(made["id"]);
  expect(await json("home", "token", "revoke", id, "--dry-run")).toMatchObject({ revoked: false });
  expect(await json("home", "token", "revoke", id)).toMatchObject({ revoked: true });
  expect(await json("home", "token", "list", "tokens")).toMatchObject({ items: [{ revoked: true }] });
});

verifies("L26", "a home's own tunnel is called at the home's name", async () => {
  const created = await json("home", "create", "flat", "--tunnel", "new");
  const tunnel = { id: String(created["tunnel"]), agentKey: String(created["agentKey"]) };
  const url = `${dev.endpoint}/v1/mcp/flat`;
  expect(created["mcpUrl"]).toBe(url);
  const ledger = await startLedgerServer();
  const agent = await startMoorAgent({ endpoint: dev.endpoint, tunnel, mcp: ledger.url });
  const call = (to: string) =>
    fetch(to, {
      method: "POST",
      headers: {
        authorization: `Bearer ${String(created["connectorKey"])}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      body: '{"jsonrpc":"2.0","id":7,"method":"tools/list"}',
    });
  const answer = await call(url);
  expect([answer.status, await answer.json()]).toMatchObject([200, { id: 7 }]);
  expect((await call(`${dev.endpoint}/v1/mcp/nobody`)).status).toBe(404);
  await agent.stop();
  await ledger.close();
  const deleted = await moor("home", "delete", "flat");
  expect(deleted.stderr).toContain(`tunnel delete ${tunnel.id}`);
  expect((await call(url)).status).toBe(404);
});

verifies(
  "L22",
  "a home whose box was never seen moves only with --force; back to the default shard always",
  async () => {
    await json("home", "create", "mover");
    const dry = await moor("move", "mover", "--to", "s2", "--dry-run");
    expect([dry.code, dry.stdout]).toEqual([1, ""]);
    const refused = await moor("move", "mover", "--to", "s2");
    expect([refused.code, refused.stdout]).toEqual([1, ""]);
    for (const { stderr } of [dry, refused]) {
      expect(stderr).toContain("its box: never seen");
      expect(stderr).toContain("refused (move_blocked)");
    }
    expect((await json<{ shard: string }>("where", "mover")).shard).toBe("s1");
    const forced = await moor("move", "mover", "--to", "s2", "--force", "--reason", "test");
    expect([forced.code, forced.stdout]).toEqual([0, expect.stringContaining("moved mover from s1 to s2")]);
    expect(forced.stderr).toContain("These do not follow shards");
    expect(await json("move", "mover", "--to", "s1")).toMatchObject({ from: "s2", to: "s1" });
    const { items } = await json<{ items: { to: string }[] }>("moves", "--tenant", "mover");
    expect(items.map(({ to }) => to)).toEqual(["s1", "s2"]);
  },
);

verifies("L22", "a job moves the tunnels of a shard and says which homes stayed", async () => {
  await json("home", "create", "stays");
  const operator = await openOperator(dev.dataDir);
  await Promise.all(Array.from({ length: 8 }, () => operator.createTunnel()));
  const run = await moor("move", "--from", "s1", "--to", "s2", "--rate", "1000/s", "--json");
  expect(run.code).toBe(1);
  const job = JSON.parse(run.stdout) as { blocked: number; blockedTenants: string[]; state: string };
  expect(job).toMatchObject({ state: "done", forced: false });
  expect(job.blockedTenants).toContain("stays");
  expect(run.stderr).toMatch(/refused \(move_blocked\): \d+ of \d+ stay on s1/);
  const { items } = await json<{ items: { id: string; tunnels: number; homes: number }[] }>("shards");
  expect(items[0]).toMatchObject({ id: "s1", tunnels: 0, homes: job.blocked });
});

test("the default shard is set, shown, and holds homes that come after", async () => {
  const set = await moor("shard", "default", "s2");
  expect([set.code, set.stderr]).toEqual([0, expect.stringContaining("To undo: moor shard default s1")]);
  expect((await moor("shards")).stdout).toMatch(/^s2 +live, default /m);
  expect(await json("home", "create", "later")).toMatchObject({ shard: "s2" });
  expect((await moor("shard", "default", "s1")).code).toBe(0);
});

test("service keys rotate by command", async () => {
  type Keys = { items: { id: string; state: string; publicKey: string }[] };
  const [first] = (await json<Keys>("service-key", "list")).items;
  expect(first?.publicKey).toMatch(/^[\w-]{43}$/);
  const refused = await moor("service-key", "retire", first?.id ?? "");
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("service-key add")]);
  const next = await json("service-key", "add");
  expect(await json("service-key", "retire", first?.id ?? "")).toMatchObject({ signs: next["id"] });
  expect((await json<Keys>("service-key", "list")).items).toMatchObject([
    { id: next["id"], state: "active" },
  ]);
});

verifies(
  "L28",
  "an enrolment code is printed with its end, works once at the service, and no log line has it",
  async () => {
    await json("home", "create", "boxed");
    const { code, expiresAt, home } = await json("home", "enroll", "boxed");
    expect([home, code]).toEqual(["boxed", expect.stringMatching(/^[0-9A-Z]{4}-[0-9A-Z]{8}-[0-9A-Z]{8}$/)]);
    const minutes = (new Date(String(expiresAt)).getTime() - Date.now()) / 60_000;
    expect(minutes).toBeGreaterThan(9);
    expect(minutes).toBeLessThan(11);
    const publicKey = Buffer.alloc(32, 9).toString("base64url");
    const redeem = () =>
      fetch(`${dev.endpoint}/v1/enroll`, { method: "POST", body: JSON.stringify({ code, publicKey }) });
    const enrolled = await redeem();
    expect([enrolled.status, await enrolled.json()]).toMatchObject([200, { home: "boxed" }]);
    expect((await redeem()).status).toBe(401);
    expect(await json("home", "show", "boxed")).toMatchObject({ box: { enrolled: true, shard: null } });
    const logs = dev.process.stderr.text();
    expect(logs).toContain("enrolment-created");
    for (const group of String(code).split("-").slice(1)) expect(logs).not.toContain(group);
  },
);
