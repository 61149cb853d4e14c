// The demo's second act: three nodes on one PostgreSQL, official MCP clients that call all the time, and tunnels that
// are moved from shard to shard meanwhile. The numbers are counted by the callers and by the MCP server's own ledger.
//
// I1  Whatever was started is taken down again, and that nothing is left is looked up, not assumed.

import { setTimeout as pause } from "node:timers/promises";
import { startCluster, type Cluster } from "@moor/testkit/cluster";
import { startFleet, type Fleet } from "@moor/testkit/fleet";
import { moveRound } from "@moor/testkit/fleet-moves";
import { faultsOf, type FleetVerdict } from "@moor/testkit/fleet-verdict";
import { startPostgres, type PostgresServer } from "@moor/testkit/postgres";
import { postgresMissing } from "@moor/testkit/postgres-binaries";
import { listProcessGroup } from "@moor/testkit/process-group";
import type { Narrator } from "./narrator.ts";

const TUNNELS = 10;
const SDK_CLIENTS = 10;
/** Plain HTTP callers beside the SDK's, calls a second. */
const RAW_CALLS_PER_S = 50;
const WARM_UP_MS = 1_000;
const STILL_MS = 4_000;
const MOVING_MS = 8_000;
const MOVES_EACH = 4;

/** Plays the act; gives what it left behind, in words. Throws when a call was hurt. */
export async function playFleetAct(narrator: Narrator): Promise<readonly string[]> {
  const missing = postgresMissing();
  if (missing !== undefined) {
    narrator.say(`Left out: it ${missing}.`);
    return [];
  }
  const postgres = await startPostgres();
  const pids: number[] = [];
  try {
    await playOn(postgres, narrator, pids);
  } finally {
    await postgres.remove();
  }
  const left = await Promise.all(pids.map((pid) => listProcessGroup(pid)));
  return left.flat().map((pid) => `process ${pid}`);
}

async function playOn(postgres: PostgresServer, narrator: Narrator, pids: number[]): Promise<void> {
  narrator.say("PostgreSQL runs, with a database of its own for this demo.");
  const cluster = await startCluster({
    directory: { postgresUrl: await postgres.createDatabase("moor") },
    nodes: [{ id: "north", shards: ["pier-1"] }, { id: "south", shards: ["pier-2"] }, { id: "edge" }],
  });
  try {
    pids.push(...cluster.nodes.map((node) => node.process.pid));
    narrator.say("Three nodes serve (moor serve): north and south own a shard each, edge none.");
    await callAndMove(cluster, narrator);
  } finally {
    await cluster.stop();
  }
}

async function callAndMove(cluster: Cluster, narrator: Narrator): Promise<void> {
  const tunnels = await cluster.createTunnels(TUNNELS);
  const endpoints = cluster.nodes.map(({ endpoint }) => endpoint);
  const fleet = await startFleet({ tunnels, endpoints, mix: "mixed" });
  try {
    narrator.say(
      `${TUNNELS} tunnels have two agents each: one that understands corrections and an old one. ` +
        `${SDK_CLIENTS} official MCP clients and some plain ones call them without a pause.`,
    );
    const load = { callsPerS: RAW_CALLS_PER_S, sdkClients: SDK_CLIENTS };
    const warmUp = await fleet.startRun(load);
    await pause(WARM_UP_MS);
    await warmUp.finish();
    const still = await fleet.startRun(load);
    await pause(STILL_MS);
    report(narrator, "Nothing moves", await still.finish());
    await moveUnderLoad(cluster, fleet, narrator, load);
  } finally {
    await fleet.stop();
  }
}

async function moveUnderLoad(
  cluster: Cluster,
  fleet: Fleet,
  narrator: Narrator,
  load: Parameters<Fleet["startRun"]>[0],
): Promise<void> {
  narrator.say(
    `Now every tunnel is moved ${MOVES_EACH} times in ${MOVING_MS / 1000} s, as moor move does it.`,
  );
  const run = await fleet.startRun(load);
  const moves = await moveRound({
    operators: cluster.nodes.map(({ operator }) => operator),
    tunnels: fleet.tunnels.map(({ id }) => id),
    shards: cluster.shards,
    times: MOVES_EACH,
    durationMs: MOVING_MS,
  });
  const verdict = await run.finish();
  report(narrator, `${moves.made} moves`, verdict);
  if (moves.made !== TUNNELS * MOVES_EACH) throw new Error(`moves were refused: ${moves.refused.join(", ")}`);
}

function report(narrator: Narrator, when: string, verdict: FleetVerdict): void {
  const { calls, failed, executedTwice, lostNotifications, latency, failures } = verdict;
  narrator.say(
    `${when}: ${calls} calls, ${failed} failed, ${executedTwice} run twice, ${lostNotifications} progress notes lost; ` +
      `half took under ${Math.round(latency.p50Ms)} ms, the slowest ${Math.round(latency.slowestMs)} ms.`,
  );
  const faults = Object.values(faultsOf(verdict)).reduce((sum, count) => sum + count, 0);
  if (faults > 0) throw new Error(`calls were hurt: ${failures.map(({ kind }) => kind).join(", ")}`);
}
