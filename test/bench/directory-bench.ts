// The directory at size: 100,000 tunnels in both stores. Look-ups, pages, starts, moves; disk and memory per tunnel.
//
// `node test/bench/directory-bench.ts [tunnels]` prints a table; bench.ts takes the figures.

import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { createNodeRuntime, createSilentLogger, Secret } from "@moor/runtime";
import { createTempDir, postgresMissing, startPostgres } from "@moor/testkit";
import { openDirectory, type DirectoryLocation, type OpenDirectory } from "@moor/server";
import {
  exportDirectory,
  importDirectory,
  migrateDirectory,
  openToolStore,
  verifyExport,
} from "@moor/server/directory-tools";
import { parseShardId, type ShardId } from "../../packages/server/src/directory/records.ts";
import { mintMoveId } from "../../packages/server/src/directory/operations/move-operations.ts";

/** What was measured of one store. Milliseconds unless the name says otherwise. */
export interface DirectoryFigures {
  readonly store: "SQLite" | "PostgreSQL";
  readonly tunnels: number;
  /** The start that makes the replica; NaN where the file is its own. */
  readonly firstStartMs: number;
  readonly startMs: number;
  readonly coldLookUpP99Ms: number;
  readonly warmLookUpP99Ms: number;
  readonly pageOf100P99Ms: number;
  readonly countByShardMs: number;
  readonly movesPerSecond: number;
  readonly bulkMovesPerSecond: number;
  readonly diskBytesPerTunnel: number;
  /** Of a tunnel that is remembered: at most 20,000 are. */
  readonly memoryBytesPerTunnel: number;
}

const runtime = createNodeRuntime();
const logger = createSilentLogger();
const nodeSecret = new Uint8Array(32).fill(1);
const SHARDS = ["s1", "s2", "s3", "s4"].map((id) => parseShardId(id) as ShardId);
const BY = { actor: "bench" };

/** Measures both stores, PostgreSQL where its binaries are. */
export async function benchDirectory(tunnels: number): Promise<readonly DirectoryFigures[]> {
  const temp = await createTempDir("directory-bench");
  const embedded: DirectoryLocation = { kind: "sqlite", dir: join(temp.path, "embedded") };
  try {
    await fill(embedded, tunnels);
    const figures = [await measure("SQLite", embedded, tunnels, Number.NaN)];
    if (postgresMissing() === undefined) figures.push(await measurePostgres(embedded, temp.path, tunnels));
    return figures;
  } finally {
    await temp.remove();
  }
}

async function measurePostgres(
  embedded: DirectoryLocation,
  dir: string,
  tunnels: number,
): Promise<DirectoryFigures> {
  const server = await startPostgres();
  try {
    const location = {
      kind: "postgres",
      url: new Secret(await server.createDatabase("bench")),
      dir: join(dir, "node"),
    } as const;
    await migrateDirectory({ location, runtime, logger });
    await copy(embedded, location);
    // The first start of a node makes its replica.
    const firstStartMs = await timed(async () => (await open(location)).directory.close());
    return await measure("PostgreSQL", location, tunnels, firstStartMs);
  } finally {
    await server.remove();
  }
}

async function fill(location: DirectoryLocation, tunnels: number): Promise<void> {
  const { directory } = await open(location);
  for (let made = 0; made < tunnels; made += 2_000) {
    const count = Math.min(2_000, tunnels - made);
    await Promise.all(Array.from({ length: count }, () => directory.createTunnel({})));
  }
  await directory.close();
}

async function copy(from: DirectoryLocation, to: DirectoryLocation): Promise<void> {
  const lines: string[] = [];
  const source = await openToolStore({ location: from, runtime, logger });
  await exportDirectory(source, runtime, (text) => void lines.push(...text.trimEnd().split("\n")));
  await source.close();
  const target = await openToolStore({ location: to, runtime, logger });
  await importDirectory(target, runtime, await verifyExport(each(lines)), each(lines), 0);
  await target.close();
}

async function* each(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}

async function measure(
  store: DirectoryFigures["store"],
  location: DirectoryLocation,
  tunnels: number,
  firstStartMs: number,
): Promise<DirectoryFigures> {
  let node: OpenDirectory | undefined;
  const startMs = await timed(async () => void (node = await open(location)));
  if (node === undefined) throw new Error("the directory was opened");
  const { directory, replica } = node;
  const ids = await sampleIds(node, 2_000);
  globalThis.gc?.();
  const before = process.memoryUsage();
  const coldLookUpP99Ms = p99(ids, (id) => void replica.tunnel(id));
  globalThis.gc?.();
  const memoryBytesPerTunnel = (process.memoryUsage().heapUsed - before.heapUsed) / ids.length;
  const warmLookUpP99Ms = p99(ids, (id) => void replica.tunnel(id));
  const pageOf100P99Ms = await pagesP99(node);
  const countByShardMs = await timed(async () => void replica.countsByShard());
  const movesPerSecond = await moveOneByOne(node, ids.slice(0, 200));
  const bulkMovesPerSecond = await moveInBulk(node);
  const diskBytesPerTunnel = diskBytes(location.dir) / tunnels;
  await directory.close();
  return {
    store,
    tunnels,
    firstStartMs,
    startMs,
    coldLookUpP99Ms,
    warmLookUpP99Ms,
    pageOf100P99Ms,
    countByShardMs,
    movesPerSecond,
    bulkMovesPerSecond,
    diskBytesPerTunnel,
    memoryBytesPerTunnel,
  };
}

async function open(location: DirectoryLocation): Promise<OpenDirectory> {
  const opened = await openDirectory(location, { runtime, logger, nodeSecret });
  const shards = SHARDS.map((id) => ({ id, publicHost: `${id}.test` }));
  await opened.directory.registerNode({ id: "bench", incarnation: "i", shards });
  return opened;
}

async function sampleIds({ replica }: OpenDirectory, count: number): Promise<readonly string[]> {
  return SHARDS.flatMap((shard) => replica.tenantsOfShard(shard, "", Math.ceil(count / SHARDS.length)));
}

async function pagesP99({ directory }: OpenDirectory): Promise<number> {
  const times: number[] = [];
  let after: string | undefined;
  for (let page = 0; page < 100; page += 1) {
    times.push(
      await timed(async () => {
        const { next } = await directory.listTunnels(
          after === undefined ? { limit: 100 } : { limit: 100, after },
        );
        after = next ?? undefined;
      }),
    );
  }
  return percentile99(times);
}

async function moveOneByOne({ directory, replica }: OpenDirectory, ids: readonly string[]): Promise<number> {
  const tookMs = await timed(async () => {
    for (const tenant of ids) {
      const to = replica.placement(tenant)?.shard === SHARDS[0] ? SHARDS[1] : SHARDS[0];
      await directory.moveTenant({ moveId: mintMoveId(runtime), tenant, to: to as ShardId, ...BY });
    }
  });
  return (ids.length * 1_000) / tookMs;
}

async function moveInBulk({ directory, replica }: OpenDirectory): Promise<number> {
  const [from, to] = SHARDS.toSorted((left, right) => countOf(replica, right) - countOf(replica, left)) as [
    ShardId,
    ShardId,
  ];
  await directory.tryLead({ node: "bench", incarnation: "i", ttlMs: 600_000 });
  const { id: job } = await directory.createJob({ selector: { from, to }, ratePerS: 10_000, ...BY });
  const tenants = replica.tenantsOfShard(from, "", 5_000);
  const tookMs = await timed(async () => {
    for (let at = 0; at < tenants.length; at += 500) {
      const moves = tenants
        .slice(at, at + 500)
        .map((tenant) => ({ moveId: mintMoveId(runtime), tenant, to, from }));
      await directory.moveTenants({ moves, job, ...BY });
    }
  });
  await directory.updateJob({ id: job, state: "done" });
  return (tenants.length * 1_000) / tookMs;
}

function countOf(replica: OpenDirectory["replica"], shard: ShardId): number {
  return replica.countsByShard().get(shard)?.tunnels ?? 0;
}

function p99(ids: readonly string[], look: (id: string) => void): number {
  return percentile99(
    ids.map((id) => {
      const start = performance.now();
      look(id);
      return performance.now() - start;
    }),
  );
}

function percentile99(times: readonly number[]): number {
  return times.toSorted((left, right) => left - right)[Math.floor(times.length * 0.99)] ?? Number.NaN;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

function diskBytes(dir: string): number {
  return readdirSync(dir).reduce((sum, name) => sum + statSync(join(dir, name)).size, 0);
}

if (import.meta.main) {
  const figures = await benchDirectory(Number(process.argv[2] ?? 100_000));
  console.table(
    figures.map((each) =>
      Object.fromEntries(
        Object.entries(each).map(([name, value]) => [
          name,
          typeof value === "number" ? Number(value.toFixed(3)) : value,
        ]),
      ),
    ),
  );
}
