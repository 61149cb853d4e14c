// Random weeks of a fleet on virtual time: moves, links cut and silent, feeds behind, nodes killed and started again,
// while callers call and agents poll by the client machine of @moor/protocol.
//
// Rerun one seed: MOOR_SIM_SEED=17 npx vitest run --project sim test/sim/cluster
// More of them:   MOOR_SIM_RUNS=2000 npx vitest run --project sim test/sim/cluster

import {
  createPollRouting,
  encodeCapabilities,
  startPoll,
  stepPollRouting,
  type PollRouting,
} from "@moor/protocol";
import { classifyPollAnswer } from "@moor/protocol";
import { expect, test } from "vitest";
import type { FakeExchange } from "../../packages/server/test/support/fake-exchange.ts";
import {
  callRequest,
  commandsOf,
  pollRequest,
  responseRequest,
  type ReceivedCommand,
} from "../../packages/server/test/support/requests.ts";
import {
  SimulatedCluster,
  type ClusterNodeSpec,
} from "../../packages/server/test/support/simulated-cluster.ts";
import { eachSeed } from "./each-seed.ts";

const RUNS = 40;
const STEPS_PER_RUN = 220;
const SHARDS = ["s1", "s2", "s3"] as const;
const NODES: readonly ClusterNodeSpec[] = [
  { id: "a", shards: ["s1"] },
  { id: "b", shards: ["s2"] },
  { id: "c", shards: ["s3"] },
  { id: "e", shards: [], isBootstrap: true },
];
/** Corrections in a row that no client may see: three tokenless ones, and news on the way. */
const CORRECTIONS_IN_A_ROW_MAX = 8;

type Tunnel = Awaited<ReturnType<SimulatedCluster["tunnel"]>>;

interface Call {
  readonly serial: number;
  readonly node: string;
  readonly exchange: FakeExchange;
  hasLeft: boolean;
}

interface Work {
  readonly tunnel: number;
  readonly command: ReceivedCommand;
  readonly serial: number;
}

/** An agent with one poll in flight at a time, at whatever node its load balancer chose. */
interface Agent {
  readonly tunnel: number;
  readonly instance: string;
  readonly isCapable: boolean;
  routing: PollRouting;
  ticket: ReturnType<typeof startPoll>;
  poll: FakeExchange | undefined;
  correctionsInARow: number;
}

class World {
  readonly cluster: SimulatedCluster;
  readonly tunnels: Tunnel[] = [];
  readonly calls: Call[] = [];
  readonly agents: Agent[] = [];
  readonly working: Work[] = [];
  readonly executions = new Map<number, number>();
  readonly down: ClusterNodeSpec[] = [];
  isCalm = false;

  constructor(seed: number) {
    this.cluster = new SimulatedCluster({ seed, nodes: NODES, isCorrecting: true });
  }

  async start(): Promise<void> {
    await this.cluster.advance(2_000);
    for (let at = 0; at < 3; at += 1) {
      this.tunnels.push(await this.cluster.tunnel(SHARDS[at] ?? "s1", { isSeen: true, deadlineMs: 30_000 }));
      for (const isCapable of [true, false]) {
        const routing = createPollRouting();
        const instance = `${at}${isCapable ? "c" : "p"}`.repeat(16);
        const ticket = startPoll(routing);
        this.agents.push({
          tunnel: at,
          instance,
          isCapable,
          routing,
          ticket,
          poll: undefined,
          correctionsInARow: 0,
        });
      }
    }
  }

  async step(): Promise<void> {
    const actions: (() => Promise<void> | void)[] = [
      () => this.call(),
      () => this.call(),
      () => this.answer("jsonrpc_response"),
      () => this.answer("jsonrpc_response"),
      () => this.answer("jsonrpc_notify"),
      () => this.callerLeaves(),
      () => this.cluster.advance(this.pick(1_500)),
      () => this.cluster.advance(this.pick(40)),
    ];
    if (!this.isCalm)
      actions.push(
        () => this.move(),
        () => this.move(),
        () => this.trouble(),
      );
    await actions[this.pick(actions.length)]?.();
    await this.runAgents();
  }

  pick(count: number): number {
    return Math.floor(this.cluster.runtime.random() * count);
  }

  upNode(): string | undefined {
    const up = NODES.filter(({ id }) => this.cluster.isRunning(id));
    return up[this.pick(up.length)]?.id;
  }

  at(index: number): Tunnel {
    const tunnel = this.tunnels[index];
    if (tunnel === undefined) throw new Error("no such tunnel");
    return tunnel;
  }

  async call(): Promise<void> {
    const node = this.upNode();
    if (node === undefined) return;
    const { tunnel, connectorKey } = this.at(this.pick(3));
    const serial = this.calls.length;
    const body = JSON.stringify({ jsonrpc: "2.0", id: serial, method: "m" });
    const exchange = await this.cluster.send(node, callRequest(tunnel, connectorKey, { body }));
    this.calls.push({ serial, node, exchange, hasLeft: false });
  }

  callerLeaves(): void {
    const call = this.calls[this.pick(this.calls.length)];
    if (call === undefined || call.exchange.isEnded || this.pick(4) > 0) return;
    call.hasLeft = true;
    call.exchange.leave();
  }

  async answer(type: string): Promise<void> {
    const at = this.pick(this.working.length);
    const work = this.working[at];
    const node = this.upNode();
    if (work === undefined || node === undefined) return;
    if (type === "jsonrpc_response") this.working.splice(at, 1);
    const { tunnel, agentKey } = this.at(work.tunnel);
    const fields = {
      resp_type: type,
      resp_json: { jsonrpc: "2.0", id: work.serial, result: { serial: work.serial } },
    };
    await this.cluster.send(node, responseRequest(tunnel, agentKey, { command: work.command, fields }));
  }

  move(): void {
    const node = this.upNode();
    const shard = SHARDS[this.pick(3)];
    if (node !== undefined && shard !== undefined)
      this.cluster.move(node, this.at(this.pick(3)).tunnel.id, shard);
  }

  trouble(): void {
    const [x, y] = [NODES[this.pick(4)]?.id ?? "a", NODES[this.pick(4)]?.id ?? "b"];
    const kinds: (() => void)[] = [
      () => this.cluster.network.cut(x, y),
      () => {
        this.cluster.network.setSilent(x, y, true);
        this.cluster.runtime.schedule(this.pick(9_000), () => this.cluster.network.setSilent(x, y, false));
      },
      () => {
        const replica = this.cluster.isRunning(x) ? this.cluster.node(x).replica : undefined;
        replica?.setCut(true);
        this.cluster.runtime.schedule(this.pick(5_000), () => replica?.setCut(false));
      },
      () => this.crash(x),
    ];
    kinds[this.pick(kinds.length)]?.();
  }

  crash(id: string): void {
    if (!this.cluster.isRunning(id) || this.down.length > 0) return;
    const spec = this.cluster.crash(id);
    this.down.push(spec);
    for (const agent of this.agents) if (agent.poll?.isGone === true) this.pollEnded(agent);
    this.cluster.runtime.schedule(this.pick(8_000), () => {
      this.cluster.start(spec);
      this.down.pop();
    });
  }

  /** Every agent whose poll has ended reads it and polls again. */
  async runAgents(): Promise<void> {
    for (const agent of this.agents) {
      if (agent.poll !== undefined && (agent.poll.isEnded || agent.poll.isGone)) this.pollEnded(agent);
      if (agent.poll === undefined) await this.poll(agent);
    }
  }

  async poll(agent: Agent): Promise<void> {
    const node = this.upNode();
    if (node === undefined) return;
    const { tunnel, agentKey } = this.at(agent.tunnel);
    agent.ticket = startPoll(agent.routing);
    const headers = [
      ...(agent.isCapable ? ["X-Tunnel-Client-Capabilities", encodeCapabilities(["wrong-cluster-v1"])] : []),
      ...(agent.isCapable && agent.ticket.token !== undefined
        ? ["X-Tunnel-Shard-Token", agent.ticket.token]
        : []),
    ];
    const query = `limit=2&timeout_ms=${500 + this.pick(5_000)}`;
    agent.poll = await this.cluster.send(
      node,
      pollRequest(tunnel, agentKey, { query, instance: agent.instance, headers }),
    );
  }

  pollEnded(agent: Agent): void {
    const { poll } = agent;
    agent.poll = undefined;
    if (poll === undefined) return;
    const ending =
      poll.isGone || poll.status === undefined
        ? ({ kind: "fault", fault: "reset" } as const)
        : ({
            kind: "answer",
            head: {
              status: poll.status,
              headerLines: Object.entries(poll.headers).map(([n, v]) => [n, String(v)] as const),
            },
            body: Buffer.concat(poll.chunks),
            bodyEnding: "complete",
          } as const);
    const outcome = classifyPollAnswer(ending, false);
    agent.routing = stepPollRouting(agent.routing, agent.ticket, outcome).state;
    agent.correctionsInARow = outcome.kind === "correction" ? agent.correctionsInARow + 1 : 0;
    expect(
      agent.isCapable || outcome.kind !== "correction",
      "an agent without the capability was corrected",
    ).toBe(true);
    expect(agent.correctionsInARow, "an agent loops").toBeLessThanOrEqual(CORRECTIONS_IN_A_ROW_MAX);
    if (outcome.kind !== "success" || poll.status !== 200) return;
    for (const command of commandsOf(poll)) {
      const serial = (command.jsonrpc as { id: number }).id;
      this.executions.set(serial, (this.executions.get(serial) ?? 0) + 1);
      this.working.push({ tunnel: agent.tunnel, command, serial });
    }
  }

  /** No more trouble: everything heals, and what can be answered is. */
  async calmDown(): Promise<void> {
    this.isCalm = true;
    await this.cluster.advance(15_000);
    const before = this.calls.length;
    for (let round = 0; round < 30; round += 1) {
      await this.runAgents();
      if (round < 10) await this.call();
      while (this.working.length > 0) await this.answer("jsonrpc_response");
      await this.cluster.advance(1_000);
    }
    for (const call of this.calls.slice(before)) {
      expect([call.serial, call.exchange.status], "a call in calm weather failed").toEqual([
        call.serial,
        200,
      ]);
    }
    await this.cluster.advance(60_000);
  }
}

async function runSeed(seed: number): Promise<void> {
  const world = new World(seed);
  await world.start();
  for (let step = 0; step < STEPS_PER_RUN; step += 1) await world.step();
  await world.calmDown();
  for (const { serial, exchange, hasLeft } of world.calls) {
    const times = world.executions.get(serial) ?? 0;
    expect(times, `call ${serial} was executed more than once`).toBeLessThanOrEqual(1);
    if (exchange.isGone && !hasLeft) continue; // Its node was killed.
    expect(exchange.isEnded || hasLeft, `call ${serial} never ended`).toBe(true);
    if (exchange.status === 503 || exchange.status === 429) {
      expect(times, `call ${serial} was refused as retryable after its hand-out`).toBe(0);
    }
    if (exchange.status === 200 && exchange.headers["Content-Type"] === "application/json") {
      expect(exchange.json, `call ${serial} got another's answer`).toMatchObject({ result: { serial } });
    }
  }
  for (const { id } of NODES) {
    const { entry } = world.cluster.node(id).core;
    expect([id, entry.calls.size], "calls are left").toEqual([id, 0]);
  }
}

test("moves, cuts, lags and deaths: executed at most once, ended once, healed, and nobody loops", async () => {
  await eachSeed("test/sim/cluster", RUNS, runSeed);
});
