// One link: what its frames may be, its signs of life, what it may send, how it ends.

import { CLOSE_CODE, encodeLinkFrame, type CommandId, type HomeId } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { expect, test } from "vitest";
import { EntryLinks, helloText, type LinkClient } from "./support/entry-links.ts";

function online(role: "box" | "app" = "box"): { readonly entry: EntryLinks; readonly client: LinkClient } {
  const entry = new EntryLinks();
  entry.addHome("h1");
  const client = role === "box" ? entry.box("h1") : entry.app(entry.addToken("h1"));
  expect(client.isOnline).toBe(true);
  return { entry, client };
}

/** A data member of so many bytes. */
function dataOf(byteCount: number): string {
  return JSON.stringify("x".repeat(byteCount - 2));
}

verifies(
  "L27",
  "binary, what is no JSON, no object or no frame, and what is too large, ends with 4400",
  () => {
    const cases: readonly [string | Uint8Array, string, boolean?][] = [
      [Buffer.from('{"t":"ping"}'), "4400 binary", true],
      ["", "4400 not-json"],
      ["ping", "4400 not-json"],
      ['{"t":"ping"}{"t":"ping"}', "4400 not-json"],
      ["[]", "4400 not-an-object"],
      ["{}", "4400 no-kind"],
      ['{"t":7}', "4400 no-kind"],
      ['{"t":"ping","t":"pong"}', "4400 member-twice"],
      ['{"t":"event"}', "4400 member-missing"],
      ['{"t":"event","data":1,"data":2}', "4400 member-twice"],
      [`{"t":"event","data":${dataOf(65_537)}}`, "4400 too-large"],
      [`{"t":"now","data":${dataOf(4_097)}}`, "4400 too-large"],
      [`{"t":"new","x":${dataOf(69_700)}}`, "4400 too-large"],
    ];
    for (const [text, end, isBinary] of cases) {
      const { client, entry } = online();
      client.sayText(text, isBinary);
      expect(client.end).toBe(end);
      expect(entry.closes).toEqual(["4400"]);
    }
  },
);

verifies("L27", "the largest data passes, byte for byte; unknown kinds and fields are ignored", () => {
  const { client, entry } = online();
  const odd = '{ "a" : 1.0e+2 , "\\u0061":[ ]}';
  client.sayText(`{"t":"event","data":${dataOf(65_536)}}`);
  client.sayText(`{"x":1,"t":"event","data":${odd},"y":{}}`);
  client.sayText('{"t":"moved","host":"evil.example"}');
  client.sayText('{"t":"cmd","id":"c1","ttl_ms":1,"data":1}'); // an app's, not a box's
  client.sayText(`{"t":"now","data":${dataOf(4_096)}}`);
  expect(client.end).toBe("open");
  expect(entry.shard("s1").heard.slice(1)).toEqual([
    `event h1 ${dataOf(65_536)}`,
    `event h1 ${odd}`,
    `now h1 ${dataOf(4_096)}`,
  ]);
});

verifies("L27", "a frame of the wrong time ends with 4400", () => {
  const entry = new EntryLinks();
  entry.addHome("h1");
  const early = entry.open("box");
  early.sayText('{"t":"event","data":1}');
  const unproven = entry.hail("h1");
  unproven.sayText('{"t":"event","data":1}');
  const again = entry.box("h1");
  again.sayText(helloText({}));
  const unasked = entry.open("box");
  unasked.sayText(encodeLinkFrame({ t: "proof", sig: `${"x".repeat(85)}A` as never }));
  expect([early, unproven, again, unasked].map(({ end }) => end)).toEqual([
    "4400 hello-expected",
    "4400 too-early",
    "4400 too-late",
    "4400 hello-expected",
  ]);
});

verifies("L32", "the service pings every ping_ms and answers pings; any frame is life", () => {
  const { client, entry } = online("app");
  entry.runtime.advance(24_900);
  expect(client.of("ping")).toHaveLength(0);
  entry.runtime.advance(600);
  expect(client.of("ping")).toHaveLength(1);
  client.say({ t: "ping" });
  expect(client.of("pong")).toHaveLength(1);
  for (let at = 0; at < 10; at += 1) {
    entry.runtime.advance(25_000);
    client.sayText('{"t":"whatever"}');
  }
  expect(client.end).toBe("open");
  expect(client.of("ping").length).toBeGreaterThanOrEqual(10);
});

verifies("L32", "2.5 pings of silence end a link, and its shard hears of it", () => {
  const { client, entry } = online();
  entry.runtime.advance(62_400);
  expect(client.end).toBe("open");
  entry.runtime.advance(700);
  expect(client.end).toBe("destroyed");
  expect(entry.shard("s1").heard.at(-1)).toBe("withdraw h1");
  expect(entry.closes).toEqual(["silent"]);
});

test("a thousand links and their pings need one timer, and none when they are gone", () => {
  const entry = new EntryLinks();
  const clients = Array.from({ length: 1_000 }, (_, at) => entry.app(entry.addToken(`h${at}`)));
  expect(entry.runtime.pendingCount).toBe(1);
  entry.runtime.advance(26_000);
  expect(clients.every((client) => client.of("ping").length === 1)).toBe(true);
  for (const client of clients) client.leave();
  entry.runtime.advance(70_000);
  expect(entry.runtime.pendingCount).toBe(0);
  expect(entry.table.drain.links()).toBe(0);
});

verifies("L25", "a peer that does not read is cut before more is queued for it", () => {
  const { client, entry } = online("app");
  client.socket.waitingBytes = 512 * 1024 + 1;
  entry.table.port.sendEvent([client.session.linkId], "1");
  expect(client.end).toBe("destroyed");
  expect(client.of("event")).toHaveLength(0);
  expect(entry.closes).toEqual(["slow"]);
  const pinging = online();
  pinging.client.socket.waitingBytes = 512 * 1024 + 1;
  expect(pinging.client.session.receiveControl(125)).toBe(false);
  expect(pinging.client.end).toBe("destroyed");
});

verifies(
  "L25",
  "a link that sends without end is closed with 4429, by frames or by bytes; one that pauses is not",
  () => {
    const frames = online();
    for (let at = 0; at < 5_000 && frames.client.end === "open"; at += 1) frames.client.say({ t: "pong" });
    expect(frames.client.end).toBe("4429 too-much");
    const bytes = online();
    const text = `{"t":"event","data":${dataOf(60_000)}}`;
    for (let at = 0; at < 200 && bytes.client.end === "open"; at += 1) bytes.client.sayText(text);
    expect(bytes.client.end).toBe("4429 too-much");
    expect(bytes.entry.shard("s1").heard.length).toBeGreaterThan(100);
    const paced = online();
    for (let at = 0; at < 2_000; at += 1) {
      paced.client.say({ t: "pong" });
      paced.entry.runtime.advance(5);
    }
    expect(paced.client.end).toBe("open");
  },
);

verifies(
  "L25",
  "a client that sends more than a handshake takes is closed with 4429, one that is online is not",
  () => {
    const entry = new EntryLinks();
    entry.addHome("h1");
    const [pings, frames, controls, hailed] = [
      entry.open("box"),
      entry.open("box"),
      entry.open("box"),
      entry.hail("h1"),
    ];
    const counts = { pings: 0, frames: 0, controls: 0 };
    for (; pings.end === "open" && counts.pings < 1_000; counts.pings += 1) pings.say({ t: "ping" });
    for (; frames.end === "open" && counts.frames < 1_000; counts.frames += 1)
      frames.sayText(`{"t":"x","p":${dataOf(60_000)}}`);
    for (; controls.session.receiveControl(125) && counts.controls < 1_000; counts.controls += 1);
    expect([pings.end, frames.end, controls.end]).toEqual(Array(3).fill("4429 too-much"));
    expect(Math.max(...Object.values(counts))).toBeLessThan(100);
    entry.runtime.advance(9_000);
    for (let at = 0; at < 20; at += 1) hailed.say({ t: "ping" });
    entry.prove(hailed, "h1");
    for (let at = 0; at < 200; at += 1) hailed.say({ t: "ping" });
    expect([hailed.end, hailed.isOnline]).toEqual(["open", true]);
  },
);

test("control frames of the WebSocket count as life, and against what a link may send", () => {
  const { client, entry } = online();
  for (let at = 0; at < 5; at += 1) {
    entry.runtime.advance(60_000);
    expect(client.session.receiveControl(4)).toBe(true);
  }
  while (client.session.receiveControl(125));
  expect(client.end).toBe("4429 too-much");
});

test("nothing is read or written after a close has begun, and a socket that stays is destroyed after 5 s", () => {
  const { client, entry } = online();
  client.session.close(CLOSE_CODE.auth, "");
  client.sayText('{"t":"event","data":1}');
  expect(client.session.send("x")).toBe(false);
  client.session.close(CLOSE_CODE.replaced, "");
  expect(client.end).toBe("4401");
  expect(entry.shard("s1").heard).toEqual(["register box h1 new", "withdraw h1"]);
  entry.runtime.advance(4_900);
  expect(client.socket.isDestroyed).toBe(false);
  entry.runtime.advance(700);
  expect(client.socket.isDestroyed).toBe(true);
  client.leave();
  expect(entry.closes).toEqual(["4401"]);
});

test("a token that is revoked ends its links at once, a box key that is replaced that of its box", () => {
  const entry = new EntryLinks();
  entry.addHome("h1");
  const token = entry.addToken("h1");
  const [app, other] = [entry.app(token), entry.app(entry.addToken("h1"))];
  const box = entry.box("h1");
  entry.table.keyRevoked(entry.tokens.get(token)?.keyId ?? "");
  expect([app.end, other.end, box.end]).toEqual(["4401", "open", "open"]);
  entry.table.homeChanged("h1" as HomeId); // nothing of it that matters
  expect([other.end, box.end]).toEqual(["open", "open"]);
  entry.addHome("h1");
  entry.table.homeChanged("h1" as HomeId);
  expect([other.end, box.end]).toEqual(["open", "4401"]);
  entry.boxes.delete("h1");
  entry.placements.delete("h1");
  entry.table.homeChanged("h1" as HomeId);
  expect(other.end).toBe("4401");
});

verifies(
  "L28",
  "a box key that is replaced between its proof and its owner's word brings nobody online",
  () => {
    const entry = new EntryLinks();
    entry.addHome("h1");
    const shard = entry.shard("s1");
    shard.isSilent = true;
    const box = entry.box("h1");
    const [asked] = shard.registered;
    if (asked === undefined) throw new Error("the owner was not asked");
    expect([box.end, asked.seenSeq]).toEqual(["open", 7]);
    entry.addHome("h1"); // another box is enrolled
    entry.table.homeChanged("h1" as HomeId);
    shard.accept(asked);
    expect([box.end, box.isOnline, box.helloOk]).toEqual(["4401", false, undefined]);
  },
);

test("a token revoked between its hello and its owner's word brings nobody online", () => {
  const entry = new EntryLinks();
  entry.addHome("h1");
  entry.shard("s1").isSilent = true;
  const token = entry.addToken("h1");
  const app = entry.app(token);
  entry.table.keyRevoked(entry.tokens.get(token)?.keyId ?? "");
  expect(app.end).toBe("4401");
});

verifies(
  ["L3", "L24"],
  "a drain closes links in its batches, those in their handshake too, and destroys the late ones",
  () => {
    const entry = new EntryLinks();
    entry.addHome("h1");
    const box = entry.box("h1");
    const app = entry.app(entry.addToken("h1"));
    const silent = entry.open("app");
    const { drain } = entry.table;
    expect([...drain.clients()]).toEqual([
      { home: "h1", role: "box" },
      { home: "h1", role: "app", app: "phone" },
    ]);
    drain.refuseDials();
    expect(entry.table.isRefusing).toBe(true);
    expect(drain.closeSome(2, CLOSE_CODE.restart, "20000")).toBe(2);
    expect([box.end, app.end, silent.end]).toEqual(["4503 20000", "4503 20000", "open"]);
    expect(entry.shard("s1").heard.slice(-2)).toEqual(["withdraw h1 20000", "withdraw h1 20000"]);
    expect(drain.closeSome(2, CLOSE_CODE.restart, "20000")).toBe(1);
    expect(drain.closeSome(2, CLOSE_CODE.restart, "20000")).toBe(0);
    expect([...drain.clients()]).toEqual([]);
    box.leave();
    entry.runtime.advance(3_000);
    expect(drain.destroyLate(3_000)).toBe(2);
    expect([app.socket.isDestroyed, silent.socket.isDestroyed]).toEqual([true, true]);
    app.leave();
    silent.leave();
    expect(drain.links()).toBe(0);
  },
);

test("a command of an app goes by its id's first ending only", () => {
  const { client, entry } = online("app");
  client.say({ t: "cmd", id: "c1" as CommandId, ttl_ms: 1_000, data: "1" });
  client.say({ t: "cmd", id: "c1" as CommandId, ttl_ms: 1_000, data: "2" });
  expect(entry.shard("s1").commands).toHaveLength(1);
  expect(entry.closes).toEqual([]);
});
