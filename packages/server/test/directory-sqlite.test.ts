// The embedded directory: the contract, and what is true of SQLite files only.

import type { EventEmitter } from "node:events";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Worker } from "node:worker_threads";
import { createLogger, createSilentLogger } from "@moor/runtime";
import { createTempDir, VirtualRuntime, verifies, type TempDir } from "@moor/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseKey } from "../src/directory/keys.ts";
import { applyMigrations, MIGRATIONS } from "../src/directory/migrations.ts";
import { readNodeSecret } from "../src/directory/node-secret.ts";
import {
  openSqliteDirectory,
  type OpenDirectory,
  type SqliteDirectoryOptions,
} from "../src/directory/sqlite-directory.ts";
import { SqliteWriter, startWriterWorker, type WriterThread } from "../src/directory/sqlite-writer.ts";
import type { WriterOrder, WriterSettings } from "../src/directory/sqlite-writing.ts";
import {
  directoryContract,
  expectCode,
  registerShards,
  UNKNOWN_TUNNEL,
  type OpenForTest,
} from "./directory-contract.ts";
import { fleetContract } from "./fleet-contract.ts";
import { homeContract } from "./home-contract.ts";
import { writerWithoutThread } from "./support/writer-without-thread.ts";

const logger = createSilentLogger();

const openEmpty: OpenForTest = async () => {
  const runtime = new VirtualRuntime(7);
  const temp = await createTempDir("directory");
  const { directory, replica } = await openSqliteDirectory({
    dir: temp.path,
    runtime,
    logger,
    startWorker: writerWithoutThread,
  });
  return {
    directory,
    replica,
    jumpWallClock: (deltaMs) => runtime.jumpWallClock(deltaMs),
    tamper: async (sql) => {
      const db = new DatabaseSync(join(temp.path, "moor.sqlite"));
      db.exec(sql);
      db.close();
    },
    close: async () => {
      await directory.close();
      await temp.remove();
    },
  };
};

directoryContract("SQLite", openEmpty);
fleetContract("SQLite", openEmpty);
homeContract("SQLite", openEmpty);

describe("the embedded directory", () => {
  let temp: TempDir;
  let open: OpenDirectory | undefined;

  beforeEach(async () => {
    temp = await createTempDir("directory");
  });
  afterEach(async () => {
    await open?.directory.close();
    open = undefined;
    await temp.remove();
  });

  const openIt = async (
    more: Partial<SqliteDirectoryOptions> & { readonly seed?: number } = {},
  ): Promise<OpenDirectory> => {
    const { seed = 3, ...rest } = more;
    open = await openSqliteDirectory({ dir: temp.path, runtime: new VirtualRuntime(seed), logger, ...rest });
    return open;
  };

  const reopen = async (more: { residency?: string; seed?: number } = {}): Promise<OpenDirectory> => {
    await open?.directory.close();
    open = undefined;
    return openIt({ seed: 4, ...more });
  };

  test("everything is there after closing and opening again", async () => {
    const { directory, replica } = await openIt();
    await registerShards(directory, "s1");
    const { tunnel, agentKey } = await directory.createTunnel({ name: "kept" });
    await directory.recordSeen([tunnel.id]);
    const sealing = replica.sealingKeys();
    const again = await reopen();
    expect(again.replica.tunnel(tunnel.id)).toEqual({ ...tunnel, isSeen: true });
    expect(again.replica.keyByHash(parseKey(agentKey.reveal())?.hash ?? new Uint8Array())?.tenant).toBe(
      tunnel.id,
    );
    expect(again.replica.sealingKeys()).toEqual(sealing);
    expect(again.replica.seq).toBe(replica.seq);
  });

  test("closing folds the journal into the one database file", async () => {
    const { directory } = await openIt();
    await registerShards(directory, "s1");
    await directory.close();
    expect(readdirSync(temp.path).toSorted()).toEqual([
      "lock",
      "moor.sqlite",
      "node.secret",
      "watermark.json",
    ]);
  });

  test("the files are the owner's only", async () => {
    const dir = join(temp.path, "made");
    const made = await openSqliteDirectory({ dir, runtime: new VirtualRuntime(1), logger });
    await registerShards(made.directory, "s1");
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    const names = readdirSync(dir);
    expect(names).toContain("moor.sqlite-wal");
    for (const name of names) expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600);
    await made.directory.close();
  });

  verifies("T2", "no key text is in any file of the data directory", async () => {
    const { directory } = await openIt();
    await registerShards(directory, "s1");
    const { agentKey, connectorKey, tunnel } = await directory.createTunnel({ name: "planted-name" });
    const { key } = await directory.createKey({ tunnel: tunnel.id, kind: "agent" });
    const bytes = readdirSync(temp.path).map((name) => readFileSync(join(temp.path, name), "latin1"));
    const everything = bytes.join("");
    expect(everything).toContain("planted-name");
    for (const secret of [agentKey, connectorKey, key]) {
      const random = secret?.reveal().split("_").slice(2).join("_") ?? "";
      expect(random.length).toBeGreaterThan(40);
      expect(everything).not.toContain(random.slice(0, 20));
      expect(everything).not.toContain(random.slice(10, 30));
    }
  });

  test("a second opening of the same directory is refused, naming it and what to do", async () => {
    await openIt();
    const second = openSqliteDirectory({ dir: temp.path, runtime: new VirtualRuntime(1), logger });
    await expect(second).rejects.toMatchObject({ name: "ConfigError", option: "--data" });
    await expect(second).rejects.toThrow(temp.path);
    await expect(second).rejects.toThrow(/stop that process, or give another directory/);
    await reopen();
  });

  test("a folder that cannot be made is refused", async () => {
    writeFileSync(join(temp.path, "file"), "");
    const dir = join(temp.path, "file", "below");
    await expect(openSqliteDirectory({ dir, runtime: new VirtualRuntime(1), logger })).rejects.toMatchObject({
      name: "ConfigError",
      option: "--data",
    });
  });

  test("a file that is no database is refused and let go of", async () => {
    mkdirSync(temp.path, { recursive: true });
    writeFileSync(
      join(temp.path, "moor.sqlite"),
      "this is not a database, and long enough to be looked at as one\n".repeat(99),
    );
    let started = 0;
    const startWorker = (settings: WriterSettings) => {
      started += 1;
      return writerWithoutThread(settings);
    };
    for (const attempt of [1, 2]) {
      await expect(openIt({ seed: attempt, startWorker })).rejects.toThrow(/not a database/);
      expect(started).toBe(attempt);
    }
  });

  test("a newer schema is refused, and nothing of it is changed", async () => {
    await openIt();
    await open?.directory.close();
    open = undefined;
    const db = new DatabaseSync(join(temp.path, "moor.sqlite"));
    db.exec("insert into migrations (version, applied_at_ms) values (999, 1)");
    db.close();
    await expect(openIt()).rejects.toThrow(/schema is version 999/);
    await expect(openIt()).rejects.toMatchObject({ name: "ConfigError" });
  });

  test("a directory of the first schema is taken over, and its token keys are sealed", async () => {
    const [first] = MIGRATIONS;
    const secret = new Uint8Array(32).fill(5);
    const db = new DatabaseSync(join(temp.path, "moor.sqlite"));
    applyMigrations(db, 1, first === undefined ? [] : [first]);
    db.exec("insert into residency values ('eu', 'i1', 1)");
    db.exec("insert into changes (kind, id) values ('token-key', 'tk_1'), ('placement', 'x')");
    db.exec("insert into placements values ('x', 's1', 77, 'tk_1', 1, 'created')");
    db.prepare("insert into token_keys values ('tk_1', ?, 'sealing', 1)").run(
      Buffer.from(secret).toString("base64url"),
    );
    db.close();
    const { replica, directory } = await openIt();
    expect(replica.residency()).toBe("eu");
    expect(replica.sealingKeys()).toEqual([{ id: "tk_1", secret, state: "sealing" }]);
    expect(replica.placement("x")).toEqual({ shard: "s1", revision: 77, tokenKey: "tk_1", tokenFormat: 1 });
    expect(replica.serviceKeys()?.active.id).toHaveLength(16);
    expect(replica.seq).toBe(4);
    await registerShards(directory, "s1");
    await directory.close();
    const bytes = readFileSync(join(temp.path, "moor.sqlite"), "latin1");
    expect(bytes).not.toContain(Buffer.from(secret).toString("base64url"));
    expect((await reopen()).replica.sealingKeys()).toHaveLength(1);
  });

  verifies("R23", "token keys open with the node secret of the folder, and with no other", async () => {
    const { replica } = await openIt();
    const [sealing] = replica.sealingKeys();
    expect(statSync(join(temp.path, "node.secret")).mode & 0o777).toBe(0o600);
    await open?.directory.close();
    const opening = (nodeSecret: Uint8Array) =>
      openSqliteDirectory({ dir: temp.path, runtime: new VirtualRuntime(4), logger, nodeSecret });
    await expect(opening(new Uint8Array(32))).rejects.toMatchObject({
      name: "ConfigError",
      option: "nodeSecretFile",
    });
    open = await opening(readNodeSecret(join(temp.path, "node.secret")));
    expect(open.replica.sealingKeys()).toEqual([sealing]);
    const stored = readFileSync(join(temp.path, "moor.sqlite"), "latin1");
    expect(stored).not.toContain(Buffer.from(sealing?.secret ?? []).toString("base64url"));
  });

  test.each([
    ["token keys", "insert into token_keys values ('tk_1', 'v1.x', 'sealing', 1, 1, 'foundation')"],
    ["placements", "insert into placements values ('tunnel_x', 's1', 5, 'tk_1', 1, 'created')"],
  ])("a directory whose import was interrupted after %s is not founded over", async (_, sql) => {
    const db = new DatabaseSync(join(temp.path, "moor.sqlite"));
    applyMigrations(db, 1);
    db.exec(sql);
    db.close();
    await expect(openIt()).rejects.toThrow(/an import into this directory was interrupted/);
  });

  test("a residency is kept, and another one is refused", async () => {
    const { replica } = await openIt({ residency: "eu" });
    expect(replica.residency()).toBe("eu");
    expect((await reopen()).replica.residency()).toBe("eu");
    await expect(reopen({ residency: "global" })).rejects.toMatchObject({
      name: "ConfigError",
      option: "residency",
    });
    await expect(openIt({ residency: "E U" })).rejects.toMatchObject({ name: "ConfigError" });
    expect((await openIt({ residency: "eu" })).replica.residency()).toBe("eu");
  });

  test("when the disk is full, changes say directory_unavailable, nothing half stays, and reads go on", async () => {
    const lines: string[] = [];
    const directory = await openSqliteDirectory({
      dir: temp.path,
      runtime: new VirtualRuntime(5),
      logger: createLogger({ destination: { write: (line) => void lines.push(line) } }),
      databaseBytesMax: 200 * 1024,
    });
    open = directory;
    await registerShards(directory.directory, "s1");
    const { tunnel } = await directory.directory.createTunnel({ name: "before" });
    const fill = async () => {
      for (;;) await directory.directory.createTunnel({ description: "x".repeat(1_000) });
    };
    await expectCode(fill(), "directory_unavailable");
    const { seq } = directory.replica;
    await expectCode(
      directory.directory.createTunnel({ description: "x".repeat(1_000) }),
      "directory_unavailable",
    );
    expect(directory.replica.seq).toBe(seq);
    expect((await directory.directory.getTunnel(tunnel.id)).name).toBe("before");
    expect((await directory.directory.listTunnels({ limit: 5 })).items).toHaveLength(5);
    expect(JSON.parse(lines.at(-1) ?? "{}")).toMatchObject({
      event: "directory-change-failed",
      level: "error",
      reason: expect.stringContaining("full"),
    });
  });

  test("a directory without a service key gets one at its opening, or at the registration where that was not possible", async () => {
    await openIt();
    await open?.directory.close();
    const tampered = new DatabaseSync(join(temp.path, "moor.sqlite"));
    tampered.exec("delete from service_keys");
    tampered.close();
    let isFull = true;
    /** A writer whose disk has no room for the key. */
    const startWorker = (settings: WriterSettings): WriterThread => {
      const writer = writerWithoutThread(settings);
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      const post = (order: WriterOrder) => writer.postMessage(order);
      const fail = () =>
        (writer as unknown as EventEmitter).emit("message", {
          kind: "batch",
          outcome: { kind: "failed", reason: "disk full" },
        });
      const isMinting = (order: WriterOrder) =>
        order.kind === "commit" && order.mutations.some(({ kind }) => kind === "mint-service-key");
      return Object.assign(Object.create(writer) as WriterThread, {
        postMessage: (order: WriterOrder) =>
          void (isFull && isMinting(order) ? setImmediate(fail) : post(order)),
      });
    };
    const runtime = new VirtualRuntime(9);
    open = await openSqliteDirectory({ dir: temp.path, runtime, logger, startWorker });
    expect(open.replica.serviceKeys()).toBeUndefined();
    await expectCode(registerShards(open.directory, "s1"), "directory_unavailable");
    isFull = false;
    await registerShards(open.directory, "s1");
    const made = open.replica.serviceKeys()?.active.id;
    expect(made).toHaveLength(16);
    expect((await reopen()).replica.serviceKeys()?.active.id).toBe(made);
  });

  test("after closing, changes say directory_unavailable; closing again is allowed", async () => {
    const { directory } = await openIt();
    await directory.close();
    await directory.close();
    await expectCode(directory.createTunnel({}), "directory_unavailable");
  });

  test("closing first commits what was asked before", async () => {
    const { directory } = await openIt();
    await registerShards(directory, "s1");
    const creation = directory.createTunnel({ name: "last" });
    const closing = directory.close();
    await Promise.allSettled([creation, closing]);
    const { items } = await (await reopen()).directory.listTunnels({ limit: 10 });
    expect(items.map((item) => item.name)).toEqual(["last"]);
  });
});

describe("the writer", () => {
  let temp: TempDir;
  let writer: SqliteWriter;
  const workers: Worker[] = [];
  let isReplicaBroken = false;

  beforeEach(async () => {
    temp = await createTempDir("writer");
    workers.length = 0;
    isReplicaBroken = false;
    writer = new SqliteWriter({
      path: join(temp.path, "moor.sqlite"),
      bytesMax: 10_000_000,
      dataDir: temp.path,
      runtime: new VirtualRuntime(1),
      logger,
      onCommitted: () => {
        if (isReplicaBroken) throw new Error("disk I/O error");
      },
      startWorker: (settings) => {
        const worker = startWriterWorker(settings);
        workers.push(worker);
        return worker;
      },
    });
    await writer.start();
  });
  afterEach(async () => {
    await writer.close();
    await temp.remove();
  });

  test("a thread that dies fails what was under way, and the next change gets a new one", async () => {
    // Told to end first: a thread that has been asked before may well answer before it dies.
    void workers[0]?.terminate();
    const under = writer.commit({ kind: "revoke-key", id: "key_1" });
    await expect(under).rejects.toMatchObject({
      code: "directory_unavailable",
      data: { outcome: "unknown" },
    });
    const outcome = await writer.commit({ kind: "delete-tunnel", id: UNKNOWN_TUNNEL });
    expect(outcome).toMatchObject({ kind: "refused", code: "tunnel_not_found" });
    expect(workers).toHaveLength(2);
  });

  test("a change that the replica cannot show yet says that it is made, and the writer goes on", async () => {
    isReplicaBroken = true;
    const made = writer.commit({ kind: "record-seen", ids: [] });
    const refused = writer.commit({ kind: "delete-tunnel", id: UNKNOWN_TUNNEL });
    await expect(made).rejects.toMatchObject({ code: "directory_unavailable", data: { outcome: "made" } });
    expect(await refused).toMatchObject({ kind: "refused", code: "tunnel_not_found" });
    isReplicaBroken = false;
    expect(await writer.commit({ kind: "record-seen", ids: [] })).toEqual({ kind: "done", rows: [] });
  });
});
