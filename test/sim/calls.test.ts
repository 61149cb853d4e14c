// Random weeks of a node on virtual time: callers, agents, hang-ups, dead sockets, moves, restarts of agents.
//
// Rerun one seed: MOOR_SIM_SEED=17 npx vitest run --project sim
// More of them:   MOOR_SIM_RUNS=5000 npx vitest run --project sim

import { expect, test } from "vitest";
import type { FakeExchange } from "../../packages/server/test/support/fake-exchange.ts";
import {
  commandsOf,
  SimulatedNode,
  type ReceivedCommand,
} from "../../packages/server/test/support/simulated-node.ts";
import { eachSeed } from "./each-seed.ts";

const RUNS = 150;
const STEPS_PER_RUN = 250;

interface Call {
  readonly serial: number;
  readonly exchange: FakeExchange;
  hasLeft: boolean;
}

interface Poll {
  readonly tunnel: number;
  readonly exchange: FakeExchange;
  isRead: boolean;
}

class World {
  readonly node: SimulatedNode;
  readonly tunnels: readonly ReturnType<SimulatedNode["tunnel"]>[];
  readonly calls: Call[] = [];
  readonly polls: Poll[] = [];
  /** Commands that reached an agent and are not answered yet. */
  readonly working: {
    readonly tunnel: number;
    readonly command: ReceivedCommand;
    readonly serial: number;
  }[] = [];
  /** How often each call's command was given to an agent. */
  readonly handedOut = new Map<number, number>();

  constructor(seed: number) {
    this.node = new SimulatedNode({ seed, shards: ["s1", "s2", "s3"] });
    this.tunnels = [0, 1, 2].map((at) =>
      this.node.tunnel({ deadlineMs: 5_000 + at * 20_000, isSeen: at === 2 }),
    );
  }

  async step(): Promise<void> {
    const actions = [
      () => this.call(),
      () => this.call(),
      () => this.poll(),
      () => this.poll(),
      () => this.answer("jsonrpc_response"),
      () => this.answer("jsonrpc_response"),
      () => this.answer("jsonrpc_notify"),
      async () => this.callerLeaves(),
      async () => this.agentLeaves(),
      async () => this.socketDiesUnseen(),
      async () => this.move(),
      () => this.node.advance(this.pick(4_000)),
    ];
    await actions[this.pick(actions.length)]?.();
    this.readPolls();
  }

  /** Ends everything that can end by time alone. */
  async quiesce(): Promise<void> {
    await this.node.advance(120_000);
    this.readPolls();
  }

  pick(count: number): number {
    return Math.floor(this.node.runtime.random() * count);
  }

  readPolls(): void {
    for (const poll of this.polls) {
      if (poll.isRead || poll.exchange.status !== 200) continue;
      poll.isRead = true;
      for (const command of commandsOf(poll.exchange)) {
        const serial = (command.jsonrpc as { id: number }).id;
        this.handedOut.set(serial, (this.handedOut.get(serial) ?? 0) + 1);
        this.working.push({ tunnel: poll.tunnel, command, serial });
      }
    }
  }

  async call(): Promise<void> {
    const { tunnel, connectorKey } = this.at(this.pick(3));
    const serial = this.calls.length;
    const body = JSON.stringify({ jsonrpc: "2.0", id: serial, method: "m" });
    this.calls.push({
      serial,
      exchange: await this.node.call(tunnel, connectorKey, { body }),
      hasLeft: false,
    });
  }

  async poll(): Promise<void> {
    const tunnel = this.pick(3);
    const { tunnel: record, agentKey } = this.at(tunnel);
    const instance = "abc".charAt(this.pick(3)).repeat(32);
    const query = `limit=${1 + this.pick(3)}&timeout_ms=${this.pick(10_000)}`;
    this.polls.push({
      tunnel,
      exchange: await this.node.poll(record, agentKey, { query, instance }),
      isRead: false,
    });
  }

  async answer(type: string): Promise<void> {
    const at = this.pick(this.working.length);
    const work = this.working[at];
    if (work === undefined) return;
    if (type === "jsonrpc_response") this.working.splice(at, 1);
    const { tunnel, agentKey } = this.at(work.tunnel);
    const json = { jsonrpc: "2.0", id: work.serial, result: { serial: work.serial } };
    await this.node.respond(tunnel, agentKey, work.command, { resp_type: type, resp_json: json });
  }

  callerLeaves(): void {
    const call = this.calls[this.pick(this.calls.length)];
    if (call === undefined || call.exchange.isEnded) return;
    call.hasLeft = true;
    call.exchange.leave();
  }

  agentLeaves(): void {
    this.polls[this.pick(this.polls.length)]?.exchange.leave();
  }

  /** The peer is gone but its close event has not been heard. */
  socketDiesUnseen(): void {
    const poll = this.polls[this.pick(this.polls.length)];
    if (poll !== undefined && !poll.exchange.isEnded) poll.exchange.isGone = true;
  }

  move(): void {
    this.node.replica.move(this.at(this.pick(3)).tunnel.id, `s${1 + this.pick(3)}`);
  }

  at(index: number): ReturnType<SimulatedNode["tunnel"]> {
    const found = this.tunnels[index];
    if (found === undefined) throw new Error("no such tunnel");
    return found;
  }
}

async function runSeed(seed: number): Promise<void> {
  const world = new World(seed);
  for (let step = 0; step < STEPS_PER_RUN; step += 1) await world.step();
  await world.quiesce();
  for (const { serial, exchange, hasLeft } of world.calls) {
    const times = world.handedOut.get(serial) ?? 0;
    expect(times, `call ${serial} was handed out more than once`).toBeLessThanOrEqual(1);
    expect(exchange.isEnded || hasLeft, `call ${serial} never ended`).toBe(true);
    if (exchange.status === 503 || exchange.status === 429) {
      expect(times, `call ${serial} was refused as retryable after its hand-out`).toBe(0);
    }
    if (
      exchange.status === 200 &&
      exchange.isEnded &&
      exchange.headers["Content-Type"] === "application/json"
    ) {
      expect(times, `call ${serial} was answered without a hand-out`).toBe(1);
      expect(exchange.json, `call ${serial} got another's answer`).toMatchObject({ result: { serial } });
    }
  }
  expect([world.node.entry.calls.size, world.node.entry.polls.size]).toEqual([0, 0]);
  for (const shard of world.node.shards.values()) {
    expect(shard.gauges()).toMatchObject({ callsQueued: 0, pollsWaiting: 0 });
  }
}

test("each call is handed out at most once, ends once, and gets its own answer, whatever happens", async () => {
  await eachSeed("test/sim/calls", RUNS, runSeed);
});
