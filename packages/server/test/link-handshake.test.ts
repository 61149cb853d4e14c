// From the upgrade to hello_ok, and every way it ends before.

import { verify } from "node:crypto";
import { linkHelloOkBytes, type HomeId } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { expect, test } from "vitest";
import { EntryLinks, helloText, makeKeyPair, NONCE, type LinkClient } from "./support/entry-links.ts";

/** What an observer sees of a handshake: frames without what is random, and the end. */
function transcript(client: LinkClient): string[] {
  const kinds = client.frames.map((frame) =>
    frame.t === "challenge" ? `challenge ${frame.nonce.length}` : frame.t,
  );
  return [...kinds, client.end];
}

/** Whether a hello_ok's signature is the service's over the bytes of L29. */
function isSigned(entry: EntryLinks, client: LinkClient, host: string): boolean {
  const ok = client.helloOk;
  if (ok === undefined) return false;
  const { home, generation, next_key: nextKey } = ok;
  const bytes = linkHelloOkBytes({ host, home, clientNonce: NONCE, generation, nextKey });
  return verify(null, bytes, entry.service.publicKey, Buffer.from(ok.sig, "base64url"));
}

verifies(["L28", "L29"], "a box that proves its key gets a signed hello_ok with its generation", () => {
  const entry = new EntryLinks();
  entry.addHome("h1");
  const box = entry.box("h1");
  expect(box.helloOk).toMatchObject({
    host: "moor.localhost",
    home: "h1",
    generation: "101",
    key: "k".repeat(16),
    ping_ms: 25_000,
    spread_ms: 5_000,
  });
  expect(isSigned(entry, box, "moor.localhost")).toBe(true);
  expect(entry.shard("s1").heard).toEqual(["register box h1 new"]);
  expect(entry.sightings).toEqual(["h1/box true"]);
  expect(entry.online).toEqual({ box: 1, app: 0 });
});

verifies("L29", "the next service key is announced inside what is signed", () => {
  const entry = new EntryLinks();
  entry.addHome("h1");
  entry.nextKey = makeKeyPair().raw;
  const box = entry.box("h1");
  expect(box.helloOk?.next_key).toBe(entry.nextKey);
  expect(isSigned(entry, box, "moor.localhost")).toBe(true);
});

verifies("L29", "hello_ok names the host that was dialled, whatever shard it leads to", () => {
  const entry = new EntryLinks();
  entry.addHome("h1", "s2");
  for (const host of ["s2.moor.localhost", "127.0.0.1", "localhost", "s2.moor.localhost:8443"]) {
    const box = entry.box("h1", { host });
    const name = host.replace(/:8443$/, "");
    expect(box.helloOk?.host).toBe(name);
    expect(isSigned(entry, box, name)).toBe(true);
  }
});

verifies(
  ["L7", "L30"],
  "an app with a token is not challenged, and gets its hello_ok and its box's presence",
  () => {
    const entry = new EntryLinks();
    entry.addHome("h1");
    const app = entry.app(entry.addToken("h1"));
    expect(app.kinds).toEqual(["hello_ok", "presence"]);
    expect(app.helloOk?.generation).toBe("0");
    expect(isSigned(entry, app, "moor.localhost")).toBe(true);
    expect(entry.verifyCount).toBe(0);
    expect(entry.sightings).toEqual(["h1/phone true"]);
  },
);

verifies(
  ["L7", "L30"],
  "every bad token ends alike: 4401 without a reason, before any shard hears of it",
  () => {
    const entry = new EntryLinks();
    entry.addHome("h1");
    const good = entry.addToken("h1");
    const ofAnother = entry.addToken("h2");
    const extension = entry.addToken("h1", "extension");
    const tokens = [
      `${good}x`,
      "h1.",
      ".x",
      "dotless",
      "",
      `h1.${"x".repeat(300)}`,
      ofAnother,
      extension,
      "h9.none",
    ];
    const ends = tokens.map((token) => {
      const app = entry.open("app");
      app.sayText(helloText({ home: "h1", token, app: "a" }));
      return transcript(app);
    });
    for (const end of ends) expect(end).toEqual(["4401"]);
    expect(entry.shard("s1").heard).toEqual([]);
  },
);

verifies(
  "L28",
  "a captured handshake cannot be replayed, nor a proof for one host be used at another",
  () => {
    const entry = new EntryLinks();
    entry.addHome("h1");
    const first = entry.hail("h1");
    const proof = entry.prove(first, "h1");
    expect(first.isOnline).toBe(true);
    const replayed = entry.hail("h1");
    replayed.sayText(proof);
    expect(replayed.end).toBe("4401");
    const elsewhere = entry.hail("h1");
    entry.prove(elsewhere, "h1", undefined, "s2.moor.localhost");
    expect(elsewhere.end).toBe("4401");
  },
);

verifies("L28", "an unknown home, one without a box and one with a wrong proof cannot be told apart", () => {
  for (const unknownAt of ["s1", "s2"]) {
    for (const caps of [["shard"], []]) {
      const entry = new EntryLinks();
      entry.unknownAt = unknownAt;
      entry.addHome("h1", unknownAt);
      entry.addHome("h2", unknownAt);
      entry.boxes.delete("h2");
      const transcripts = ["h1", "h2", "nobody"].map((home) => {
        const box = entry.hail(home, { caps });
        if (box.of("challenge").length > 0) entry.prove(box, home, makeKeyPair());
        return transcript(box);
      });
      const isSentAway = unknownAt === "s2" && caps.length > 0;
      const expected = isSentAway ? ["4421 s2.moor.localhost"] : ["challenge 43", "4401"];
      expect(transcripts).toEqual([expected, expected, expected]);
      expect(entry.verifyCount).toBe(isSentAway ? 0 : 3);
    }
  }
});

verifies("L28", "a key that is replaced while its proof is checked does not count", () => {
  const entry = new EntryLinks();
  const old = entry.addHome("h1");
  entry.isHolding = true;
  const box = entry.hail("h1");
  entry.prove(box, "h1", old);
  entry.addHome("h1");
  entry.heldChecks[0]?.();
  expect(box.end).toBe("4401");
});

verifies(
  "L28",
  "a box whose key is replaced, or whose home is deleted, while its owner is asked comes not online",
  () => {
    const changes: readonly ((entry: EntryLinks) => void)[] = [
      (entry) => void entry.addHome("h1"),
      (entry) => {
        entry.boxes.delete("h1");
        entry.placements.delete("h1");
      },
    ];
    for (const change of changes) {
      const entry = new EntryLinks();
      entry.addHome("h1");
      const shard = entry.shard("s1");
      shard.isSilent = true;
      const asked = entry.box("h1");
      entry.away.add("s1");
      const parked = entry.box("h1");
      change(entry);
      entry.table.homeChanged("h1" as HomeId);
      entry.away.clear();
      shard.isSilent = false;
      entry.table.shardsChanged(new Set([shard.shard]));
      expect([asked.end, parked.end]).toEqual(["4401", "4401"]);
      expect([asked.kinds, parked.kinds]).toEqual([["challenge"], ["challenge"]]);
      expect(shard.links.size).toBe(0);
    }
  },
);

verifies(
  "L28",
  "a hello, nonce or proof of the wrong form is 4400 before anything is signed or checked",
  () => {
    const entry = new EntryLinks();
    entry.addHome("h1");
    const hellos = [
      { nonce: `${"n".repeat(42)}B` },
      { nonce: "short" },
      { home: "H1" },
      { home: "-h" },
      { home: "h".repeat(65) },
      { v: 2 },
      { caps: "shard" },
      { caps: [1] },
    ];
    for (const fields of hellos) {
      const box = entry.open("box");
      box.sayText(helloText(fields));
      expect(box.end).toBe("4400 bad-member");
    }
    const box = entry.hail("h1");
    box.sayText(JSON.stringify({ t: "proof", sig: "x".repeat(85) }));
    expect(box.end).toBe("4400 bad-member");
    expect(entry.verifyCount).toBe(0);
  },
);

verifies("L27", "a link without a hello within 10 s, or without a proof within 15 s, ends with 4408", () => {
  const entry = new EntryLinks();
  entry.addHome("h1");
  const silent = entry.open("box");
  const unproven = entry.hail("h1");
  entry.runtime.advance(9_900);
  expect([silent.end, unproven.end]).toEqual(["open", "open"]);
  entry.runtime.advance(700);
  expect([silent.end, unproven.end]).toEqual(["4408 hello", "open"]);
  entry.runtime.advance(4_300);
  expect(unproven.end).toBe("open");
  entry.runtime.advance(700);
  expect(unproven.end).toBe("4408 proof");
});

verifies("L27", "an owner that says nothing costs its client a 4503 at 15 s, not a 4408", () => {
  const entry = new EntryLinks();
  entry.addHome("h1");
  entry.shard("s1").isSilent = true;
  const box = entry.box("h1");
  entry.runtime.advance(15_500);
  expect(box.end).toBe("4503 5000");
  expect(entry.shard("s1").heard).toEqual(["register box h1 new", "withdraw h1"]);
});

verifies(
  "L21",
  "an owner out of reach is waited for 2 s: within them its client is served, after them told to come back",
  () => {
    const entry = new EntryLinks();
    entry.addHome("h1");
    entry.away.add("s1");
    const early = entry.box("h1");
    entry.runtime.advance(1_000);
    expect(early.end).toBe("open");
    entry.away.clear();
    entry.table.shardsChanged(new Set(["s1"]) as never);
    expect(early.isOnline).toBe(true);
    entry.away.add("s1");
    const late = entry.box("h1");
    entry.runtime.advance(2_500);
    expect(late.end).toBe("4503 5000");
  },
);

verifies(
  "L21",
  "a client whose owner has not answered when its process ends or its home moves goes to the one there is then",
  () => {
    const restarted = new EntryLinks();
    restarted.addHome("h1");
    restarted.shard("s1").isSilent = true;
    const [box, app] = [restarted.box("h1"), restarted.app(restarted.addToken("h1"))];
    restarted.table.shardsChanged(new Set(["s2"]) as never);
    expect(restarted.shard("s1").registered).toHaveLength(2);
    restarted.shard("s1").isSilent = false;
    restarted.table.shardsChanged(new Set(["s1"]) as never);
    expect([box.isOnline, app.isOnline]).toEqual([true, true]);

    const moved = new EntryLinks();
    moved.addHome("h1");
    moved.shard("s1").isSilent = true;
    const [following, relayed] = [moved.box("h1"), moved.box("h1", { caps: [] })];
    moved.move("h1", "s2", 2);
    expect([following.end, relayed.isOnline]).toEqual(["4421 s2.moor.localhost", true]);
    expect(moved.shard("s1").links.size).toBe(0);
    expect(moved.shard("s1").heard.filter((line) => line.startsWith("withdraw"))).toHaveLength(2);
  },
);

verifies(
  "L21",
  "an owner that goes out of reach before it has answered is waited for 2 s, and told of the client's end",
  () => {
    const entry = new EntryLinks();
    entry.addHome("h1");
    entry.shard("s1").isSilent = true;
    const box = entry.box("h1");
    entry.away.add("s1");
    entry.table.shardsChanged(new Set(["s1"]) as never);
    entry.runtime.advance(2_500);
    expect(box.end).toBe("4503 5000");
    expect(entry.shard("s1").heard).toEqual(["register box h1 new", "withdraw h1"]);
  },
);

verifies(
  "L21",
  "where node and owner disagree the node looks for newer news once, then says 4503",
  async () => {
    const entry = new EntryLinks();
    entry.addHome("h1", "s1", 5);
    entry.shard("s1").refusal = { kind: "not-owner", placement: undefined };
    entry.onCatchUp = () => entry.placements.set("h1", { shard: "s2" as never, revision: 9 });
    const learnt = entry.box("h1");
    await entry.runtime.advanceAsync(0);
    expect(entry.catchUps).toBe(1);
    expect(learnt.end).toBe("4421 s2.moor.localhost");

    const other = new EntryLinks();
    other.addHome("h1");
    other.shard("s1").refusal = { kind: "not-owner", placement: undefined };
    const stuck = other.box("h1");
    await other.runtime.advanceAsync(0);
    expect(other.catchUps).toBe(1);
    expect(stuck.end).toBe("4503 5000");
  },
);

verifies(
  "L21",
  "an owner that knows better is believed: who follows goes there, the others are registered there",
  () => {
    const entry = new EntryLinks();
    for (const home of ["h1", "h2"]) entry.addHome(home, "s1", 5);
    entry.shard("s1").refusal = { kind: "not-owner", placement: { shard: "s2" as never, revision: 9 } };
    expect(entry.box("h1").end).toBe("4421 s2.moor.localhost");
    const relayed = entry.box("h2", { caps: [] });
    expect(relayed.helloOk?.host).toBe("moor.localhost");
    expect(entry.shard("s2").heard).toEqual(["register box h2 new"]);
  },
);

test("two shards that both deny a home send nobody round and round", async () => {
  const entry = new EntryLinks();
  entry.addHome("h1", "s1", 1);
  let revision = 1;
  for (const [id, other] of [
    ["s1", "s2"],
    ["s2", "s1"],
  ] as const) {
    Object.defineProperty(entry.shard(id), "refusal", {
      get: () => ({ kind: "not-owner", placement: { shard: other, revision: (revision += 1) } }),
    });
  }
  const box = entry.box("h1", { caps: [] });
  await entry.runtime.advanceAsync(0);
  expect(box.end).toBe("4503 5000");
  expect(revision).toBeLessThan(10);
});

verifies("L23", "what a shard refuses ends with the close code of its reason", () => {
  const cases = [
    [{ kind: "incumbent-stays", waitMs: 600_000 }, "4429 600000"],
    [{ kind: "busy", waitMs: 30_000 }, "4429 30000"],
    [{ kind: "superseded" }, "4409"],
    [{ kind: "revoked" }, "4401"],
    [{ kind: "home-gone" }, "4401"],
  ] as const;
  for (const [refusal, end] of cases) {
    const entry = new EntryLinks();
    entry.addHome("h1");
    entry.shard("s1").refusal = refusal;
    expect(entry.box("h1").end).toBe(end);
  }
});

verifies("L25", "a home that handshakes without end is told to wait, and another one is not", () => {
  const entry = new EntryLinks();
  entry.addHome("h1");
  const token = entry.addToken("h1");
  const other = entry.addToken("h2");
  const ends = Array.from({ length: 130 }, () => entry.app(token).end);
  expect(ends.filter((end) => end === "open")).toHaveLength(120);
  expect(ends.at(-1)).toMatch(/^4429 \d+$/);
  expect(entry.app(other).isOnline).toBe(true);
  entry.runtime.advance(60_000);
  expect(entry.app(token).isOnline).toBe(true);
});

verifies(
  "L25",
  "links that came online are no unfinished work of their address, however many there were",
  () => {
    const entry = new EntryLinks();
    const { handshaking } = entry.table;
    entry.addHome("h1");
    for (let made = 0; made < 60; made += 1) {
      for (let at = 0; at < 100; at += 1) expect(entry.app(entry.addToken(`h${made}`)).isOnline).toBe(true);
    }
    expect([...handshaking.all()]).toEqual([]);
    expect(handshaking.hasRoomFor("192.0.2.1")).toBe(true);
  },
);

verifies(
  "L25",
  "signatures beyond the queue's bounds are refused with 4429, and nothing is kept of them",
  () => {
    const entry = new EntryLinks();
    const pair = entry.addHome("h1");
    entry.isHolding = true;
    const boxes = Array.from({ length: 4_200 }, () => entry.hail("h1"));
    for (const box of boxes) entry.prove(box, "h1", pair);
    const refused = boxes.filter((box) => box.end === "4429");
    expect(refused).toHaveLength(4_200 - 4_096 - 8);
    expect(entry.table.signatureCount).toBe(4_096 + 8);
  },
);

test("a client that leaves in its handshake is withdrawn, and what comes back for it is ignored", () => {
  const entry = new EntryLinks();
  entry.addHome("h1");
  const shard = entry.shard("s1");
  shard.isSilent = true;
  const box = entry.box("h1");
  box.leave();
  const [link] = shard.registered;
  if (link === undefined) throw new Error("not registered");
  entry.table.port.linkAccepted(link.linkId, { generation: 7, presence: shard.presence }, shard);
  expect(box.kinds).toEqual(["challenge"]);
  expect(shard.heard.at(-1)).toBe("withdraw h1");
  expect(entry.table.drain.links()).toBe(0);
  expect(entry.outcomes).toEqual(["gone"]);
});

test("a client that leaves while its proof is checked costs nothing more", () => {
  const entry = new EntryLinks();
  entry.addHome("h1");
  entry.isHolding = true;
  const box = entry.hail("h1");
  entry.prove(box, "h1");
  box.leave();
  entry.heldChecks[0]?.();
  expect(entry.shard("s1").heard).toEqual([]);
});
