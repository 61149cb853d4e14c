// Nodes that die and connections that are cut in the middle of calls: answered, or told to be unknown; never run twice.

import {
  startPlainAgent,
  startTcpProxy,
  until,
  verifies,
  within,
  type CallEnding,
  type Cluster,
  type FleetTunnel,
} from "@moor/testkit";
import { expect, onTestFinished, test } from "vitest";
import {
  callName,
  callOnce,
  place,
  pollOnce,
  startGatedServer,
  startTestCluster,
  tunnelOn,
  untilServed,
} from "./cluster-kit.ts";
import { describePostgres } from "./postgres-kit.ts";

/** Command deadline of tunnels whose callers are to be told soon. */
const SHORT_DEADLINE = "3s";
/** Times the wire of an agent is cut. */
const CUT_ROUNDS = 15;

function startAgent(endpoint: string, tunnel: FleetTunnel, mcp: string) {
  const agent = startPlainAgent({ endpoint, tunnel, mcp });
  onTestFinished(() => agent.stop());
  return agent;
}

/** An ending that says the call was, or may have been, handed out. Spec T11. */
function isToldUnknown(ending: CallEnding): boolean {
  if (ending.kind !== "refused") return false;
  return [502, 504].includes(ending.status) || ending.code === "command_outcome_unknown";
}

async function shortTunnel(cluster: Cluster): Promise<FleetTunnel> {
  const tunnel = await cluster.nodes[0]?.operator.createTunnel({ deadline: SHORT_DEADLINE });
  if (tunnel === undefined) throw new Error("a cluster without nodes");
  await cluster.untilPlaced(tunnel.id, (await cluster.nodes[0]?.operator.where(tunnel.id))?.shard ?? "");
  return tunnel;
}

describePostgres("two shard nodes and an edge", (server) => {
  const nodes = [{ id: "a", shards: ["s1"] }, { id: "b", shards: ["s2"] }, { id: "edge" }] as const;

  verifies(
    ["R20", "R21", "T6"],
    "a command handed out before a move and the kill -9 of its owner's node is answered, with its own token",
    async () => {
      const cluster = await startTestCluster({ nodes }, server());
      const mcp = await startGatedServer();
      const tunnel = await tunnelOn(cluster, "s1");
      const { endpoint } = cluster.node("edge");
      const agent = startAgent(endpoint, tunnel, mcp.url);
      await agent.connected;
      const pending = callOnce(endpoint, tunnel);
      await mcp.untilExecuted(1);
      await place(cluster, tunnel, "s2");
      await cluster.node("a").kill();
      mcp.open();
      expect(await within(pending, "the call of the dead owner")).toMatchObject({ kind: "answered" });
      expect(await callOnce(endpoint, tunnel)).toMatchObject({ kind: "answered" });
      expect(mcp.executed).toHaveLength(2);
    },
  );

  test("a command whose owner's node dies while its agent works is answered; the owner's return brings service back", async () => {
    const cluster = await startTestCluster({ nodes }, server());
    const mcp = await startGatedServer();
    const tunnel = await tunnelOn(cluster, "s1");
    const { endpoint } = cluster.node("edge");
    await startAgent(endpoint, tunnel, mcp.url).connected;
    const pending = callOnce(endpoint, tunnel);
    await mcp.untilExecuted(1);
    await cluster.node("a").kill();
    mcp.open();
    expect(await within(pending, "the call of the dead owner")).toMatchObject({ kind: "answered" });
    const parked = callOnce(endpoint, tunnel);
    await cluster.node("a").start();
    expect(await within(parked, "the call that was parked meanwhile")).toMatchObject({ kind: "answered" });
    expect(mcp.executed).toHaveLength(2);
  });

  verifies(
    ["T4", "T11"],
    "an entry killed around a hand-out: the command runs at most once, and its caller elsewhere is not told to retry",
    async () => {
      const cluster = await startTestCluster({ nodes }, server());
      const tunnel = await shortTunnel(cluster);
      const mcp = await startGatedServer(true);
      const edge = cluster.node("edge");
      const wire = await startTcpProxy({ port: Number(new URL(edge.endpoint).port) });
      onTestFinished(() => wire.close());
      const agent = startAgent(`http://127.0.0.1:${wire.port}`, tunnel, mcp.url);
      await agent.connected;
      const caller = cluster.node("a").endpoint;
      expect(await callOnce(caller, tunnel)).toMatchObject({ kind: "answered" });
      // The command reaches the wire and not the agent; then its entry dies.
      await until(
        async () => (await edge.operator.metric("moor_polls_waiting")) > 0,
        "the agent's next poll",
      );
      wire.setWire("frozen");
      const lost = callName();
      const pending = callOnce(caller, tunnel, { name: lost });
      await until(
        async () => (await edge.operator.metric("moor_commands_handed_out_total")) >= 2,
        "the command to be written",
      );
      await edge.kill();
      wire.reset();
      wire.setWire("flowing");
      const ending = await within(pending, "the caller of the lost command");
      expect({ ending, isToldUnknown: isToldUnknown(ending) }).toMatchObject({ isToldUnknown: true });
      await edge.start();
      await untilServed(caller, tunnel);
      expect(mcp.executed.filter((name) => name === lost)).toEqual([]);
      expect(new Set(mcp.executed).size).toBe(mcp.executed.length);
    },
    90_000,
  );
});

verifies(
  "T4",
  "an agent cut between hand-out and delivery, at any moment: its command runs once or never, never twice",
  async () => {
    const cluster = await startTestCluster({ nodes: [{ id: "a", shards: ["s1", "s2"] }] });
    const tunnel = await shortTunnel(cluster);
    const mcp = await startGatedServer(true);
    const { endpoint } = cluster.node("a");
    const wire = await startTcpProxy({ port: Number(new URL(endpoint).port) });
    onTestFinished(() => wire.close());
    const agent = startAgent(`http://127.0.0.1:${wire.port}`, tunnel, mcp.url);
    await agent.connected;

    const endings = new Map<string, Promise<CallEnding>>();
    for (let round = 0; round < CUT_ROUNDS; round += 1) {
      const name = callName();
      const before = await handedOutCount(cluster);
      if (round % 3 === 0) wire.setWire("frozen");
      const ending = callOnce(endpoint, tunnel, { name });
      endings.set(name, ending);
      const ended = ending.then(() => true);
      // By turns: cut with the command written and held back on the wire, cut at once, cut after the command passed.
      const isWritten = async () => (await handedOutCount(cluster)) > before;
      if (round % 3 === 0) await Promise.race([ended, until(isWritten, "the command to be written")]);
      if (round % 3 === 2)
        await Promise.race([ended, until(() => mcp.executed.includes(name), "the command to pass")]);
      const failedBefore = agent.failedPollCount;
      wire.reset();
      wire.setWire("flowing");
      await Promise.race([ended, until(() => agent.failedPollCount > failedBefore, "the agent to notice")]);
    }
    for (const [name, pending] of endings) {
      const ending = await within(pending, `the end of ${name}`);
      const runs = mcp.executed.filter((executed) => executed === name).length;
      expect({ name, runs, ending }).toSatisfy(
        () => (ending.kind === "answered" && runs === 1) || (runs <= 1 && isToldUnknown(ending)),
      );
    }
    expect((await poll(endpoint, tunnel)).status).toBe(204);
  },
  120_000,
);

function handedOutCount(cluster: Cluster): Promise<number> {
  return cluster.node("a").operator.metric("moor_commands_handed_out_total");
}

/** A poll that would be given whatever is still queued. */
function poll(endpoint: string, tunnel: FleetTunnel): Promise<Response> {
  return pollOnce(endpoint, tunnel, { instance: "f".repeat(32) });
}
