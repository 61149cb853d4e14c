// Live links of homes that are placed elsewhere, and of shards that come and go.

import type { HomeId } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { expect, test } from "vitest";
import type { ShardId } from "../src/directory/directory.ts";
import { EntryLinks, type LinkClient } from "./support/entry-links.ts";

interface Fleet {
  readonly entry: EntryLinks;
  readonly box: LinkClient;
  readonly app: LinkClient;
  readonly oldApp: LinkClient;
}

/** A home on s1 with a box and an app that follow and an app that does not. */
function fleet(): Fleet {
  const entry = new EntryLinks();
  entry.addHome("h1");
  const token = entry.addToken("h1");
  const clients = { box: entry.box("h1"), app: entry.app(token), oldApp: entry.app(token, { caps: [] }) };
  for (const client of Object.values(clients)) expect(client.isOnline).toBe(true);
  for (const id of ["s1", "s2"]) entry.shard(id).heard.length = 0;
  return { entry, ...clients };
}

verifies(
  "L21",
  "who follows is told the new host once the new owner knows; who does not is registered there in silence",
  () => {
    const { entry, box, app, oldApp } = fleet();
    const s2 = entry.shard("s2");
    s2.isSilent = true;
    entry.move("h1", "s2", 2);
    expect([box.end, app.end, oldApp.end]).toEqual(["open", "open", "open"]);
    expect(s2.nowAsked).toHaveLength(1);
    s2.nowAsked[0]?.({ kind: "none" });
    expect([box.end, app.end, oldApp.end]).toEqual([
      "4421 s2.moor.localhost",
      "4421 s2.moor.localhost",
      "open",
    ]);
    expect(s2.registered.map(({ role, isFollowing }) => [role, isFollowing])).toEqual([["app", false]]);
    expect(entry.outcomes).not.toContain("redirected");
    expect(entry.closes).toEqual(["4421", "4421"]);
  },
);

verifies(
  "L31",
  "to an owner that has not heard of the move yet, a box that is sent to the new one is on its way, not offline",
  () => {
    const { entry, box } = fleet();
    entry.move("h1", "s2", 2);
    expect(box.end).toBe("4421 s2.moor.localhost");
    expect(entry.shard("s1").heard).toEqual(["withdraw h1 5000", "withdraw h1 5000", "withdraw h1 5000"]);
  },
);

verifies("L21", "a new owner that says nothing is waited for 2 s", () => {
  const { entry, box } = fleet();
  entry.shard("s2").isSilent = true;
  entry.move("h1", "s2", 2);
  entry.runtime.advance(1_900);
  expect(box.end).toBe("open");
  entry.runtime.advance(200);
  expect(box.end).toBe("4421 s2.moor.localhost");
});

verifies(
  "L21",
  "nobody is sent to an owner that stopped being live while it was asked: its links are registered there",
  () => {
    const { entry, box } = fleet();
    entry.shard("s2").isSilent = true;
    entry.move("h1", "s2", 2);
    entry.setState("s2", "draining");
    entry.runtime.advance(2_500);
    expect(box.end).toBe("open");
    expect(entry.shard("s2").registered.filter(({ role }) => role === "box")).toHaveLength(1);
  },
);

verifies("L21", "a not-owner is no acknowledgement", () => {
  const { entry, box } = fleet();
  entry.shard("s2").now = { kind: "not-owner", placement: undefined };
  entry.move("h1", "s2", 2);
  expect(box.end).toBe("open");
});

verifies(["L21", "L23"], "a box that does not follow keeps its link and its generation over a move", () => {
  const entry = new EntryLinks();
  entry.addHome("h1");
  const box = entry.box("h1", { caps: [] });
  entry.move("h1", "s2", 2);
  expect(box.end).toBe("open");
  expect(entry.shard("s2").registered[0]).toMatchObject({ role: "box", generation: 101, isFollowing: false });
  expect(box.kinds).toEqual(["challenge", "hello_ok"]);
  box.sayText('{"t":"event","data":1}');
  expect(entry.shard("s2").heard).toContain("event h1 1");
  expect(entry.shard("s1").heard).not.toContain("event h1 1");
});

verifies("L21", "a client whose host leads to the new owner keeps its link", () => {
  const entry = new EntryLinks();
  entry.addHome("h1", "s2");
  const relayed = entry.app(entry.addToken("h1"), { host: "127.0.0.1" });
  entry.move("h1", "s1", 2);
  expect(relayed.end).toBe("open");
  expect(entry.shard("s1").heard).toEqual(["register app h1 new"]);
});

verifies("L21", "an old owner that says so moves a link; one that is late changes nothing", async () => {
  const { entry, oldApp } = fleet();
  const placement = { shard: "s2" as ShardId, revision: 2 };
  entry.table.port.closeLink(oldApp.session.linkId, { kind: "not-owner", placement }, entry.shard("s1"));
  expect(entry.shard("s2").registered).toHaveLength(1);
  entry.table.placementChanged("h1" as HomeId);
  entry.table.port.closeLink(oldApp.session.linkId, { kind: "not-owner", placement }, entry.shard("s1"));
  await entry.runtime.advanceAsync(0);
  expect(entry.shard("s2").registered).toHaveLength(1);
  expect(oldApp.end).toBe("open");
});

verifies(
  "L23",
  "a box link that was replaced ends with 4409, and what ended with its home or key with 4401",
  () => {
    const ends = (["replaced", "revoked", "home-gone"] as const).map((kind) => {
      const { entry, box } = fleet();
      entry.table.port.closeLink(box.session.linkId, { kind }, entry.shard("s1"));
      return box.end;
    });
    expect(ends).toEqual(["4409", "4401", "4401"]);
  },
);

verifies(
  "L31",
  "links outlive their owner's absence: apps hear that nobody knows, and are registered again with what they had",
  () => {
    const { entry, box, app } = fleet();
    entry.away.add("s1");
    entry.table.shardsChanged(new Set(["s1" as ShardId]));
    expect([box.end, app.end]).toEqual(["open", "open"]);
    expect(app.of("presence").at(-1)).toEqual({ t: "presence", box: "unknown", since_ms: 0 });
    box.sayText('{"t":"event","data":1}');
    entry.away.clear();
    entry.table.shardsChanged(new Set(["s1" as ShardId]));
    expect(entry.shard("s1").heard).toEqual([
      "register box h1 101",
      "register app h1 new",
      "register app h1 new",
    ]);
    expect(app.of("presence").at(-1)?.box).toBe("online");
    expect(box.kinds).toEqual(["challenge", "hello_ok"]);
  },
);

test("a box link that is older than another one when it is registered again ends with 4409", () => {
  const { entry, box } = fleet();
  entry.shard("s1").refusal = { kind: "superseded" };
  entry.table.shardsChanged(new Set(["s1" as ShardId]));
  expect(box.end).toBe("4409");
});

test("a live link whose owner and node disagree is told to come back after some tries", async () => {
  const { entry, box } = fleet();
  entry.shard("s1").refusal = { kind: "not-owner", placement: undefined };
  entry.table.shardsChanged(new Set(["s1" as ShardId]));
  await entry.runtime.advanceAsync(0);
  expect(box.end).toBe("4503 5000");
});

test("a move back before the first was acknowledged leaves everybody where they are", () => {
  const { entry, box } = fleet();
  entry.shard("s2").isSilent = true;
  entry.move("h1", "s2", 2);
  entry.move("h1", "s1", 3);
  entry.shard("s2").nowAsked[0]?.({ kind: "none" });
  entry.runtime.advance(3_000);
  expect(box.end).toBe("open");
});

verifies(
  "L20",
  "what a box answers while its owner is out of reach is said to it all the same, and so is its end",
  () => {
    const { entry, box } = fleet();
    entry.away.add("s1");
    entry.table.shardsChanged(new Set(["s1" as ShardId]));
    box.sayText('{"t":"result","id":"c1","data":1}');
    box.sayText('{"t":"event","data":1}');
    box.leave();
    expect(entry.shard("s1").heard).toEqual(["answered h1 c1 1", "withdraw h1"]);
  },
);

verifies(
  "L21",
  "a home that comes back before its links were sent away is registered where it was again",
  () => {
    const { entry, box } = fleet();
    const revision = 5;
    entry.placements.set("h1", { shard: "s2" as ShardId, revision });
    entry.shard("s2").isSilent = true;
    const placement = { shard: "s2" as ShardId, revision };
    entry.table.port.closeLink(box.session.linkId, { kind: "not-owner", placement }, entry.shard("s1"));
    entry.move("h1", "s1", revision + 1);
    entry.runtime.advance(10_000);
    expect(box.end).toBe("open");
    expect(entry.shard("s1").heard.filter((line) => line.startsWith("register box"))).toEqual([
      "register box h1 101",
    ]);
  },
);
