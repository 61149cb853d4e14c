// Whatever clients, shards, moves and time do to an entry, in any order: nothing is lost count of, nothing speaks after its
// end, and no link is registered where it is not, or twice.
//
// Spec: L20, L21, L23, L27.

import type { CommandId, HomeId } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import * as fc from "fast-check";
import { expect } from "vitest";
import type { ShardId } from "../src/directory/directory.ts";
import { checkProperty } from "./support/check-property.ts";
import { EntryLinks, helloText, type LinkClient } from "./support/entry-links.ts";

const HOMES = ["h1", "h2", "h3"] as const;
const SHARDS = ["s1", "s2"] as const;
const FILE = "packages/server/test/link-property.test.ts";

type Step =
  | {
      readonly kind: "box" | "app";
      readonly home: string;
      readonly host: string;
      readonly caps: readonly string[];
    }
  | { readonly kind: "frame"; readonly at: number; readonly text: string; readonly isBinary: boolean }
  | { readonly kind: "leave" | "stop-reading"; readonly at: number }
  | { readonly kind: "move"; readonly home: string; readonly shard: string }
  | { readonly kind: "reach"; readonly shard: string; readonly isAway: boolean }
  | {
      readonly kind: "close-link";
      readonly at: number;
      readonly ending: "replaced" | "not-owner" | "home-gone";
    }
  | { readonly kind: "deliver"; readonly at: number }
  | { readonly kind: "revoke"; readonly home: string }
  | { readonly kind: "drain"; readonly count: number }
  | { readonly kind: "wait"; readonly ms: number };

const home = fc.constantFrom(...HOMES);
const shard = fc.constantFrom(...SHARDS);
const at = fc.nat(20);
const host = fc.constantFrom("moor.localhost", "s2.moor.localhost", "127.0.0.1");
const frame = fc.oneof(
  fc.constantFrom(
    '{"t":"ping"}',
    '{"t":"pong"}',
    '{"t":"event","data":1}',
    '{"t":"now","data":{}}',
    '{"t":"result","id":"c1","data":1}',
    '{"t":"cmd","id":"c1","ttl_ms":3000,"data":1}',
    '{"t":"cmd","id":"c2","ttl_ms":0,"data":1}',
    '{"t":"unknown"}',
    helloText({ home: "h1" }),
    "{",
  ),
  fc.json(),
  fc.string(),
);

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constantFrom("box" as const, "app" as const),
    home,
    host,
    caps: fc.constantFrom([], ["shard"]),
  }),
  fc.record({ kind: fc.constant("frame" as const), at, text: frame, isBinary: fc.boolean() }),
  fc.record({ kind: fc.constantFrom("leave" as const, "stop-reading" as const), at }),
  fc.record({ kind: fc.constant("move" as const), home, shard }),
  fc.record({ kind: fc.constant("reach" as const), shard, isAway: fc.boolean() }),
  fc.record({
    kind: fc.constant("close-link" as const),
    at,
    ending: fc.constantFrom("replaced" as const, "not-owner" as const, "home-gone" as const),
  }),
  fc.record({ kind: fc.constant("deliver" as const), at }),
  fc.record({ kind: fc.constant("revoke" as const), home }),
  fc.record({ kind: fc.constant("drain" as const), count: fc.nat(3) }),
  fc.record({ kind: fc.constant("wait" as const), ms: fc.nat(20_000) }),
);

/** An entry with clients, and what has been done to it. */
class World {
  readonly entry = new EntryLinks();
  readonly clients: LinkClient[] = [];
  readonly #tokens = new Map<string, string>();
  #revision = 1;

  constructor() {
    for (const id of HOMES) this.entry.addHome(id, "s1", this.#revision);
    for (const id of HOMES) this.#tokens.set(id, this.entry.addToken(id));
  }

  async run(done: Step): Promise<void> {
    const { entry, clients } = this;
    const client = "at" in done ? clients[done.at % Math.max(1, clients.length)] : undefined;
    switch (done.kind) {
      case "box":
        clients.push(entry.box(done.home, done));
        break;
      case "app":
        clients.push(entry.app(this.#tokens.get(done.home) ?? "", done));
        break;
      case "frame":
        client?.sayText(done.text, done.isBinary);
        break;
      case "leave":
        client?.leave();
        break;
      case "stop-reading":
        if (client !== undefined) client.socket.waitingBytes = 1e9;
        break;
      case "move":
        entry.move(done.home, done.shard, (this.#revision += 1));
        break;
      case "reach":
        if (done.isAway) entry.away.add(done.shard);
        else entry.away.delete(done.shard);
        entry.table.shardsChanged(new Set([done.shard as ShardId]));
        break;
      case "close-link":
        this.#closeLink(client, done.ending);
        break;
      case "deliver":
        this.#deliver(client);
        break;
      case "revoke":
        entry.table.keyRevoked(entry.tokens.get(this.#tokens.get(done.home) ?? "")?.keyId ?? "");
        break;
      case "drain":
        entry.table.drain.closeSome(done.count, 4503, "2000");
        break;
      case "wait":
        await entry.runtime.advanceAsync(done.ms);
    }
    await entry.runtime.advanceAsync(0);
    this.#endDestroyed();
  }

  /** A destroyed socket is gone a moment later. */
  #endDestroyed(): void {
    for (const client of this.clients) if (client.socket.isDestroyed) client.leave();
  }

  #closeLink(client: LinkClient | undefined, kind: "replaced" | "not-owner" | "home-gone"): void {
    if (client === undefined) return;
    const { table } = this.entry;
    const ending = kind === "not-owner" ? { kind, placement: undefined } : { kind };
    // A shard that says so has let it go.
    for (const id of SHARDS) this.entry.shard(id).links.delete(client.session.linkId);
    const shard = client.session.link?.port?.shard ?? "s1";
    table.port.closeLink(client.session.linkId, ending, this.entry.shard(shard));
  }

  #deliver(client: LinkClient | undefined): void {
    if (client === undefined) return;
    const home = (client.session.link?.home ?? "h1") as HomeId;
    const command = { home, id: "c9" as CommandId, app: undefined, remainingMs: 1_000, data: "1" };
    this.entry.table.port.deliverCommand(
      { ...command, linkId: client.session.linkId },
      this.entry.shard("s1"),
    );
  }

  /** What must hold at any moment. */
  check(spoken: Map<LinkClient, number>): void {
    const { entry, clients } = this;
    const online = clients.filter(({ isOnline }) => isOnline);
    expect([...entry.table.drain.clients()]).toHaveLength(online.length);
    expect(entry.online.box + entry.online.app).toBe(online.length);
    expect(entry.outcomes.length).toBe(
      clients.filter(({ session, isOnline }) => isOnline || session.isClosing).length,
    );
    expect(entry.closes.length).toBe(
      entry.outcomes.filter((outcome) => outcome === "online").length - online.length,
    );
    for (const client of clients) {
      const { isClosing, linkId, link } = client.session;
      const said = client.socket.texts.length;
      // Nothing is said after a close.
      if (isClosing && spoken.has(client)) expect(said).toBe(spoken.get(client));
      if (isClosing) spoken.set(client, said);
      const places = SHARDS.filter((id) => entry.shard(id).links.has(linkId));
      const reachable = places.filter((id) => !entry.away.has(id));
      if (isClosing) expect(reachable).toEqual([]);
      else if (link?.port !== undefined) expect(reachable).toContain(link.port.shard);
      // hello_ok once, and first but for a challenge and answers to pings.
      expect(client.kinds.filter((kind) => kind === "hello_ok").length).toBeLessThanOrEqual(1);
    }
  }

  /** Everybody goes. */
  async end(): Promise<void> {
    for (const client of this.clients) client.leave();
    await this.entry.runtime.advanceAsync(700_000);
    expect(this.entry.table.drain.links()).toBe(0);
    expect([...this.entry.table.handshaking.all()]).toEqual([]);
    expect(this.entry.table.commands.size).toBe(0);
    expect(this.entry.runtime.pendingCount).toBe(0);
  }
}

verifies(
  ["L20", "L21", "L23", "L27"],
  "an entry keeps count of its links whatever happens, and forgets all of them",
  async () => {
    await checkProperty(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
        const world = new World();
        const spoken = new Map<LinkClient, number>();
        for (const done of steps) {
          await world.run(done);
          world.check(spoken);
        }
        await world.end();
      }),
      400,
      FILE,
    );
  },
);
