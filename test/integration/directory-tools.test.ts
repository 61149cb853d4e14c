// The operator's tools on the directory: migrate, check, export, import, fence, as the command line offers them.

import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { TunnelId } from "@moor/protocol";
import { createNodeRuntime, createSilentLogger, Secret } from "@moor/runtime";
import { createTempDir, verifies, type TempDir } from "@moor/testkit";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { runInProcess } from "../../packages/cli/test/run-in-process.ts";
import type { HomeRecord, Placement } from "../../packages/server/src/directory/directory.ts";
import { parseHomeToken, parseKey } from "../../packages/server/src/directory/keys.ts";
import { applyMigrations, MIGRATIONS } from "../../packages/server/src/directory/migrations.ts";
import { readNodeSecret } from "../../packages/server/src/directory/node-secret.ts";
import { openPostgresDirectory } from "../../packages/server/src/directory/postgres-directory.ts";
import { openSqliteDirectory } from "../../packages/server/src/directory/sqlite-directory.ts";
import { verifyExport } from "../../packages/server/src/directory/tools/directory-tools.ts";
import { expectCode, registerShards } from "../../packages/server/test/directory-contract.ts";
import { createMigrated, describePostgres, runSql } from "./postgres-kit.ts";

const runtime = createNodeRuntime();
const logger = createSilentLogger();
let temp: TempDir;

beforeEach(async () => {
  temp = await createTempDir("tools");
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await temp.remove();
});

const file = (name: string) => join(temp.path, name);
/** Runs `moor directory …` on a data folder, or on what the environment names. */
const directory = (args: readonly string[], databaseUrl = "") => {
  vi.stubEnv("MOOR_DATABASE_URL", databaseUrl);
  return runInProcess(["directory", ...args]);
};

/** An embedded directory with some tunnels; gives what has to survive. */
async function fillEmbedded(dir: string) {
  const { directory: filled, replica } = await openSqliteDirectory({ dir, runtime, logger, residency: "eu" });
  await registerShards(filled, "s1", "s2");
  const made = await Promise.all(
    Array.from({ length: 5 }, (_, at) => filled.createTunnel({ name: `tunnel ${at}` })),
  );
  const { home } = await filled.createHome({ label: "Anna", tunnel: made[0]?.tunnel.id as TunnelId });
  await filled.recordHomeSightings([
    { home: home.id, app: null, hasShard: true },
    { home: home.id, app: "phone", hasShard: false },
  ]);
  const { token } = await filled.createHomeToken({ home: home.id, kind: "app" });
  const { code } = await filled.createEnrolment(home.id);
  const sealing = replica.sealingKeys();
  const homes = { home: replica.home(home.id), apps: replica.homeApps(home.id), token, code };
  const serviceKeys = await filled.listServiceKeys();
  const { seq } = replica;
  await filled.close();
  return { made, sealing, seq, ...homes, serviceKeys };
}

const highestOf = (placements: readonly (Placement | undefined)[]) =>
  Math.max(...placements.map((placement) => placement?.revision ?? 0));

describe("on an embedded directory", () => {
  test("check counts its rows and finds nothing wrong, or says what is", async () => {
    await fillEmbedded(file("data"));
    const fine = await directory(["check", "--data", file("data"), "--json"]);
    expect(fine.code).toBe(0);
    expect(JSON.parse(fine.stdout)).toMatchObject({
      counts: { tunnels: 5, homes: 1, home_apps: 1, enrolments: 1, keys: 11, shards: 2, service_keys: 1 },
      problems: [],
    });
    const { DatabaseSync } = await import("node:sqlite");
    const db = new DatabaseSync(join(file("data"), "moor.sqlite"));
    db.exec("delete from tunnels where name = 'tunnel 1'");
    db.exec("update homes set id = 'moved', tunnel = 'tunnel_gone'");
    db.exec("update residency set default_shard = 's9'");
    db.exec("update service_keys set state = 'next'");
    db.exec("update placements set revision = 9007199254740991 where tenant = (select min(id) from tunnels)");
    db.close();
    const wrong = await directory(["check", "--data", file("data")]);
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toMatch(/is placed, and there is no such tunnel/);
    expect(wrong.stderr).toMatch(/belongs to no tunnel/);
    expect(wrong.stderr).toMatch(/home moved is placed nowhere/);
    expect(wrong.stderr).toMatch(/home_[0-9a-f]{16} is placed, and there is no such home/);
    expect(wrong.stderr).toMatch(/home moved has a tunnel that is gone/);
    expect(wrong.stderr).toMatch(/app home_[0-9a-f]{16}\/phone was seen at no home/);
    expect(wrong.stderr).toMatch(/enrolment code [0-9A-Z]{4} belongs to no home/);
    expect(wrong.stderr).toMatch(/token key_[0-9a-f]{24} belongs to no home/);
    expect(wrong.stderr).toMatch(/the default shard s9 is not known/);
    expect(wrong.stderr).toMatch(/0 service keys sign; one has to/);
    expect(wrong.stderr).toMatch(/a revision that was never given out/);
  });

  test("a folder without a directory, or one in use, is refused and left alone", async () => {
    const none = await directory(["check", "--data", file("nothing")]);
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining("holds no directory")]);
    const open = await openSqliteDirectory({ dir: file("data"), runtime, logger });
    const used = await directory(["fence", "--data", file("data")]);
    expect([used.code, used.stderr]).toEqual([2, expect.stringContaining("another moor process is using")]);
    await open.directory.close();
  });

  verifies("R22", "a restored file is noticed, served and not changed, until it is fenced", async () => {
    const dir = file("data");
    await fillEmbedded(dir);
    copyFileSync(join(dir, "moor.sqlite"), file("backup"));
    const before = await openSqliteDirectory({ dir, runtime, logger });
    const { tunnel } = await before.directory.createTunnel({ name: "after the backup" });
    await before.directory.close();
    copyFileSync(file("backup"), join(dir, "moor.sqlite"));

    const restored = await openSqliteDirectory({ dir, runtime, logger });
    expect(restored.replica.health).toMatchObject({
      kind: "regressed",
      detail: expect.stringContaining("fence"),
    });
    expect((await restored.directory.listTunnels({ limit: 10 })).items).toHaveLength(5);
    await expectCode(restored.directory.createTunnel({}), "directory_regressed");
    await restored.directory.close();

    const dry = await directory(["fence", "--data", dir, "--dry-run", "--json"]);
    expect(JSON.parse(dry.stdout)).toEqual({ above: tunnel.placement.revision, dryRun: true });
    const fenced = await directory(["fence", "--data", dir, "--json"]);
    expect(fenced.code).toBe(0);
    expect(JSON.parse(fenced.stdout)).toMatchObject({ restamped: 6 });

    const trusted = await openSqliteDirectory({ dir, runtime, logger });
    expect(trusted.replica.health.kind).toBe("current");
    const { items } = await trusted.directory.listTunnels({ limit: 10 });
    for (const { placement } of items) expect(placement.revision).toBeGreaterThan(tunnel.placement.revision);
    await registerShards(trusted.directory, "s1", "s2");
    await trusted.directory.createTunnel({});
    await trusted.directory.close();
  });

  test("a migration is told before it is made; until then no other command changes the schema", async () => {
    const { DatabaseSync } = await import("node:sqlite");
    const version = (): unknown => {
      const db = new DatabaseSync(join(file("data"), "moor.sqlite"), { readOnly: true });
      const row = db.prepare("select max(version) as version from migrations").get();
      db.close();
      return row?.["version"];
    };
    const missing = await directory(["migrate", "--data", file("data"), "--dry-run"]);
    expect(missing.stdout).toMatch(/would migrate the schema from version 0 to \d+/);
    expect(existsSync(file("data"))).toBe(false);
    mkdirSync(file("data"));
    const old = new DatabaseSync(join(file("data"), "moor.sqlite"));
    applyMigrations(old, 1, MIGRATIONS.slice(0, 1));
    old.close();
    const dry = await directory(["migrate", "--data", file("data"), "--dry-run", "--json"]);
    const to = MIGRATIONS.length;
    expect(JSON.parse(dry.stdout)).toEqual({ from: 1, to, dryRun: true });
    const early = await directory(["check", "--data", file("data")]);
    expect([early.code, early.stderr]).toEqual([2, expect.stringContaining("run moor directory migrate")]);
    expect(version()).toBe(1);
    const done = await directory(["migrate", "--data", file("data"), "--json"]);
    expect(JSON.parse(done.stdout)).toEqual({ from: 1, to, dryRun: false });
    expect(version()).toBe(to);
  });

  test("an export is the owner's only, holds no key, and is never written over", async () => {
    const { made, sealing, token, code } = await fillEmbedded(file("data"));
    const saved = await directory(["export", file("saved"), "--data", file("data"), "--json"]);
    expect(saved.code).toBe(0);
    const { rows } = JSON.parse(saved.stdout) as { readonly rows: number };
    const text = readFileSync(file("saved"), "utf8");
    expect(text.trimEnd().split("\n")).toHaveLength(rows + 2);
    expect(statSync(file("saved")).mode & 0o777).toBe(0o600);
    for (const { agentKey } of made) expect(text).not.toContain(agentKey.reveal().slice(20, 50));
    const secret = Buffer.from(sealing[0]?.secret ?? []).toString("base64url");
    expect(text).not.toContain(secret.slice(0, 20));
    expect(text).not.toContain(token.reveal().slice(-50, -10));
    for (const group of code.reveal().split("-").slice(1)) expect(text).not.toContain(group);
    expect(text).not.toContain("enrolments");
    expect(text).not.toMatch(/"table":"service_keys","row":{[^}]*"secret":"(?!v1\.)/);
    const again = await directory(["export", file("saved"), "--data", file("data")]);
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("EEXIST")]);
  });

  test("an export that was cut short or changed is refused, and nothing is made of it", async () => {
    await fillEmbedded(file("data"));
    await directory(["export", file("saved"), "--data", file("data")]);
    const lines = readFileSync(file("saved"), "utf8").trimEnd().split("\n");
    const damaged = {
      short: lines.slice(0, -1),
      changed: lines.map((line) => line.replace("tunnel 3", "tunnel 4")),
      missing: lines.toSpliced(3, 1),
      other: ["{}", ...lines],
      text: ["not JSON"],
    };
    for (const [name, wrong] of Object.entries(damaged)) {
      const verifying = verifyExport(Readable.from(wrong));
      await expect(verifying, name).rejects.toMatchObject({ name: "ConfigError", option: "FILE" });
    }
    writeFileSync(file("short"), damaged.short.join("\n"));
    const refused = await directory(["import", file("short"), "--data", file("into")]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("cut short or changed")]);
    expect(existsSync(file("into"))).toBe(false);
    const dry = await directory(["import", file("saved"), "--data", file("into"), "--dry-run"]);
    expect(dry.stdout).toMatch(/would import \d+ rows of residency eu/);
  });
});

describePostgres("on PostgreSQL", (server) => {
  test("migrate makes the schema, says what it did, and does it once", async () => {
    const url = await server().createDatabase("to_migrate");
    const dry = await directory(["migrate", "--dry-run"], url);
    expect(dry.stdout).toMatch(/would migrate the schema from version 0 to \d+/);
    const unmade = await directory(["check"], url);
    expect([unmade.code, unmade.stderr]).toEqual([2, expect.stringContaining("run moor directory migrate")]);
    const done = await directory(["migrate", "--json"], url);
    expect([done.code, JSON.parse(done.stdout)]).toEqual([
      0,
      { from: 0, to: MIGRATIONS.length, dryRun: false },
    ]);
    const again = await directory(["migrate"], url);
    expect(again.stdout).toMatch(/as this moor needs it/);
    const outputs = [dry, unmade, done, again].map((run) => run.stdout + run.stderr).join("");
    expect(outputs).not.toContain("planted-database-password");
  });

  test("a database that cannot be reached is exit code 3, a wrong URL 2, and neither is repeated", async () => {
    const away = await directory(["check"], "postgres://moor:planted@127.0.0.1:1/none");
    expect([away.code, away.stderr]).toEqual([3, expect.stringContaining("ECONNREFUSED")]);
    const wrong = await directory(["check"], "mysql://moor:planted@127.0.0.1:1/none");
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("MOOR_DATABASE_URL")]);
    expect(away.stderr + wrong.stderr).not.toContain("planted");
  });

  verifies(
    "R22",
    "an embedded directory moves to PostgreSQL: keys and tokens open, revisions go on above",
    async () => {
      const { made, sealing, home, apps, token, serviceKeys } = await fillEmbedded(file("data"));
      await directory(["export", file("saved"), "--data", file("data")]);
      const url = server().url(await createMigrated(server()));
      const imported = await directory(["import", file("saved"), "--json"], url);
      expect(imported.code).toBe(0);
      expect(JSON.parse(imported.stdout)).toMatchObject({ restamped: 6 });
      const twice = await directory(["import", file("saved")], url);
      expect([twice.code, twice.stderr]).toEqual([1, expect.stringContaining("not empty")]);
      expect((await directory(["check"], url)).code).toBe(0);

      const nodeSecret = readNodeSecret(join(file("data"), "node.secret"));
      const node = await openPostgresDirectory({
        url: new Secret(url),
        dir: file("node"),
        runtime,
        logger,
        nodeSecret,
      });
      const { replica } = node;
      expect(replica.residency()).toBe("eu");
      expect(replica.sealingKeys()).toEqual(sealing);
      expect(replica.shard("s1")?.state).toBe("down");
      const before = made.map(({ tunnel }) => tunnel.placement);
      for (const { tunnel, agentKey } of made) {
        const { placement, ...rest } = tunnel;
        expect(replica.tunnel(tunnel.id)).toMatchObject(rest);
        expect(replica.placement(tunnel.id)?.shard).toBe(placement.shard);
        expect(replica.placement(tunnel.id)?.revision).toBeGreaterThan(highestOf(before));
        const hash = parseKey(agentKey.reveal())?.hash ?? new Uint8Array();
        expect(replica.keyByHash(hash)?.tenant).toBe(tunnel.id);
      }
      const { placement: homePlacement, ...homeRest } = home as HomeRecord;
      expect(replica.home(homeRest.id)).toMatchObject(homeRest);
      expect(replica.home(homeRest.id)?.placement.revision).toBeGreaterThan(homePlacement.revision);
      expect(replica.homeApps(homeRest.id)).toEqual(apps);
      expect(replica.keyByHash(parseHomeToken(token.reveal())?.hash as Uint8Array)?.tenant).toBe(homeRest.id);
      expect(await node.directory.listServiceKeys()).toEqual(serviceKeys);
      expect(replica.serviceKeys()?.active.publicKey).toBe(serviceKeys[0]?.publicKey);
      expect(replica.defaultShard()).toBe("s1");
      await registerShards(node.directory, "s1", "s2");
      await node.directory.createTunnel({});
      await node.directory.close();
    },
  );

  test("an export of a program of the schema before is imported, and its first node completes it", async () => {
    const { made } = await fillEmbedded(file("data"));
    await directory(["export", file("saved"), "--data", file("data")]);
    const [header = "", ...rows] = readFileSync(file("saved"), "utf8").trimEnd().split("\n").slice(0, -1);
    const older = [header.replace(/"defaultShard":"[^"]*",/, "")];
    for (const row of rows) {
      if (/"table":"(homes|home_apps|service_keys)"/.test(row) || /"kind":"app"|"tenant":"home_/.test(row))
        continue;
      older.push(row.replace(/"start_revision":\d+,?/, "").replace(",}", "}"));
    }
    const body = older.map((line) => `${line}\n`).join("");
    const sha256 = createHash("sha256").update(body).digest("hex");
    const trailer = JSON.stringify({ end: true, rows: older.length - 1, sha256 });
    writeFileSync(file("older"), `${body}${trailer}\n`);
    const url = server().url(await createMigrated(server()));
    const imported = await directory(["import", file("older")], url);
    expect(imported.code).toBe(0);
    expect((await directory(["check"], url)).code).toBe(0);
    const nodeSecret = readNodeSecret(join(file("data"), "node.secret"));
    const options = { url: new Secret(url), dir: file("node"), runtime, logger, nodeSecret };
    const node = await openPostgresDirectory(options);
    expect(node.replica.serviceKeys()?.active.id).toHaveLength(16);
    expect(node.replica.defaultShard()).toBeUndefined();
    await registerShards(node.directory, "s1", "s2");
    expect(node.replica.defaultShard()).toBe("s1");
    expect(node.replica.tunnel(made[1]?.tunnel.id ?? "")).toBeDefined();
    await node.directory.close();
  });

  test("an import that was interrupted is taken for whole by nobody", async () => {
    const name = await createMigrated(server());
    await runSql(server(), name, "insert into placements values ('tunnel_x', 's1', 5, 'tk_1', 1, 'created')");
    const url = new Secret(server().url(name));
    const opening = openPostgresDirectory({ url, dir: file("node"), runtime, logger });
    await expect(opening).rejects.toThrow(/import into this directory was interrupted/);
    await fillEmbedded(file("data"));
    await directory(["export", file("saved"), "--data", file("data")]);
    const refused = await directory(["import", file("saved")], server().url(name));
    expect(refused.code).toBe(1);
  });
});
