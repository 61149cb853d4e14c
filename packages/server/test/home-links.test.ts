// Links of a home at its shard: one live box link, generations, presence, pushes, limits.

import { describe, expect, test } from "vitest";
import type { HomeId } from "@moor/protocol";
import { createSilentLogger, type LogFields } from "@moor/runtime";
import { verifies } from "@moor/testkit";
import type { LinkId } from "../src/peer/link-ports.ts";
import type { EntryId } from "../src/peer/peer-link.ts";
import { HOME_APP_LINKS_MAX, LINK_AWAY_MS } from "../src/server-limits.ts";
import { BOX_KEY, HOME, HomeStage, MOVED, OWNED } from "./support/home-stage.ts";

const MINUTE_MS = 60_000;

describe("the box's link", () => {
  verifies("L23", "the newest box link is the live one, and the older one is let go as replaced", () => {
    const stage = new HomeStage();
    const older = stage.box(stage.near);
    const newer = stage.box(stage.far);
    expect(stage.near.takeOnly("closeLink")).toEqual([[older, { kind: "replaced" }]]);
    expect(stage.status()?.box).toMatchObject({ entry: stage.far.entry, isFollowing: true });
    stage.homes.withdrawLink(HOME, older);
    expect(stage.status()?.presence.box).toBe("online");
    stage.homes.withdrawLink(HOME, newer);
    expect(stage.status()?.presence.box).toBe("offline");
  });

  verifies(
    "L23",
    "a generation is above the placement, the start and all before it, and rises with each link",
    () => {
      const stage = new HomeStage({ startRevision: 5_000 });
      const generations = [1, 2, 3].map(() => {
        stage.homes.withdrawLink(HOME, stage.box());
        return stage.near
          .takeOnly("linkAccepted")
          .map(([, taken]) => (taken as { generation: number }).generation);
      });
      expect(generations).toEqual([[5_001], [5_002], [5_003]]);
      stage.move({ ...OWNED, shard: MOVED.shard, revision: 6_000 });
      stage.move({ ...OWNED, revision: 7_000 });
      stage.box();
      expect(stage.generation()).toBe(7_001);
    },
  );

  verifies("L23", "a home that was forgotten meanwhile gets a higher generation than it had", () => {
    const stage = HomeStage.settled();
    stage.homes.withdrawLink(HOME, stage.box());
    stage.runtime.advance(10 * MINUTE_MS);
    expect(stage.homes.size).toBe(0);
    stage.box();
    expect(stage.generation()).toBe(OWNED.revision + 2);
  });

  verifies(
    "L23",
    "registered again it keeps its generation; one below the newest known is superseded",
    () => {
      const stage = new HomeStage();
      const held = stage.box(stage.far, { generation: 4_000 });
      expect(stage.far.takeOnly("linkAccepted")).toEqual([
        [held, { generation: 4_000, presence: { box: "unknown", sinceMs: 0 } }],
      ]);
      stage.box(stage.near, { generation: 3_999 });
      expect(stage.near.takeOnly("linkRefused")).toEqual([[expect.any(String), { kind: "superseded" }]]);
      stage.homes.withdrawLink(HOME, held);
      stage.box(stage.near, { generation: 3_999 });
      expect(stage.near.takeOnly("linkRefused")).toHaveLength(1);
      stage.box(stage.near);
      expect(stage.generation()).toBe(4_001);
    },
  );

  verifies("L23", "an older link that is registered late does not take the place of the newer one", () => {
    const stage = new HomeStage();
    const old = stage.box(stage.far);
    const oldGeneration = stage.generation();
    stage.homes.entryAway(stage.far.entry);
    const newer = stage.box(stage.near);
    stage.box(stage.far, { linkId: old, generation: oldGeneration });
    expect(stage.far.takeOnly("linkRefused")).toEqual([[old, { kind: "superseded" }]]);
    stage.homes.withdrawLink(HOME, old);
    expect(stage.status()).toMatchObject({ presence: { box: "online" }, box: { entry: stage.near.entry } });
    expect(newer).not.toBe(old);
  });

  verifies(
    "L23",
    "after three replacements in 5 min the incumbent stays 10 min, and the operator sees it",
    () => {
      const lines: [string, LogFields][] = [];
      const warn = (event: string, fields: LogFields = {}) => void lines.push([event, fields]);
      const stage = new HomeStage({ logger: { ...createSilentLogger(), warn } });
      for (let link = 0; link < 4; link += 1) {
        stage.box(link % 2 === 0 ? stage.near : stage.far);
        stage.runtime.advance(MINUTE_MS);
      }
      expect(lines).toEqual([["duplicate-identity", { home: HOME, shard: "s1" }]]);
      expect(stage.timeline.of(HOME).map(({ event }) => event)).toContain("duplicate-identity");
      const incumbent = stage.generation();
      stage.near.take();
      const late = stage.box(stage.near);
      expect(stage.near.take()).toEqual([
        ["linkRefused", late, { kind: "incumbent-stays", waitMs: 9 * MINUTE_MS }],
      ]);
      expect(stage.status()?.duplicateIdentity).toEqual({ remainingMs: 9 * MINUTE_MS, heldOff: 1 });
      stage.runtime.advance(9 * MINUTE_MS - 1);
      stage.box(stage.near);
      expect(stage.generation()).toBe(incumbent);
      stage.runtime.advance(0.25); // operators are told whole milliseconds
      expect(stage.status()?.duplicateIdentity).toMatchObject({ remainingMs: 1 });
      stage.runtime.advance(0.75);
      expect(stage.status()?.duplicateIdentity).toBeUndefined();
      stage.box(stage.near);
      expect(stage.generation()).toBe(incumbent + 1);
    },
  );

  verifies(
    "L23",
    "replacements further apart hold nobody off, nor does a box whose last link had ended",
    () => {
      const stage = new HomeStage();
      for (let link = 0; link < 8; link += 1) {
        stage.box();
        stage.runtime.advance(2.5 * MINUTE_MS);
      }
      for (let link = 0; link < 8; link += 1) stage.homes.withdrawLink(HOME, stage.box());
      expect(stage.near.takeOnly("linkRefused")).toEqual([]);
    },
  );

  verifies("L23", "a box that comes back elsewhere while its entry is out of reach replaces nobody", () => {
    const stage = new HomeStage();
    for (let link = 0; link < 8; link += 1) {
      const entry = link % 2 === 0 ? stage.near : stage.far;
      stage.box(entry);
      stage.homes.entryAway(entry.entry);
    }
    const told = [...stage.near.take(), ...stage.far.take()].map(([what]) => what);
    expect(told).not.toContain("linkRefused");
  });

  test("one that ends at its entry as it is accepted is not there", () => {
    const stage = HomeStage.settled();
    stage.near.linkAccepted = (linkId) => stage.homes.withdrawLink(HOME, linkId);
    stage.app(stage.far);
    stage.far.take();
    stage.box(stage.near);
    expect([stage.status()?.presence.box, stage.far.take()]).toEqual(["offline", []]);
  });

  test("replacements are counted", async () => {
    const stage = new HomeStage();
    for (let link = 0; link < 3; link += 1) stage.box();
    expect(await stage.metric("moor_link_replacements_total")).toBe("2");
  });

  test("an enrolment anew ends the link that was verified with the old key, and no other", () => {
    const stage = new HomeStage();
    const linkId = stage.box();
    stage.near.take();
    stage.homes.boxKeyChanged(HOME, BOX_KEY);
    expect(stage.near.take()).toEqual([]);
    stage.homes.boxKeyChanged(HOME, "box-key-2");
    expect(stage.near.take()).toEqual([["closeLink", linkId, { kind: "revoked" }]]);
    expect(stage.status()?.presence.box).toBe("offline");
  });

  test("an enrolment anew ends the fight of two boxes with it: the new one is held off by nobody", () => {
    const stage = new HomeStage();
    for (let link = 0; link < 4; link += 1) stage.box();
    expect(stage.status()?.duplicateIdentity).toBeDefined();
    stage.homes.boxKeyChanged(HOME, "box-key-2");
    expect(stage.status()?.duplicateIdentity).toBeUndefined();
    stage.box(stage.near, { credential: "box-key-2" });
    stage.near.take();
    stage.box(stage.near, { credential: "box-key-2" });
    expect(stage.near.takeOnly("linkRefused")).toEqual([]);
  });

  verifies(
    "L23",
    "a box that was replaced takes nobody's place by way of an entry that has not heard of it",
    () => {
      const stage = new HomeStage();
      stage.replacedKeys.add(BOX_KEY);
      const present = stage.box(stage.near, { credential: "box-key-2", seenSeq: 10 });
      stage.far.take();
      stage.box(stage.far, { seenSeq: 9 });
      expect(stage.far.take()).toEqual([["linkRefused", expect.any(String), { kind: "revoked" }]]);
      expect(stage.near.takeOnly("closeLink")).toEqual([]);
      expect(stage.status()?.box).toMatchObject({ entry: stage.near.entry });
      // An entry that has seen more than this node knows better; one of an older version does not say.
      stage.box(stage.far, { seenSeq: 11 });
      expect(stage.near.takeOnly("closeLink")).toEqual([[present, { kind: "replaced" }]]);
      stage.far.take();
      stage.box(stage.far);
      expect(stage.far.takeOnly("linkRefused")).toEqual([]);
    },
  );
});

describe("presence", () => {
  verifies("L31", "unknown for 15 s after a start, then offline; online at once when the box links", () => {
    const stage = new HomeStage();
    stage.app();
    stage.runtime.advance(14_999);
    expect(stage.near.takeOnly("linkAccepted")).toEqual([
      [expect.any(String), { generation: undefined, presence: { box: "unknown", sinceMs: 0 } }],
    ]);
    stage.runtime.advance(1);
    expect(stage.near.takeOnly("sendPresence")).toEqual([[["app1"], { box: "offline", sinceMs: 0 }]]);
    stage.runtime.advance(3_000);
    expect(stage.status()?.presence).toEqual({ box: "offline", sinceMs: 3_000 });
    const linkId = stage.box();
    expect(stage.near.takeOnly("sendPresence")).toEqual([[["app1"], { box: "online", sinceMs: 0 }]]);
    stage.homes.withdrawLink(HOME, linkId);
    expect(stage.near.takeOnly("sendPresence")).toEqual([[["app1"], { box: "offline", sinceMs: 0 }]]);
  });

  verifies(
    "L31",
    "a push goes once to each entry, for all of its apps of the home; a replacement is no change",
    () => {
      const stage = HomeStage.settled();
      const [near, far] = [[stage.app(), stage.app()], [stage.app(stage.far)]];
      stage.near.take();
      stage.far.take();
      const first = stage.box();
      expect(stage.near.takeOnly("sendPresence").map(([links]) => links)).toEqual([near]);
      expect(stage.far.takeOnly("sendPresence").map(([links]) => links)).toEqual([far]);
      const second = stage.box(stage.far);
      stage.homes.withdrawLink(HOME, first);
      expect([...stage.near.takeOnly("sendPresence"), ...stage.far.takeOnly("sendPresence")]).toEqual([]);
      stage.homes.boxEvent(HOME, first, '{"old":1}');
      stage.homes.boxEvent(HOME, second, '{"n":1.0}');
      expect(stage.near.take()).toEqual([["sendEvent", near, '{"n":1.0}']]);
      expect(stage.far.take()).toEqual([["sendEvent", far, '{"n":1.0}']]);
    },
  );

  verifies("L31", "no box is waited for longer than the longest spread and 5 s", () => {
    const stage = HomeStage.settled();
    stage.homes.withdrawLink(HOME, stage.box(), 1_000_000);
    stage.runtime.advance(64_999);
    expect(stage.status()?.presence.box).toBe("unknown");
    stage.runtime.advance(1);
    expect(stage.status()?.presence.box).toBe("offline");
  });

  verifies("L31", "a box that was told to come back is unknown until then and 5 s, then offline", () => {
    const stage = HomeStage.settled();
    stage.homes.withdrawLink(HOME, stage.box(), 20_000);
    expect(stage.status()?.presence.box).toBe("unknown");
    stage.runtime.advance(25_000);
    expect(stage.status()?.presence).toEqual({ box: "offline", sinceMs: 0 });
    stage.homes.withdrawLink(HOME, stage.box(), 20_000);
    stage.runtime.advance(24_999);
    stage.box();
    stage.runtime.advance(1);
    expect(stage.status()?.presence.box).toBe("online");
  });

  verifies(
    "L31",
    "while the box's entry is out of reach it is unknown; registered again it never left",
    () => {
      const stage = HomeStage.settled();
      const linkId = stage.box(stage.far);
      const generation = stage.generation();
      stage.homes.entryAway(stage.far.entry);
      expect(stage.status()?.presence.box).toBe("unknown");
      stage.runtime.advance(LINK_AWAY_MS - 1);
      stage.box(stage.far, { linkId, generation });
      stage.runtime.advance(1);
      expect([stage.status()?.presence.box, stage.generation()]).toEqual(["online", generation]);
    },
  );

  test("an entry out of reach is told nothing: its links hear of the box when it registers them again", () => {
    const stage = HomeStage.settled();
    const linkId = stage.app(stage.far);
    stage.homes.entryAway(stage.far.entry);
    stage.far.take();
    stage.homes.boxEvent(HOME, stage.box(), "1");
    expect(stage.far.take()).toEqual([]);
    stage.app(stage.far, { linkId });
    expect(stage.far.take()).toMatchObject([["linkAccepted", linkId, { presence: { box: "online" } }]]);
  });

  test("an entry that is out of reach twice has its whole time again", () => {
    const stage = HomeStage.settled();
    const linkId = stage.box(stage.far);
    const generation = stage.generation();
    stage.homes.entryAway(stage.far.entry);
    stage.runtime.advance(LINK_AWAY_MS - 1_000);
    stage.box(stage.far, { linkId, generation });
    stage.homes.entryAway(stage.far.entry);
    stage.runtime.advance(LINK_AWAY_MS - 1);
    expect([stage.status()?.presence.box, stage.homes.gauges().boxLinks]).toEqual(["unknown", 1]);
    stage.runtime.advance(1);
    expect([stage.status()?.presence.box, stage.homes.gauges().boxLinks]).toEqual(["offline", 0]);
  });

  verifies(
    "L31",
    "links of an entry that does not come back are dropped after their time, or at once if it is gone",
    () => {
      for (const isGone of [false, true]) {
        const stage = HomeStage.settled();
        stage.box(stage.far);
        stage.app(stage.far);
        stage.app(stage.near);
        stage.homes.entryAway(stage.far.entry);
        stage.near.take();
        if (isGone) stage.homes.entryGone(stage.far.entry);
        else stage.runtime.advance(LINK_AWAY_MS);
        expect(stage.near.takeOnly("sendPresence").map(([, presence]) => presence)).toMatchObject([
          { box: "offline" },
        ]);
        expect(stage.homes.gauges()).toEqual({ boxLinks: 0, appLinks: 1, commandsOpen: 0 });
      }
    },
  );
});

describe("links of apps", () => {
  verifies(
    "L25",
    "a home has 64 of them; the next is told to wait, and one that is registered again is none more",
    () => {
      const stage = new HomeStage();
      const first = stage.app();
      for (let link = 1; link < HOME_APP_LINKS_MAX; link += 1) stage.app();
      stage.near.take();
      stage.app(stage.near, { linkId: first });
      expect(stage.near.takeOnly("linkAccepted")).toHaveLength(1);
      stage.app();
      expect(stage.near.takeOnly("linkRefused")).toEqual([
        [expect.any(String), { kind: "busy", waitMs: 30_000 }],
      ]);
      stage.homes.withdrawLink(HOME, first);
      stage.app();
      expect(stage.near.takeOnly("linkAccepted")).toHaveLength(1);
    },
  );

  test("end when their token is revoked, and are not taken when it is known to be", () => {
    const stage = new HomeStage();
    const linkId = stage.app();
    stage.app(stage.far, { credential: "key_2" });
    stage.near.take();
    stage.homes.tokenRevoked(HOME, "key_1");
    expect(stage.near.take()).toEqual([["closeLink", linkId, { kind: "revoked" }]]);
    stage.revoked.add("key_1");
    stage.app();
    expect(stage.near.take()).toEqual([["linkRefused", expect.any(String), { kind: "revoked" }]]);
    expect(stage.homes.gauges().appLinks).toBe(1);
  });

  test("that another entry holds are reported, those of this node are not, nor are boxes that never left", () => {
    const stage = new HomeStage();
    stage.app();
    const linkId = stage.app(stage.far);
    stage.app(stage.far, { linkId });
    stage.box(stage.far, { generation: 9_000 });
    stage.box(stage.far);
    expect(stage.linkedElsewhere).toEqual([
      { home: HOME, role: "app", app: "phone" },
      { home: HOME, role: "box" },
    ]);
  });
});

describe("a home that moves", () => {
  verifies(
    ["L20", "L21"],
    "gives every link back with the new placement, and nothing is held any more",
    () => {
      const stage = new HomeStage();
      const [box, app] = [stage.box(), stage.app(stage.far)];
      stage.homes.boxNow(HOME, box, "{}");
      stage.near.take();
      stage.far.take();
      stage.move();
      const ending = { kind: "not-owner", placement: MOVED };
      expect(stage.near.take()).toEqual([["closeLink", box, ending]]);
      expect(stage.far.take()).toEqual([["closeLink", app, ending]]);
      expect([stage.homes.size, stage.budget.heldBytes, stage.now()]).toEqual([0, 0, ending]);
      expect(stage.timeline.of(HOME).map(({ event }) => event)).toEqual(["owner-lost"]);
      const late = stage.box();
      expect(stage.near.take()).toEqual([["linkRefused", late, ending]]);
    },
  );

  verifies("L24", "of a shard that comes back from a drain is unknown until the spread is over", () => {
    const stage = new HomeStage({ startHoldMs: 40_000 });
    stage.runtime.advance(39_999);
    expect(stage.status()?.presence.box).toBe("unknown");
    stage.runtime.advance(1);
    expect(stage.status()?.presence.box).toBe("offline");
  });

  verifies("L24", "of a shard that comes back from a drain is unknown until the spread is over", () => {
    const stage = new HomeStage({ startHoldMs: 40_000 });
    stage.runtime.advance(39_999);
    expect(stage.status()?.presence.box).toBe("unknown");
    stage.runtime.advance(1);
    expect(stage.status()?.presence.box).toBe("offline");
  });

  verifies("L31", "is held unknown for 15 s by its new owner, from the moment it arrived", () => {
    const stage = HomeStage.settled();
    stage.move();
    stage.runtime.advance(MINUTE_MS);
    stage.move({ ...OWNED, revision: 3_000 });
    stage.runtime.advance(5_000);
    expect(stage.status()?.presence).toEqual({ box: "unknown", sinceMs: 5_000 });
    stage.runtime.advance(10_000);
    expect(stage.status()?.presence).toEqual({ box: "offline", sinceMs: 0 });
  });

  test("one that is placed anew where it is keeps everything", () => {
    const stage = HomeStage.settled();
    stage.app();
    stage.box();
    stage.near.take();
    stage.move({ ...OWNED, revision: 3_000 });
    expect([stage.near.take(), stage.status()?.presence.box]).toEqual([[], "online"]);
  });

  test("a sender that knows of a newer placement is believed", () => {
    const stage = HomeStage.settled();
    const home = "h2" as HomeId;
    stage.app(stage.near, { home, placement: MOVED });
    expect(stage.near.takeOnly("linkRefused")).toEqual([
      [expect.any(String), { kind: "not-owner", placement: undefined }],
    ]);
    stage.app(stage.near, { home, placement: { ...OWNED, revision: 9_000 } });
    expect(stage.near.takeOnly("linkAccepted").map(([, taken]) => taken)).toEqual([
      { generation: undefined, presence: { box: "unknown", sinceMs: 0 } },
    ]);
  });

  test("deleted: its links end as such", () => {
    const stage = new HomeStage();
    const [box, app] = [stage.box(), stage.app()];
    stage.near.take();
    stage.homes.homeDeleted(HOME);
    expect(stage.near.take()).toEqual([
      ["closeLink", box, { kind: "home-gone" }],
      ["closeLink", app, { kind: "home-gone" }],
    ]);
  });
});

describe("what is forgotten", () => {
  test("a home that nothing uses, within minutes; not one with a link, a snapshot or a guard", () => {
    const stage = HomeStage.settled();
    const app = stage.app();
    stage.runtime.advance(30 * MINUTE_MS);
    expect(stage.homes.size).toBe(1);
    stage.homes.withdrawLink(HOME, app);
    stage.runtime.advance(MINUTE_MS);
    expect(stage.homes.size).toBe(0);
    const box = stage.box();
    stage.homes.boxNow(HOME, box, '{"w":1}');
    stage.homes.withdrawLink(HOME, box);
    stage.runtime.advance(23 * 60 * MINUTE_MS);
    expect(stage.homes.size).toBe(1);
    stage.runtime.advance(61 * MINUTE_MS);
    expect(stage.homes.size).toBe(0);
  });

  test("not one whose box has just been replaced: the guard goes on counting", () => {
    const stage = HomeStage.settled();
    for (let link = 0; link < 4; link += 1) stage.box();
    for (let link = 1; link <= 4; link += 1) stage.homes.withdrawLink(HOME, `box${link}` as LinkId);
    stage.runtime.advance(5 * MINUTE_MS);
    expect(stage.status()?.duplicateIdentity).toMatchObject({ remainingMs: 5 * MINUTE_MS });
    stage.runtime.advance(6 * MINUTE_MS);
    expect(stage.homes.size).toBe(0);
  });

  test("how long its box has been offline, beyond what is known", () => {
    const stage = HomeStage.settled();
    stage.homes.withdrawLink(HOME, stage.box());
    stage.runtime.advance(2 * MINUTE_MS);
    expect(stage.homes.size).toBe(0);
    expect(stage.status()?.presence.box).toBe("offline");
    expect(stage.status()?.presence.sinceMs).toBeLessThanOrEqual(2 * MINUTE_MS);
  });
});

describe("a shard that does not own the home", () => {
  test("says nothing of it, and takes nothing about it", () => {
    const stage = new HomeStage();
    stage.move();
    expect(stage.status()).toBeUndefined();
    stage.homes.withdrawLink(HOME, "box1" as LinkId);
    stage.homes.boxEvent(HOME, "box1" as LinkId, "1");
    stage.homes.entryGone("e9" as EntryId);
    expect(stage.homes.size).toBe(0);
  });
});

test("a table that is closed leaves no timer, whether its entries part from it before or after", () => {
  const stage = new HomeStage();
  stage.box(stage.far);
  stage.submit("c1");
  stage.homes.entryAway(stage.near.entry);
  stage.homes.close();
  stage.homes.entryAway(stage.far.entry);
  expect(stage.runtime.pendingCount).toBe(0);
});
