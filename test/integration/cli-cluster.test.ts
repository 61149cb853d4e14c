// The commands against several `moor serve` nodes on one PostgreSQL: what each node shows, jobs over the death of their
// leader, and moves whose database is lost in the middle.

import {
  runMoor,
  startCluster,
  startMoor,
  until,
  verifies,
  type Cluster,
  type ClusterNode,
  type MoorRun,
  type RunningProcess,
} from "@moor/testkit";
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describePostgres } from "./postgres-kit.ts";

let cluster: Cluster;
let databaseUrl: string;

const at = (node: ClusterNode, ...args: string[]): Promise<MoorRun> =>
  runMoor([...args, "--data", node.dataDir]);

interface ShardItem {
  readonly id: string;
  readonly node: string;
  readonly state: string;
  readonly tunnels: number;
  readonly leaseAgeMs: number | null;
  readonly late: boolean;
}

async function shardsAt(node: ClusterNode): Promise<readonly ShardItem[]> {
  const run = await at(node, "shards", "--json");
  expect(run.code).toBe(0);
  return (JSON.parse(run.stdout) as { items: ShardItem[] }).items;
}

/** Orders a move at n1 and cuts n1 from the database while the database has the move in hand, as long as told. */
async function moveAndLose(
  id: string,
  to: string,
  forHowLong: "a moment" | "until told",
): Promise<RunningProcess> {
  const { databaseProxy, dataDir } = cluster.node("n1");
  const holder = new Client({ connectionString: databaseUrl });
  await holder.connect();
  await holder.query("begin");
  // Every change takes this row first: the move stands still in its transaction.
  await holder.query("select name from residency for update");
  const moving = await startMoor(["move", id, "--to", to, "--data", dataDir]);
  await until(async () => {
    const { rows } = await holder.query(
      "select pid from pg_stat_activity where wait_event_type = 'Lock' and client_port is not null",
    );
    return rows.length > 0;
  }, "the move to wait in the database");
  databaseProxy.setAccepting(forHowLong === "a moment");
  databaseProxy.reset();
  await holder.query("rollback");
  await holder.end();
  return moving;
}

async function newTunnel(): Promise<{ readonly id: string; readonly at: string; readonly to: string }> {
  const [tunnel] = await cluster.createTunnels(1);
  const { id = "" } = tunnel ?? {};
  const at = (await cluster.node("n2").operator.where(id))?.shard ?? "";
  return { id, at, to: cluster.shards.find((shard) => shard !== at) ?? "" };
}

async function movesOf(id: string): Promise<number> {
  const { body } = await cluster.node("n2").operator.request("GET", `/v1/moves?tenant=${id}`);
  return (body["moves"] as unknown[]).length;
}

describePostgres("nodes on one PostgreSQL", (server) => {
  beforeAll(async () => {
    databaseUrl = await server().createDatabase("cli_cluster");
    cluster = await startCluster({
      nodes: [
        { id: "n1", shards: ["s1"], hasDatabaseProxy: true },
        { id: "n2", shards: ["s2"] },
        { id: "n3", shards: ["s3"] },
      ],
      directory: { postgresUrl: databaseUrl },
    });
  }, 120_000);
  afterAll(() => cluster?.stop());

  test("every node shows every shard and node, and fresh leases", async () => {
    for (const node of cluster.nodes) {
      const items = await shardsAt(node);
      expect(items.map((item) => [item.id, item.node, item.state, item.late])).toEqual([
        ["s1", "n1", "live", false],
        ["s2", "n2", "live", false],
        ["s3", "n3", "live", false],
      ]);
      // A node that has just started has seen nothing of the others' leases yet.
      const hasAges = async () => (await shardsAt(node)).every(({ leaseAgeMs }) => leaseAgeMs !== null);
      await until(hasAges, "the node to see each lease renewed");
    }
    const nodes = await at(cluster.node("n2"), "nodes", "--json");
    const { items } = JSON.parse(nodes.stdout) as { items: Record<string, unknown>[] };
    expect(items.map(({ id, state, version }) => [id, state, version])).toEqual(
      ["n1", "n2", "n3"].map((id) => [id, "live", expect.stringMatching(/^\d+\.\d+\.\d+/)]),
    );
  });

  test("a tunnel moved at one node is where it is at all of them, and why gathers what each saw", async () => {
    const [tunnel] = await cluster.createTunnels(1);
    const { id = "" } = tunnel ?? {};
    const first = (await cluster.node("n1").operator.where(id))?.shard ?? "";
    const [second = "", third = ""] = cluster.shards.filter((shard) => shard !== first);
    for (const to of [second, third]) {
      const run = await at(cluster.node("n1"), "move", id, "--to", to);
      expect(run.code).toBe(0);
    }
    await cluster.untilPlaced(id, third);
    const why = await at(cluster.node("n2"), "why", id, "--json");
    const { items, unreached } = JSON.parse(why.stdout) as {
      items: { node: string; event: string; detail: string }[];
      unreached: string[];
    };
    expect(unreached).toEqual([]);
    const details = items.filter(({ event }) => event === "moved").map(({ detail }) => detail);
    expect(details).toEqual([
      expect.stringContaining(`${first} → ${second} at revision`),
      expect.stringContaining(`${second} → ${third} at revision`),
    ]);
  });

  verifies(
    "R22",
    "a move whose database is lost in the middle and is back soon is made once, and the command says so",
    async () => {
      const { id, to } = await newTunnel();
      const moving = await moveAndLose(id, to, "a moment");
      expect(await moving.ended).toEqual({ kind: "exited", code: 0 });
      expect(moving.stdout.text()).toContain(`moved ${id}`);
      await cluster.untilPlaced(id, to);
      expect(await movesOf(id)).toBe(1);
    },
  );

  verifies(
    "R22",
    "a move whose database is lost before the commit and stays away is refused at once, and nothing is moved",
    async () => {
      const { id, at: from, to } = await newTunnel();
      const moving = await moveAndLose(id, to, "until told");
      expect(await moving.ended).toEqual({ kind: "exited", code: 1 });
      expect(moving.stderr.text()).toContain("refused (directory_unavailable): changes are not possible now");
      cluster.node("n1").databaseProxy.setAccepting(true);
      const isBack = () =>
        cluster.createTunnels(1).then(
          () => true,
          () => false,
        );
      await until(isBack, "n1 to make changes again");
      expect((await cluster.node("n1").operator.where(id))?.shard).toBe(from);
      expect(await movesOf(id)).toBe(0);
    },
  );

  test("a job outlives the node that ran it, whose shard is shown as late", async () => {
    const leaderOf = () => cluster.nodes.findLast((node) => node.events("leading").length > 0);
    const leader = await until(leaderOf, "a leader");
    const others = cluster.nodes.filter((node) => node !== leader);
    const [watcher, target] = others as [ClusterNode, ClusterNode];
    await cluster.createTunnels(40);
    const source = watcher.id.replace("n", "s");
    const to = target.id.replace("n", "s");
    const run = await at(
      watcher,
      "move",
      "--from",
      source,
      "--to",
      to,
      "--rate",
      "4/s",
      "--detach",
      "--json",
    );
    const job = JSON.parse(run.stdout) as { id: string; total: number };
    const moved = async () => {
      const { body } = await watcher.operator.request("GET", `/v1/jobs/${job.id}`);
      return Number(body["moved"]);
    };
    await until(async () => (await moved()) > 0, "the job to begin");
    await leader.kill();
    const watched = await at(watcher, "move", "--resume", job.id);
    expect([watched.code, watched.stdout]).toEqual([
      0,
      `moved ${job.total} from ${source}: ${job.id} is done`,
    ]);
    const items = await shardsAt(watcher);
    expect(items.find(({ id }) => id === source)?.tunnels).toBe(0);
    const late = async () => (await shardsAt(watcher)).filter((item) => item.late).map((item) => item.node);
    await until(async () => (await late()).length > 0, "the dead node's lease to be late");
    expect(await late()).toEqual([leader.id]);
    const record = await at(watcher, "moves", "--limit", "500", "--json");
    const { items: moves } = JSON.parse(record.stdout) as { items: { tenant: string; job: string | null }[] };
    const ofJob = moves.filter((move) => move.job === job.id).map(({ tenant }) => tenant);
    expect([ofJob.length, new Set(ofJob).size]).toEqual([job.total, job.total]);
  }, 120_000);
});
