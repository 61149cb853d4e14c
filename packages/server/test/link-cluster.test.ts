// Entries and the shards of homes on several nodes: what they say to each other over real peer links, and what they hear of
// moves, deaths and changes of the directory.

import { beforeEach, describe, expect, test } from "vitest";
import type { AppInstance, CommandId, HomeId } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import type { HomeRecord, ShardId } from "../src/directory/directory.ts";
import type { HomeShardPort, HomeStatus, LinkEntry, LinkId, SubmissionId } from "../src/peer/link-ports.ts";
import { LINK_AWAY_MS } from "../src/server-limits.ts";
import { RecordingEntry } from "./support/home-stage.ts";
import { SimulatedCluster, type ClusterNodeSpec } from "./support/simulated-cluster.ts";

/** Peer links come up, messages cross. Milliseconds. */
const SETTLE_MS = 1_000;
const SOON_MS = 100;
/** A result as large as it may be, and one that JSON.parse would change. */
const LARGE = `{"n": 1.0,"text":"${"é".repeat(32_000)}"}`;

/** The part of a node that holds links: notes what it is told. */
class RecordingLinks implements LinkEntry {
  readonly port: RecordingEntry;
  readonly heard: string[] = [];

  constructor(entry: string) {
    this.port = new RecordingEntry(entry);
  }

  shardsChanged(shards: ReadonlySet<ShardId>): void {
    this.heard.push(`shards ${[...shards].join(",")}`);
  }

  placementChanged(home: HomeId): void {
    this.heard.push(`placement ${home}`);
  }

  homeChanged(home: HomeId): void {
    this.heard.push(`home ${home}`);
  }

  keyRevoked(keyId: string): void {
    this.heard.push(`key ${keyId}`);
  }
}

class Fleet {
  readonly cluster: SimulatedCluster;
  readonly links = new Map<string, RecordingLinks>();
  home!: HomeRecord;
  #count = 0;

  constructor(nodes: readonly ClusterNodeSpec[]) {
    this.cluster = new SimulatedCluster({
      nodes,
      createLinks: (_core, { spec, incarnation }) => {
        const links = new RecordingLinks(incarnation);
        this.links.set(spec.id, links);
        return links;
      },
    });
  }

  async start(): Promise<void> {
    this.home = this.cluster.truth.addHome({ boxKey: "box-key-1" });
    await this.cluster.advance(SETTLE_MS);
  }

  at(node: string): RecordingEntry {
    const links = this.links.get(node);
    if (links === undefined) throw new Error(`no node ${node}`);
    return links.port;
  }

  /** The way from a node's entry to a shard. */
  port(node: string, shard = "s1"): HomeShardPort | undefined {
    return this.cluster.node(node).core.reach.homeShardPort(shard as ShardId);
  }

  /** Registers a link with the home's owner as the node knows it. */
  register(
    node: string,
    role: "box" | "app",
    again?: { linkId: LinkId; generation: number | undefined },
  ): LinkId {
    this.#count += 1;
    const { entry } = this.at(node);
    const linkId = again?.linkId ?? (`${entry}-${this.#count}` as LinkId);
    const { id: home } = this.home;
    const placement = this.cluster.node(node).knowledge.placements.best(home);
    if (placement === undefined) throw new Error("no placement");
    this.port(node, placement.shard)?.registerLink({
      linkId,
      entry,
      home,
      role,
      app: role === "app" ? ("phone" as AppInstance) : undefined,
      isFollowing: true,
      credential: role === "app" ? "key_1" : "box-key-1",
      generation: again?.generation,
      placement,
    });
    return linkId;
  }

  submit(node: string, id: string, data = "{}"): SubmissionId {
    this.#count += 1;
    const { entry } = this.at(node);
    const submission = `${entry}-${this.#count}` as SubmissionId;
    const placement = this.cluster.node(node).knowledge.placements.best(this.home.id) ?? this.home.placement;
    this.port(node, placement.shard)?.submitCommand({
      submission,
      entry,
      home: this.home.id,
      id: id as CommandId,
      app: "phone" as AppInstance,
      remainingMs: 60_000,
      data,
      placement,
      isAgain: false,
    });
    return submission;
  }

  /** What the owner's node shows of the home. */
  async status(node = "c", shard = "s1"): Promise<HomeStatus | undefined> {
    let found: HomeStatus | undefined;
    this.port(node, shard)?.describeHome(this.home.id, (status) => (found = status));
    await this.cluster.advance(SOON_MS);
    return found;
  }
}

describe("a home on one node, its box and its app on two others", () => {
  let fleet: Fleet;
  let box: LinkId;
  let generation: number;

  beforeEach(async () => {
    fleet = new Fleet([
      { id: "a", shards: ["s1"] },
      { id: "b", shards: ["s2"] },
      { id: "c", shards: [] },
    ]);
    await fleet.start();
    box = fleet.register("b", "box");
    fleet.register("c", "app");
    await fleet.cluster.advance(SOON_MS);
    generation = (await fleet.status())?.box?.generation ?? 0;
    fleet.at("b").take();
    fleet.at("c").take();
  });

  verifies(
    "L31",
    "command, ack and result cross the nodes byte for byte, as large as they may be",
    async () => {
      const submission = fleet.submit("c", "c1", LARGE);
      await fleet.cluster.advance(SOON_MS);
      expect(fleet.at("b").take()).toMatchObject([
        ["deliverCommand", { linkId: box, id: "c1", data: LARGE }],
      ]);
      expect(fleet.at("c").take()).toEqual([["commandWritten", submission]]);
      fleet.port("b")?.boxAnswered(fleet.home.id, box, "c1" as CommandId, { kind: "result", data: LARGE });
      await fleet.cluster.advance(SOON_MS);
      expect(fleet.at("c").take()).toEqual([["commandEnded", submission, { kind: "result", data: LARGE }]]);
    },
  );

  verifies("L31", "events keep their order, small ones behind large ones too", async () => {
    const events = [LARGE, "1", LARGE, "2"];
    for (const data of events) fleet.port("b")?.boxEvent(fleet.home.id, box, data);
    await fleet.cluster.advance(SOON_MS);
    expect(
      fleet
        .at("c")
        .takeOnly("sendEvent")
        .map(([, data]) => data),
    ).toEqual(events);
  });

  verifies("L34", "the snapshot is read from any node", async () => {
    fleet.port("b")?.boxNow(fleet.home.id, box, '{"w": 1.0}');
    await fleet.cluster.advance(SOON_MS);
    const outcomes: unknown[] = [];
    const { placement } = fleet.home;
    for (const node of ["a", "b", "c"])
      fleet.port(node)?.readNow(fleet.home.id, placement, (outcome) => outcomes.push(outcome));
    await fleet.cluster.advance(SOON_MS);
    const snapshot = { kind: "snapshot", data: '{"w": 1.0}', etag: expect.any(String) };
    expect(outcomes).toMatchObject([snapshot, snapshot, snapshot]);
  });

  verifies(
    ["L20", "L31"],
    "a cut between owner and box: unknown, not offline; what was said meanwhile arrives, and nothing is lost",
    async () => {
      const submission = fleet.submit("c", "c1");
      await fleet.cluster.advance(SOON_MS);
      fleet.at("c").take();
      const way = fleet.port("b");
      fleet.cluster.network.cut("a", "b");
      await fleet.cluster.advance(5);
      expect(fleet.port("b")).toBeUndefined();
      way?.boxAnswered(fleet.home.id, box, "c1" as CommandId, { kind: "result", data: "1" });
      expect(fleet.at("c").takeOnly("sendPresence")).toMatchObject([[expect.anything(), { box: "unknown" }]]);
      await fleet.cluster.advance(SETTLE_MS);
      expect(fleet.links.get("b")?.heard.filter((line) => line === "shards s1").length).toBeGreaterThan(1);
      fleet.register("b", "box", { linkId: box, generation });
      await fleet.cluster.advance(SOON_MS);
      expect(fleet.at("c").take()).toMatchObject([
        ["commandEnded", submission, { kind: "result" }],
        ["sendPresence", expect.anything(), { box: "online" }],
      ]);
    },
  );

  verifies(
    "L31",
    "an owner that finds its box's entry silent waits for it, then calls the box offline",
    async () => {
      fleet.cluster.network.setSilent("a", "b", true);
      await fleet.cluster.advance(9_000);
      expect((await fleet.status())?.presence.box).toBe("unknown");
      await fleet.cluster.advance(LINK_AWAY_MS);
      expect(await fleet.status()).toMatchObject({ presence: { box: "offline" }, box: undefined });
    },
  );

  verifies(
    "L31",
    "links of a process that was replaced by a new one are gone as soon as that shows",
    async () => {
      fleet.submit("c", "c1");
      await fleet.cluster.advance(SOON_MS);
      fleet.cluster.start(fleet.cluster.crash("b"));
      await fleet.cluster.advance(3_000);
      expect(await fleet.status()).toMatchObject({ presence: { box: "offline" }, box: undefined });
      expect(
        fleet
          .at("c")
          .takeEndings()
          .map(([, kind]) => kind),
      ).toEqual(["unknown"]);
    },
  );

  verifies(
    ["L21", "L23"],
    "a move gives links back, then the new owner takes them, with their generation",
    async () => {
      fleet.cluster.move("c", fleet.home.id, "s2");
      await fleet.cluster.advance(SOON_MS);
      const placement = fleet.cluster.truth.placement(fleet.home.id);
      const ending = { kind: "not-owner", placement };
      expect(fleet.at("b").takeOnly("closeLink")).toEqual([[box, ending]]);
      expect(fleet.at("c").takeOnly("closeLink")).toEqual([[expect.any(String), ending]]);
      for (const { heard } of fleet.links.values()) expect(heard).toContain(`placement ${fleet.home.id}`);
      expect((await fleet.status("c", "s2"))?.presence.box).toBe("unknown");
      fleet.register("b", "box", { linkId: box, generation });
      await fleet.cluster.advance(SOON_MS);
      expect(await fleet.status("c", "s2")).toMatchObject({
        presence: { box: "online" },
        box: { generation },
      });
      fleet.register("c", "box");
      await fleet.cluster.advance(SOON_MS);
      expect((await fleet.status("c", "s2"))?.box?.generation).toBe((placement?.revision ?? 0) + 1);
    },
  );

  verifies(
    "L23",
    "a new process of the owner numbers above the old one, without asking anybody",
    async () => {
      fleet.cluster.start(fleet.cluster.crash("a"));
      await fleet.cluster.advance(3_000);
      fleet.register("b", "box");
      await fleet.cluster.advance(SOON_MS);
      expect((await fleet.status())?.box?.generation).toBeGreaterThan(generation + 1_000);
    },
  );

  test("changes of the directory end links at the owner's node even if their entry has not heard", async () => {
    const { truth } = fleet.cluster;
    for (const node of ["b", "c"]) fleet.cluster.node(node).replica?.setCut(true);
    const { id: keyId } = truth.addHomeToken("app", fleet.home.id);
    truth.revokeKey(keyId);
    truth.updateHome(fleet.home.id, { boxKey: "box-key-2" });
    await fleet.cluster.advance(SOON_MS);
    expect(fleet.at("b").takeOnly("closeLink")).toEqual([[box, { kind: "revoked" }]]);
    expect(fleet.at("c").takeOnly("closeLink")).toEqual([[expect.any(String), { kind: "revoked" }]]);
    expect(fleet.links.get("a")?.heard).toEqual(
      expect.arrayContaining([`key ${keyId}`, `home ${fleet.home.id}`]),
    );
    const late = fleet.register("c", "app");
    await fleet.cluster.advance(SOON_MS);
    expect(fleet.at("c").takeOnly("linkRefused")).toEqual([[late, { kind: "revoked" }]]);
  });

  test("a home that is deleted ends its links", async () => {
    fleet.cluster.truth.deleteHome(fleet.home.id);
    await fleet.cluster.advance(SOON_MS);
    expect(fleet.at("b").takeOnly("closeLink")).toEqual([[box, { kind: "home-gone" }]]);
    expect(fleet.at("c").takeOnly("closeLink")).toEqual([[expect.any(String), { kind: "home-gone" }]]);
  });
});

describe("nodes of two versions", () => {
  test("one that knows nothing of links is out of reach for them, and calls go on", async () => {
    const fleet = new Fleet([
      { id: "a", shards: ["s1"], versions: [1] },
      { id: "b", shards: ["s2"] },
    ]);
    await fleet.start();
    const { reach } = fleet.cluster.node("b").core;
    expect(reach.homeShardPort("s1" as ShardId)).toBeUndefined();
    expect(reach.shardPort("s1" as ShardId)).toBeDefined();
  });
});
