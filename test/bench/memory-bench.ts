// Memory: what an idle tunnel and a waiting poll cost a node, beside a bare node:http server that parks the same requests.

import { readdirSync, statSync } from "node:fs";
import path from "node:path";
import { startMoorDev, type MoorDev } from "@moor/testkit/moor-process";
import { createTempDir } from "@moor/testkit/temp-dir";
import { until } from "@moor/testkit/within";
import { Pool } from "undici";
import { MEMORY_PROBE_ARGS, readMemory, startPart, type Memory } from "./parts.ts";

/** Bytes one more of something costs. */
export interface UnitMemory {
  readonly rssBytes: number;
  readonly heapBytes: number;
}

export interface MemoryFigures {
  readonly tunnels: number;
  readonly polls: number;
  /** A tunnel nobody has used since the node started; `diskBytes` is its share of the data folder. */
  readonly idleTunnel: UnitMemory & { readonly diskBytes: number };
  /** A poll on a tunnel that many agents share. */
  readonly waitingPoll: UnitMemory;
  /** A poll on a tunnel of its own: the tunnel's mailbox and records come into memory with it. */
  readonly waitingPollOfOwnTunnel: UnitMemory;
  /** The same requests, parked by a bare node:http server. */
  readonly bareParkedRequest: UnitMemory;
}

interface BenchAgent {
  readonly path: string;
  readonly key: string;
}

/** Agents that wait on one shared tunnel: under what a node allows for one tunnel. */
const AGENTS_PER_SHARED_TUNNEL = 500;

/** How many tunnels are created at a time. */
const CREATORS = 32;

/**
 * Creates `tunnels` tunnels, and lets an agent wait on each of the first `polls`. Every figure is the difference of two
 * nodes that have just started, or of one before and after the polls: what a busy past leaves behind is in none of them.
 */
export async function benchMemory(options: { tunnels: number; polls: number }): Promise<MemoryFigures> {
  const bareParkedRequest = await measureBareServer(options.polls);
  const data = await createTempDir("bench");
  const first = await startMoorDev({ dataDir: data.path, nodeArgs: MEMORY_PROBE_ARGS });
  const empty = await readMemory(first.process);
  const agents = await createAgents(first, options.tunnels);
  await first.stop();

  const ownTunnel = await measurePolls(data.path, agents.slice(0, options.polls));
  const sharing = agents.slice(0, Math.ceil(options.polls / AGENTS_PER_SHARED_TUNNEL));
  const pollsOfShared = Array.from({ length: options.polls }, (_, at) => sharing[at % sharing.length]);
  const sharedTunnel = await measurePolls(
    data.path,
    pollsOfShared.filter((agent) => agent !== undefined),
  );
  const diskBytes = Math.round(sizeOfDir(data.path) / options.tunnels);
  await data.remove();
  return {
    ...options,
    idleTunnel: { ...perUnit(empty, ownTunnel.before, options.tunnels), diskBytes },
    waitingPoll: perUnit(sharedTunnel.before, sharedTunnel.after, options.polls),
    waitingPollOfOwnTunnel: perUnit(ownTunnel.before, ownTunnel.after, options.polls),
    bareParkedRequest,
  };
}

/** Memory of a node that has just started on `dataDir`, before and after `agents` wait on it. */
async function measurePolls(
  dataDir: string,
  agents: readonly BenchAgent[],
): Promise<{ before: Memory; after: Memory }> {
  const node = await startMoorDev({ dataDir, nodeArgs: MEMORY_PROBE_ARGS });
  const before = await readMemory(node.process);
  const fleet = await startFleet(Number(new URL(node.endpoint).port), agents);
  await until(async () => (await readWaitingPolls(node)) >= agents.length, "all polls to wait", 60_000);
  const after = await readMemory(node.process);
  await fleet.kill();
  await node.stop();
  return { before, after };
}

function sizeOfDir(dir: string): number {
  return readdirSync(dir).reduce((sum, file) => sum + statSync(path.join(dir, file)).size, 0);
}

async function measureBareServer(polls: number): Promise<UnitMemory> {
  const server = await startPart("parking-server.ts", { nodeArgs: MEMORY_PROBE_ARGS });
  const port = Number(await server.stdout.waitFor(/^\d+$/));
  const empty = await readMemory(server);
  const agent = { path: `/v1/tunnels/tunnel_${"0".repeat(32)}/poll?limit=10&timeout_ms=25000` };
  const fleet = await startFleet(
    port,
    Array.from({ length: polls }, () => ({ ...agent, key: "k".repeat(64) })),
  );
  await server.stdout.waitFor(`parked ${polls}`, 60_000);
  const parked = await readMemory(server);
  await fleet.kill();
  await server.kill();
  return perUnit(empty, parked, polls);
}

function perUnit(before: Memory, after: Memory, count: number): UnitMemory {
  return {
    rssBytes: Math.round((after.rss - before.rss) / count),
    heapBytes: Math.round((after.heapUsed - before.heapUsed) / count),
  };
}

async function startFleet(port: number, agents: readonly BenchAgent[]) {
  const fleet = await startPart("waiting-agents.ts", {
    env: { BENCH_PORT: String(port) },
    hasInput: true,
  });
  fleet.stdin.end(agents.map(({ path, key }) => `${path} ${key}\n`).join(""));
  await fleet.stdout.waitFor(`waiting ${agents.length}`, 60_000);
  return fleet;
}

/** Creates tunnels through the operator listener, as many at a time as a script would. */
async function createAgents(node: MoorDev, count: number): Promise<BenchAgent[]> {
  const pool = new Pool(node.operatorUrl, { connections: CREATORS });
  const agents: BenchAgent[] = [];
  const creator = async () => {
    while (agents.length < count) {
      const index = agents.push({ path: "", key: "" }) - 1;
      const answer = await pool.request({
        method: "POST",
        path: "/v1/tunnels",
        headers: { authorization: `Bearer ${node.operatorToken}`, "content-type": "application/json" },
        body: "{}",
      });
      const body = await answer.body.text();
      if (answer.statusCode >= 300) throw new Error(`creating a tunnel: ${answer.statusCode} ${body}`);
      const { id, agent_key: key } = JSON.parse(body) as { id: string; agent_key: string };
      agents[index] = { path: `/v1/tunnels/${id}/poll?limit=10&timeout_ms=25000`, key };
    }
  };
  await Promise.all(Array.from({ length: CREATORS }, creator));
  await pool.close();
  return agents;
}

async function readWaitingPolls(node: MoorDev): Promise<number> {
  const answer = await fetch(`${node.operatorUrl}/metrics`, {
    headers: { authorization: `Bearer ${node.operatorToken}` },
  });
  return Number(/^moor_polls_waiting (\d+)/m.exec(await answer.text())?.[1] ?? 0);
}
