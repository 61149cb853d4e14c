// Random weeks of boxes and apps on virtual time: the real clients, entries, shards and peer links, while homes move, nodes
// are killed, links between nodes are cut or silent, feeds are behind, sockets break or go dark, and boxes lose power.
//
// Rerun one seed: MOOR_SIM_SEED=17 npx vitest run --project sim test/sim/links
// More of them:   MOOR_SIM_RUNS=2000 npx vitest run --project sim test/sim/links

import { parseLinkFrame, type HomeId, type LinkFrame } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { expect } from "vitest";
import {
  anyBoxKey,
  SimulatedApp,
  SimulatedBox,
  type LedgerEntry,
} from "../../packages/server/test/support/simulated-home.ts";
import { SimulatedLinks, type SimulatedSocket } from "../../packages/server/test/support/simulated-links.ts";
import type { ClusterNodeSpec } from "../../packages/server/test/support/simulated-cluster.ts";
import { eachSeed } from "./each-seed.ts";

const RUNS = 20;
const TWIN_RUNS = 3;
const STEPS_PER_RUN = 250;
/** For one that hangs, or for some thousand seeds. */
const DEADLINE_MS = 3_600_000;
const SHARDS = ["s1", "s2", "s3"] as const;
const NODES: readonly ClusterNodeSpec[] = [
  { id: "a", shards: ["s1"] },
  { id: "b", shards: ["s2"] },
  { id: "c", shards: ["s3"] },
  { id: "d", shards: [] },
];
/** Long enough for silence to be noticed, for the longest backoff, and for whatever holds newcomers off meanwhile. */
const CALM_MS = 300_000;
/** Longest TTL in the simulation, and what may follow it. Milliseconds. */
const TTL_MS_MAX = 15_000;
const ENDING_MS_MAX = 60_000;

/** What one submission of a command has heard. */
interface Submission {
  readonly id: string;
  /** The node that was asked for it, if it is a one-shot. */
  readonly node: string | undefined;
  isAcked: boolean;
  ending: string | undefined;
}

/** What an app's socket has carried about one command id. */
interface Exchange {
  readonly commands: number;
  readonly endings: number;
}

class World {
  readonly links: SimulatedLinks;
  readonly homes: HomeId[] = [];
  readonly boxes = new Map<HomeId, SimulatedBox>();
  readonly apps: SimulatedApp[] = [];
  readonly ledger = new Map<string, LedgerEntry>();
  readonly submissions: Submission[] = [];
  readonly down: ClusterNodeSpec[] = [];
  /** Box links that came online, by home. */
  readonly greetings = new Map<string, number>();
  /** Highest generation of each home that was given by an owner who knew of its newest placement. */
  readonly #generations = new Map<string, number>();
  #violation: unknown;
  readonly #exchanges = new Map<SimulatedSocket, Map<string, Exchange>>();

  constructor(seed: number) {
    this.links = new SimulatedLinks(seed, NODES, {
      toClient: (socket, text) => this.#written(socket, text),
      toEntry: (socket, text) => this.#said(socket, text),
    });
  }

  get cluster() {
    return this.links.cluster;
  }

  async start(): Promise<void> {
    await this.cluster.advance(2_000);
    for (const [at, shard] of SHARDS.entries()) {
      const isFollowing = at < 2;
      const caps = isFollowing ? ["shard"] : [];
      const { id } = this.cluster.truth.addHome({ boxKey: anyBoxKey() });
      this.homes.push(id);
      this.cluster.truth.move(id, shard);
      const token = this.cluster.truth.addHomeToken("app", id).text;
      const box = new SimulatedBox(this.links, id, this.ledger, caps);
      this.boxes.set(id, box);
      await this.cluster.advance(50);
      box.start();
      // Of each home one app follows, and one does not.
      for (const [name, appCaps] of [
        ["phone", ["shard"]],
        ["wall", []],
      ] as const) {
        this.apps.push(new SimulatedApp(this.links, id, name, appCaps, token));
      }
    }
    await this.cluster.advance(3_000);
  }

  pick(count: number): number {
    return Math.floor(this.cluster.runtime.random() * count);
  }

  oneOf<Item>(items: readonly Item[]): Item {
    const item = items[this.pick(items.length)];
    if (item === undefined) throw new Error("nothing to pick from");
    return item;
  }

  async step(): Promise<void> {
    const actions: (() => Promise<void> | void)[] = [
      () => this.send(this.newId(this.oneOf(this.homes))),
      () => this.send(this.newId(this.oneOf(this.homes))),
      () => this.repeat(),
      () => this.oneShot(this.newId(this.oneOf(this.homes))),
      () => this.boxes.get(this.oneOf(this.homes))?.tellEvent({ e: 1 }),
      () => this.cluster.advance(this.pick(50)),
      () => this.cluster.advance(this.pick(1_500)),
      () => this.cluster.advance(this.pick(6_000)),
      () => this.move(),
      () => this.trouble(),
    ];
    await this.oneOf(actions)();
    await this.advance(this.pick(20));
  }

  async advance(byMs: number): Promise<void> {
    await this.cluster.advance(byMs);
    if (this.#violation !== undefined) throw this.#violation;
  }

  newId(home: HomeId): string {
    const id = `c${this.ledger.size}`;
    this.ledger.set(id, { home, submissions: 0, written: 0, acted: 0, endings: [] });
    return id;
  }

  /** Some app of the home sends a command. */
  send(id: string): Submission {
    const entry = this.entry(id);
    const app = this.oneOf(
      this.apps
        .filter(({ home, isOnline }) => home === entry.home && isOnline)
        .concat(this.apps.filter(({ home }) => home === entry.home)),
    );
    const submission = this.#submission(id, undefined);
    const ttlMs = 1 + this.pick(TTL_MS_MAX);
    void app.link
      .send({ id, ttlMs, data: { id }, onAcked: () => void (submission.isAcked = true) })
      .then((ending) => {
        this.#ended(submission, ending.kind, ending.kind === "result" ? ending.data.text : undefined);
      });
    return submission;
  }

  /** A one-shot at some node. */
  oneShot(id: string): Submission {
    const { home } = this.entry(id);
    const node = this.oneOf(NODES).id;
    const submission = this.#submission(id, node);
    const table = this.links.table(node);
    if (table === undefined) {
      this.#ended(submission, "not_delivered", undefined);
      return submission;
    }
    table.commands.submit({
      home,
      id: id as never,
      app: undefined,
      ttlMs: 1 + this.pick(TTL_MS_MAX),
      data: JSON.stringify({ id }),
      waiter: {
        written: () => {},
        ended: (end) => {
          const resultJson = end.kind === "result" ? end.data : undefined;
          // What a dead process still does is heard by nobody.
          if (this.links.table(node) === table)
            this.#ended(submission, end.kind.replace("-", "_"), resultJson);
        },
      },
    });
    return submission;
  }

  /** Somebody asks again for a command that has ended for everybody. */
  repeat(): void {
    const ended = [...this.ledger].filter(([, { submissions, endings }]) => submissions === endings.length);
    const [id] = ended.length === 0 ? [undefined] : this.oneOf(ended.slice(-20));
    if (id === undefined) return;
    if (this.pick(2) === 0) this.send(id);
    else this.oneShot(id);
  }

  move(): void {
    const up = NODES.filter(({ id }) => this.cluster.isRunning(id));
    if (up.length > 0) this.cluster.move(this.oneOf(up).id, this.oneOf(this.homes), this.oneOf(SHARDS));
  }

  trouble(): void {
    const { network, runtime } = this.cluster;
    const [x, y] = [this.oneOf(NODES).id, this.oneOf(NODES).id];
    const sockets = [...this.links.sockets];
    const kinds: (() => void)[] = [
      () => network.cut(x, y),
      () => {
        network.setSilent(x, y, true);
        runtime.schedule(this.pick(20_000), () => network.setSilent(x, y, false));
      },
      () => {
        const replica = this.cluster.isRunning(x) ? this.cluster.node(x).replica : undefined;
        replica?.setCut(true);
        runtime.schedule(this.pick(5_000), () => replica?.setCut(false));
      },
      () => this.crash(x),
      () => this.drain(x),
      () => {
        if (sockets.length > 0) this.oneOf(sockets).break();
      },
      () => {
        if (sockets.length > 0) this.oneOf(sockets).isDark = true;
      },
      () => this.killBox(),
    ];
    this.oneOf(kinds)();
  }

  crash(node: string): void {
    if (!this.cluster.isRunning(node) || this.down.length > 0) return;
    const spec = this.links.crash(node);
    for (const submission of this.submissions) {
      if (submission.node === node && submission.ending === undefined)
        this.#ended(submission, "unknown", undefined);
    }
    this.down.push(spec);
    this.cluster.runtime.schedule(this.pick(30_000), () => {
      this.down.pop();
      this.cluster.start(spec);
    });
  }

  /** Every link of a node is told to come back. */
  drain(node: string): void {
    this.links.table(node)?.drain.closeSome(1_000, 4503, "2000");
  }

  killBox(): void {
    const box = this.boxes.get(this.oneOf(this.homes));
    if (box?.isRunning !== true) return;
    box.kill(this.pick(2) === 0);
    this.cluster.runtime.schedule(this.pick(10_000), () => box.start());
  }

  /** Judges where nobody would hear of an exception: the next step does. */
  check(judge: () => void): void {
    try {
      judge();
    } catch (error) {
      this.#violation ??= error;
    }
  }

  entry(id: string): LedgerEntry {
    const entry = this.ledger.get(id);
    if (entry === undefined) throw new Error(`no command ${id}`);
    return entry;
  }

  #submission(id: string, node: string | undefined): Submission {
    const submission: Submission = { id, node, isAcked: false, ending: undefined };
    this.submissions.push(submission);
    this.entry(id).submissions += 1;
    return submission;
  }

  #ended(submission: Submission, ending: string, resultJson: string | undefined): void {
    const { id } = submission;
    const before = submission.ending;
    submission.ending = ending;
    const entry = this.entry(id);
    entry.endings.push(ending);
    this.check(() => {
      expect(before, `${id} ended twice`).toBeUndefined();
      this.#checkEnding(submission, entry);
      if (resultJson !== undefined) expect(JSON.parse(resultJson)).toEqual({ id });
    });
  }

  #checkEnding({ id, isAcked, node, ending }: Submission, entry: LedgerEntry): void {
    if (isAcked) expect(["result", "unknown"], `${id} was acked`).toContain(ending);
    if (ending === "result") expect(entry.acted, `${id} has a result and nobody acted`).toBe(1);
    if (entry.submissions > 1 || (ending !== "not_delivered" && ending !== "expired")) return;
    expect(entry.acted, `${id} ended as ${ending} and was acted on`).toBe(0);
    if (node === undefined) expect(entry.written, `${id} ended as ${ending} and a box has it`).toBe(0);
  }

  /** An entry writes to a client. */
  #written(socket: SimulatedSocket, text: string): void {
    const parsed = parseLinkFrame(text, "service");
    if (parsed.kind !== "frame") throw new Error(`no frame: ${text}`);
    const { frame } = parsed;
    if (frame.t === "cmd") this.entry(frame.id).written += 1;
    if (frame.t === "hello_ok" && socket.role === "box") this.#checkGeneration(frame);
    if (frame.t === "result" || frame.t === "outcome") this.#exchange(socket, frame.id, { endings: 1 });
  }

  /** A client writes to an entry. */
  #said(socket: SimulatedSocket, text: string): void {
    const parsed = parseLinkFrame(text, socket.role);
    if (parsed.kind === "frame" && parsed.frame.t === "cmd")
      this.#exchange(socket, parsed.frame.id, { commands: 1 });
  }

  #exchange(socket: SimulatedSocket, id: string, more: Partial<Exchange>): void {
    const exchanges = this.#exchanges.get(socket) ?? new Map<string, Exchange>();
    this.#exchanges.set(socket, exchanges);
    const before = exchanges.get(id) ?? { commands: 0, endings: 0 };
    const after = {
      commands: before.commands + (more.commands ?? 0),
      endings: before.endings + (more.endings ?? 0),
    };
    exchanges.set(id, after);
    const claim = `${id} ended more often than it was sent on one link`;
    this.check(() => expect(after.endings, claim).toBeLessThanOrEqual(after.commands));
  }

  /** An owner that knows of the newest placement never gives a generation twice, nor a lower one. */
  #checkGeneration({ home, generation }: Extract<LinkFrame, { readonly t: "hello_ok" }>): void {
    this.greetings.set(home, (this.greetings.get(home) ?? 0) + 1);
    const given = Number(generation);
    const revision = this.cluster.truth.placement(home)?.revision ?? 0;
    if (given <= revision) return; // By a former owner, who has not heard yet.
    const before = this.#generations.get(home) ?? 0;
    this.check(() => expect(given, `generation of ${home}`).toBeGreaterThan(before));
    this.#generations.set(home, given);
  }

  /** Where a home's box is live, over all shards and entries. */
  liveBoxes(home: HomeId): { readonly shards: number; readonly entries: number } {
    let [shards, entries] = [0, 0];
    for (const { id } of NODES) {
      const sessions = this.links.table(id)?.linksOf(home) ?? [];
      entries += sessions.filter(({ role }) => role === "box").length;
      if (!this.cluster.isRunning(id)) continue;
      for (const homes of this.cluster.node(id).core.homes.values())
        homes.describeHome(home, (status) => {
          shards += status?.box === undefined ? 0 : 1;
        });
    }
    return { shards, entries };
  }

  /** No more trouble: everything heals, every command ends, every box and app is linked, and commands get results. */
  async calmDown(): Promise<void> {
    await this.advance(CALM_MS);
    for (const submission of this.submissions) {
      expect([submission.id, submission.ending], "a command without an ending").toEqual([
        submission.id,
        expect.any(String),
      ]);
    }
    for (const home of this.homes) {
      expect([home, this.liveBoxes(home)]).toEqual([home, { shards: 1, entries: 1 }]);
    }
    for (const app of this.apps) {
      expect([app.home, app.isOnline, app.presence]).toEqual([app.home, true, "online"]);
    }
    const late = this.homes.flatMap((home) => [this.send(this.newId(home)), this.oneShot(this.newId(home))]);
    await this.advance(ENDING_MS_MAX);
    expect(late.map(({ id, ending }) => [id, ending])).toEqual(late.map(({ id }) => [id, "result"]));
  }
}

/** Everybody is linked; then a copy of a box's disk is started too, and later both are switched off. */
async function runTwins(seed: number): Promise<void> {
  const world = new World(seed);
  await world.start();
  const [home] = world.homes;
  const box = home === undefined ? undefined : world.boxes.get(home);
  if (home === undefined || box === undefined) throw new Error("no home");
  const twin = new SimulatedBox(world.links, home, world.ledger, ["shard"]);
  twin.start();
  let worst = 0;
  for (let minute = 0; minute < 60; minute += 1) {
    await world.advance(60_000);
    worst = Math.max(worst, world.liveBoxes(home).shards);
  }
  expect(worst, "box links live at once").toBeLessThanOrEqual(1);
  // The first link, and three replacements before each 10 min of peace.
  expect(world.greetings.get(home)).toBeLessThanOrEqual(1 + 6 * 3);
  expect(world.greetings.get(home)).toBeGreaterThan(3);
  box.kill(false);
  twin.kill(false);
  await world.advance(60_000);
  const told = world.apps.filter((app) => app.home === home).map(({ presence }) => presence);
  expect(new Set(told)).toEqual(new Set(["offline"]));
}

async function runSeed(seed: number): Promise<void> {
  const world = new World(seed);
  await world.start();
  for (let step = 0; step < STEPS_PER_RUN; step += 1) await world.step();
  await world.calmDown();
  for (const [id, { submissions, written, acted }] of world.ledger) {
    expect(acted, `${id} was acted on more than once`).toBeLessThanOrEqual(1);
    expect(written, `${id} was written more often than it was asked for`).toBeLessThanOrEqual(submissions);
  }
}

verifies(
  ["L20", "L23", "L31"],
  "moves, cuts, deaths and darkness: acted on at most once, honest endings, one live box, everything heals",
  async () => {
    await eachSeed("test/sim/links", RUNS, runSeed);
  },
  DEADLINE_MS,
);

verifies(
  ["L23", "L31"],
  "two boxes with one identity replace each other a few times an hour; without any, apps hear offline",
  async () => {
    await eachSeed("test/sim/links", TWIN_RUNS, runTwins);
  },
  DEADLINE_MS,
);
