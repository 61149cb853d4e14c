// One link per pair of nodes, whatever happens to the network and to the nodes.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { Peer } from "../src/peer/transport/peer-network.ts";
import { checkProperty } from "./support/check-property.ts";
import { introduce, nodeEntry, PeerFleet, type FleetNode } from "./support/peer-fleet.ts";

test("P3 · of two connections dialled at the same time one stays, without an up and down in between", async () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const fleet = new PeerFleet({ seed, delayMs: 1, jitterMs: 30 });
    const { a, b } = await fleet.startPair();
    fleet.runtime.advance(10_000);
    expect([a.changes(), b.changes(), fleet.wires.openBetween("a", "b")], `seed ${seed}`).toEqual([
      ["up b/1"],
      ["up a/1"],
      1,
    ]);
  }
});

test("P3 · a node that starts anew replaces its old link at once: down, then up with the new incarnation", async () => {
  for (const restarted of ["a", "b"] as const) {
    const fleet = new PeerFleet();
    const nodes = await fleet.startPair();
    const other = restarted === "a" ? nodes.b : nodes.a;
    // The old process is gone without a word, as in a power cut.
    fleet.wires.setSilent("a", "b", true);
    fleet.wires.crash(restarted);
    await nodes[restarted].network.close();
    fleet.runtime.advance(50);
    fleet.wires.setSilent("a", "b", false);
    const anew = await fleet.start(restarted, { incarnation: "2" });
    anew.network.setNodes([nodeEntry("a"), nodeEntry("b")]);
    fleet.runtime.advance(500);
    expect(other.changes()).toEqual([`up ${restarted}/1`, `down ${restarted}/1`, `up ${restarted}/2`]);
    expect(anew.changes()).toHaveLength(1);
  }
});

test("P3 · a node that is known here before this one is known there gets its link as soon as it is", async () => {
  const fleet = new PeerFleet();
  const a = await fleet.start("a");
  const b = await fleet.start("b");
  a.network.setNodes([nodeEntry("b")]);
  fleet.runtime.advance(2_000);
  expect([a.changes(), b.changes()]).toEqual([[], []]);
  b.network.setNodes([{ id: "a", internalUrl: "tcp://nowhere:1" }]); // it cannot dial itself
  fleet.runtime.advance(10);
  expect([a.changes(), b.changes(), a.warnings]).toEqual([["up b/1"], ["up a/1"], []]);
});

test("P3 · a link that one side has lost is replaced once the other knows, or after a second", async () => {
  for (const [hearsAfterMs, upAfterMs] of [
    [400, 410],
    [undefined, 1_200],
  ] as const) {
    const fleet = new PeerFleet();
    const { a, b } = await fleet.startPair();
    fleet.wires.loseAt("b", "a");
    if (hearsAfterMs !== undefined) {
      fleet.runtime.advance(hearsAfterMs);
      expect([a.changes(), b.changes()]).toEqual([["up b/1"], ["up a/1", "down a/1"]]);
      for (const [near, far] of fleet.wires.connections.slice(0, -1))
        for (const wire of [near, far]) wire.fail();
    }
    fleet.runtime.advance(upAfterMs - (hearsAfterMs ?? 0));
    expect(a.changes()).toEqual(["up b/1", "down b/1", "up b/1"]);
    expect(b.changes()).toEqual(["up a/1", "down a/1", "up a/1"]);
  }
});

test("P10 · after a link that lived, the first try comes soon again; tries that fail come seldom", async () => {
  const fleet = new PeerFleet();
  const { a, b } = await fleet.startPair();
  fleet.wires.setSilent("a", "b", true);
  fleet.runtime.advance(60_000);
  fleet.wires.setSilent("a", "b", false);
  fleet.runtime.advance(20_000);
  expect(a.changes()).toEqual(["up b/1", "down b/1", "up b/1"]);
  fleet.wires.cut("a", "b");
  fleet.runtime.advance(210);
  expect(a.changes()).toHaveLength(5);
  const unreachable = (node: FleetNode) =>
    node.warnings.filter((line) => line.startsWith("peer-unreachable"));
  expect([unreachable(a).length, unreachable(b).length]).toEqual([1, 1]);
});

test("P3 · a node that is not listed any more loses its link and gets no other", async () => {
  const fleet = new PeerFleet();
  const { a, b } = await fleet.startPair();
  a.network.setNodes([]);
  expect([a.changes(), a.network.peer("b")]).toEqual([["up b/1", "down b/1"], undefined]);
  fleet.runtime.advance(30_000);
  expect([a.changes().length, b.changes()]).toEqual([2, ["up a/1", "down a/1"]]);
  a.network.setNodes([nodeEntry("b")]);
  fleet.runtime.advance(1_000);
  expect(a.changes()).toEqual(["up b/1", "down b/1", "up b/1"]);
});

test("P10 · a node that moved to another address is dialled there", async () => {
  const fleet = new PeerFleet();
  const a = await fleet.start("a");
  await fleet.start("b", { incarnation: "here" });
  a.network.setNodes([{ id: "b", internalUrl: "tcp://nowhere:1" }]);
  fleet.runtime.advance(5_000);
  expect(a.warnings).toEqual(["peer-unreachable network ECONNREFUSED"]);
  const b = await fleet.start("b", { incarnation: "there" });
  b.network.setNodes([{ id: "a", internalUrl: "tcp://nowhere:1" }]);
  a.network.setNodes([nodeEntry("b")]);
  fleet.runtime.advance(10);
  expect(a.changes()).toEqual(["up b/there"]);
});

const NODES = ["a", "b", "c"] as const;
const PAIRS: readonly (readonly [string, string])[] = [
  ["a", "b"],
  ["a", "c"],
  ["b", "c"],
];
type Step =
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "send" | "cut" | "silence" | "voice"; readonly pair: number }
  | { readonly kind: "restart" | "forget" | "remember"; readonly node: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("wait"), ms: fc.nat(3_000) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("send"), pair: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("cut", "silence", "voice"), pair: fc.nat(2) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom("restart", "forget", "remember"), node: fc.nat(2) }),
  },
);

function pairAt(index: number): readonly [string, string] {
  return PAIRS[index] ?? ["a", "b"];
}

/** Runs steps and checks after each that what a node was told makes sense; heals, and checks that all is well. */
async function runStory(seed: number, steps: readonly Step[]): Promise<void> {
  const story = new Story(seed);
  await story.begin();
  for (const each of steps) await story.take(each);
  story.heal();
}

class Story {
  readonly #fleet: PeerFleet;
  readonly #nodes = new Map<string, FleetNode>();
  readonly #sent = new Map<Peer, number>();
  #starts = 0;

  constructor(seed: number) {
    this.#fleet = new PeerFleet({ seed, delayMs: 1, jitterMs: 400, inFlightBytesMax: 64 * 1024 });
  }

  async begin(): Promise<void> {
    for (const id of NODES) await this.#start(id);
    introduce(...this.#nodes.values());
  }

  async take(each: Step): Promise<void> {
    const { wires, runtime } = this.#fleet;
    switch (each.kind) {
      case "wait":
        runtime.advance(each.ms);
        break;
      case "send":
        this.#send(...pairAt(each.pair));
        break;
      case "cut":
        wires.cut(...pairAt(each.pair));
        break;
      case "silence":
      case "voice":
        wires.setSilent(...pairAt(each.pair), each.kind === "silence");
        break;
      case "restart":
        await this.#restart(NODES[each.node] ?? "a");
        break;
      case "forget":
      case "remember": {
        const known = each.kind === "forget" ? [] : NODES.map((id) => nodeEntry(id));
        this.#nodes.get(NODES[each.node] ?? "a")?.network.setNodes(known);
        break;
      }
    }
    runtime.advance(1);
    for (const node of this.#nodes.values()) checkEvents(node);
  }

  heal(): void {
    const { wires, runtime } = this.#fleet;
    for (const pair of PAIRS) wires.setSilent(...pair, false);
    introduce(...this.#nodes.values());
    runtime.advance(20_000);
    const before = [...this.#nodes.values()].map((node) => node.changes().length);
    runtime.advance(60_000);
    const after = [...this.#nodes.values()].map((node) => node.changes().length);
    expect(after, "no flapping once all is well").toEqual(before);
    for (const [a, b] of PAIRS) {
      expect(wires.openBetween(a, b), `connections between ${a} and ${b}`).toBe(1);
      const [near, far] = [this.#nodes.get(a)?.network, this.#nodes.get(b)?.network];
      expect(near?.peer(b)?.incarnation).toBe(far?.self.incarnation);
      expect(far?.peer(a)?.incarnation).toBe(near?.self.incarnation);
    }
    for (const node of this.#nodes.values()) checkEvents(node);
  }

  async #start(id: string): Promise<void> {
    this.#starts += 1;
    this.#nodes.set(id, await this.#fleet.start(id, { incarnation: String(this.#starts) }));
  }

  async #restart(id: string): Promise<void> {
    const old = this.#nodes.get(id);
    this.#fleet.wires.crash(id);
    void old?.network.close();
    await this.#start(id);
    this.#nodes.get(id)?.network.setNodes(NODES.map((each) => nodeEntry(each)));
  }

  /** Small and large, both ways, numbered per link. */
  #send(a: string, b: string): void {
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      const peer = this.#nodes.get(from)?.network.peer(to);
      if (peer === undefined) continue;
      for (let count = 0; count < 3; count += 1) {
        const n = this.#sent.get(peer) ?? 0;
        if (peer.send({ head: { t: "small", n } })) this.#sent.set(peer, n + 1);
      }
      peer.send({ head: { t: "large" }, payload: new Uint8Array(200_000) });
    }
  }
}

/** Ups and downs of a peer alternate, messages come in between, small ones in order and without a gap. */
function checkEvents(node: FleetNode): void {
  const up = new Map<string, Peer>();
  const gone = new Set<Peer>();
  const next = new Map<Peer, number>();
  for (const event of node.events) {
    const { peer } = event;
    switch (event.kind) {
      case "up":
        expect([up.has(peer.nodeId), gone.has(peer)]).toEqual([false, false]);
        up.set(peer.nodeId, peer);
        break;
      case "down":
        expect(up.get(peer.nodeId)).toBe(peer);
        up.delete(peer.nodeId);
        gone.add(peer);
        break;
      case "message": {
        expect(up.get(peer.nodeId)).toBe(peer);
        if (event.message.head["t"] !== "small") break;
        const expected = next.get(peer) ?? 0;
        expect(event.message.head["n"]).toBe(expected);
        next.set(peer, expected + 1);
        break;
      }
    }
  }
  for (const [id, peer] of up) expect(node.network.peer(id)).toBe(peer);
}

test("P3 P7 · cuts, silence, restarts and forgetting never confuse two nodes; once all is well they have one link", async () => {
  await checkProperty(
    fc.asyncProperty(fc.nat(2 ** 30), fc.array(step, { maxLength: 40 }), runStory),
    150,
    "packages/server/test/peer-transport-pairs.test.ts",
  );
}, 60_000);
