// A copy that follows its authority: which rounds there are, and how far each of them may go.

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createSilentLogger } from "@moor/runtime";
import { createTempDir, settle, VirtualRuntime, type TempDir } from "@moor/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Change } from "../src/directory/directory.ts";
import { FeedReplica } from "../src/directory/feed-replica.ts";
import { LocalReplica } from "../src/directory/local-replica.ts";
import { applyMigrations } from "../src/directory/migrations.ts";
import type { Mutation } from "../src/directory/mutations.ts";
import type { PostgresSession } from "../src/directory/postgres-link.ts";
import { readHead, ReplicaSync } from "../src/directory/replica-sync.ts";
import { commitBatch } from "../src/directory/sqlite-batch.ts";
import { createSqliteStatements } from "../src/directory/sqlite-statements.ts";
import type { SqlValue } from "../src/directory/statements.ts";
import { TokenKeyVault } from "../src/directory/token-key-vault.ts";

const logger = createSilentLogger();
const runtime = new VirtualRuntime(1);

let temp: TempDir;
let authority: DatabaseSync;
let copy: DatabaseSync;
let replica: LocalReplica;

beforeEach(async () => {
  temp = await createTempDir("feed");
  authority = new DatabaseSync(":memory:");
  applyMigrations(authority, 1);
  commit({
    kind: "found-residency",
    name: "global",
    incarnation: "i1",
    isCorrecting: false,
    tokenKey: { id: "tk_1", sealedSecret: "v1.x" },
    serviceKey: { id: "sk", publicKey: "p", sealedSecret: "v1.x" },
  });
  copy = new DatabaseSync(join(temp.path, "replica.sqlite"));
  copy.exec("pragma journal_mode = wal");
  applyMigrations(copy, 1);
  replica = new LocalReplica(copy, { vault: new TokenKeyVault(new Uint8Array(32), runtime), logger });
});
afterEach(async () => {
  replica.close();
  await temp.remove();
});

function commit(mutation: Mutation): void {
  const outcome = commitBatch(authority, createSqliteStatements(authority), [mutation], {
    tx: "t",
    wallMs: 1,
  });
  expect(outcome).toMatchObject({ kind: "committed", outcomes: [{ kind: "done" }] });
}

/** A connection to the authority; `before` runs ahead of each of its statements. */
function session(before: (sql: string) => void = () => {}): PostgresSession {
  const ask = async (sql: string, params: readonly SqlValue[] = []) => {
    before(sql);
    return createSqliteStatements(authority).all(sql, params);
  };
  return {
    rows: ask,
    values: async (sql, params) => (await ask(sql, params)).map((row) => Object.values(row) as SqlValue[]),
    command: async (sql) => {
      before(sql);
      return "";
    },
  };
}

test("a switch of corrections that is committed while a round is under way is not lost", async () => {
  const sync = new ReplicaSync(copy, replica);
  await sync.compareAll(session());
  commit({
    kind: "register-node",
    id: "n1",
    incarnation: "i",
    internalUrl: "",
    roles: "entry",
    version: "",
    shards: [],
  });
  const heard: Change[] = [];
  replica.onChange((change) => void heard.push(change));
  const head = await readHead(session());
  if (head === undefined) throw new Error("the directory is founded");
  commit({ kind: "set-corrections", isOn: true, actor: "tester" });
  await sync.takeChanges(session(), head);
  expect(replica.seq).toBe(head.seq);
  const next = await readHead(session());
  if (next !== undefined) await sync.takeChanges(session(), next);
  expect(replica.correctionsOn()).toBe(true);
  expect(heard.map((change) => change.seq)).toEqual([head.seq, head.seq + 1]);
});

test("a notification during the first round begins the next one only when it has ended", async () => {
  const isBegun = Promise.withResolvers<void>();
  const mayGoOn = Promise.withResolvers<void>();
  let [running, mostRunning, rounds] = [0, 0, 0];
  const feed = new FeedReplica({
    link: {
      use: async (work) => {
        rounds += 1;
        running += 1;
        mostRunning = Math.max(mostRunning, running);
        isBegun.resolve();
        if (rounds === 1) await mayGoOn.promise;
        try {
          return await work(session());
        } finally {
          running -= 1;
        }
      },
      close: async () => {},
    },
    sync: new ReplicaSync(copy, replica),
    replica,
    watermark: undefined,
    residency: undefined,
    dir: temp.path,
    runtime,
    logger,
  });
  const starting = feed.start();
  await isBegun.promise;
  feed.wake();
  await settle();
  mayGoOn.resolve();
  await starting;
  expect(feed.health).toEqual({ kind: "current" });
  await feed.close();
  expect([rounds, mostRunning]).toEqual([2, 1]);
});
