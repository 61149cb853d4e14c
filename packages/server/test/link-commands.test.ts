// Commands from an app's frame to their one ending, and their way to the box.

import type { CommandId, HomeId } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { expect, test } from "vitest";
import type { ShardId } from "../src/directory/directory.ts";
import type { DueItem, DueWheel } from "../src/entry/link/due-wheel.ts";
import { CommandTable, type OpenCommand } from "../src/entry/link/link-commands.ts";
import type { CommandEnding } from "../src/peer/link-ports.ts";
import { ENTRY, EntryLinks, type LinkClient } from "./support/entry-links.ts";
import type { FakeHomeShard } from "./support/fake-home-shard.ts";

interface Bench {
  readonly entry: EntryLinks;
  readonly app: LinkClient;
  readonly shard: FakeHomeShard;
  send(id: string, options?: { readonly ttlMs?: number; readonly data?: string }): void;
  end(id: string, ending: CommandEnding): void;
  written(id: string): void;
}

function bench(): Bench {
  const entry = new EntryLinks();
  entry.addHome("h1");
  const app = entry.app(entry.addToken("h1"));
  const shard = entry.shard("s1");
  shard.heard.length = 0;
  const submission = (id: string) => {
    const command = [...shard.commands, ...entry.shard("s2").commands].find((sent) => sent.id === id);
    if (command === undefined) throw new Error(`no command ${id}`);
    return command.submission;
  };
  return {
    entry,
    app,
    shard,
    send: (id, { ttlMs = 10_000, data = "1" } = {}) =>
      app.sayText(`{"t":"cmd","id":"${id}","ttl_ms":${ttlMs},"data":${data}}`),
    end: (id, ending) => entry.table.port.commandEnded(submission(id), ending),
    written: (id) => entry.table.port.commandWritten(submission(id)),
  };
}

/** What an app heard of its commands. */
function heard({ app }: Bench): string[] {
  return app.frames.flatMap((frame) => {
    if (frame.t === "ack") return [`${frame.id} ack`];
    if (frame.t === "result") return [`${frame.id} ${frame.data}`];
    return frame.t === "outcome" ? [`${frame.id} ${frame.outcome}`] : [];
  });
}

verifies(
  "L31",
  "a command reaches the owner with its data byte for byte, and its app hears ack and result",
  () => {
    const on = bench();
    const data = '{ "a":1.0, "b" :"\\u00e9é" }';
    on.send("c1", { data });
    expect(on.shard.commands[0]).toMatchObject({
      id: "c1",
      app: "phone",
      remainingMs: 10_000,
      data,
      isAgain: false,
    });
    on.written("c1");
    on.written("c1");
    on.end("c1", { kind: "result", data });
    on.end("c1", { kind: "unknown" });
    expect(heard(on)).toEqual(["c1 ack", `c1 ${data}`]);
    expect(on.entry.table.commands.size).toBe(0);
  },
);

verifies(["L20", "L31"], "each ending is an outcome of its own", () => {
  const on = bench();
  for (const id of ["a", "b", "c"]) on.send(id);
  on.end("a", { kind: "unknown" });
  on.end("b", { kind: "not-delivered", why: "no-box" });
  on.end("c", { kind: "expired" });
  expect(heard(on)).toEqual(["a unknown", "b not_delivered", "c expired"]);
});

verifies(
  "L20",
  "what a shard gives back goes to the owner with the time that is left; what was written does not",
  () => {
    const on = bench();
    on.send("c1");
    on.send("c2");
    on.written("c2");
    on.entry.runtime.advance(3_000);
    const placement = { shard: "s2" as ShardId, revision: 2 };
    on.end("c1", { kind: "not-owner", placement });
    on.end("c2", { kind: "not-owner", placement });
    expect(on.entry.shard("s2").commands).toHaveLength(1);
    expect(on.entry.shard("s2").commands[0]).toMatchObject({ id: "c1", remainingMs: 7_000, isAgain: false });
    expect(heard(on)).toEqual(["c2 ack", "c2 unknown"]);
  },
);

test("a command holds its data until it is written or ends, though the wheel still holds the command", () => {
  const { runtime, table, shards } = bench().entry;
  const onWheel: OpenCommand[] = [];
  const commands = new CommandTable({
    entry: ENTRY,
    runtime,
    wheel: { add: (item: OpenCommand) => void onWheel.push(item) } as unknown as DueWheel<DueItem>,
    placements: table.context.placements,
    shardPort: (shard) => shards.get(shard),
  });
  const submit = (id: string) =>
    commands.submit({
      home: "h1" as HomeId,
      id: id as CommandId,
      app: undefined,
      ttlMs: 1_000,
      data: '"large"',
      waiter: { written: () => {}, ended: () => {} },
    });
  const [waiting, written, ended, withdrawn] = ["c1", "c2", "c3", "c4"].map(submit);
  if (!waiting || !written || !ended || !withdrawn) throw new Error("not submitted");
  commands.written(written);
  commands.ended(ended, { kind: "unknown" });
  commands.withdraw(withdrawn);
  expect(onWheel.map(({ data }) => data)).toEqual(['"large"', "null", "null", "null"]);
  commands.shardsChanged(new Set(["s1" as ShardId]));
  expect(shards.get("s1")?.commands.slice(-2)).toMatchObject([
    { id: "c1", data: '"large"', isAgain: true },
    { id: "c2", data: "null", isAgain: true },
  ]);
});

verifies("L20", "a command whose owner is out of reach is held within its TTL, then expired", () => {
  const on = bench();
  on.entry.away.add("s1");
  on.send("c1");
  on.send("c2", { ttlMs: 2_000 });
  on.entry.runtime.advance(2_600);
  expect(heard(on)).toEqual(["c2 expired"]);
  on.entry.away.clear();
  on.entry.table.shardsChanged(new Set(["s1" as ShardId]));
  expect(on.shard.commands.map(({ id, isAgain }) => [id, isAgain])).toEqual([["c1", false]]);
});

verifies(
  "L20",
  "what was sent is asked after when its shard is back, and unknown 30 s after its TTL at the latest",
  () => {
    const on = bench();
    on.send("c1", { ttlMs: 1_000 });
    on.entry.away.add("s1");
    on.entry.table.shardsChanged(new Set(["s1" as ShardId]));
    on.entry.runtime.advance(10_000);
    expect(heard(on)).toEqual([]);
    on.entry.away.clear();
    on.entry.table.shardsChanged(new Set(["s1" as ShardId]));
    expect(on.shard.commands.at(-1)).toMatchObject({ id: "c1", remainingMs: 0, isAgain: true });
    on.entry.runtime.advance(21_600);
    expect(heard(on)).toEqual(["c1 unknown"]);
  },
);

verifies(
  "L20",
  "what was sent to an owner that is gone for good is unknown as soon as its home is placed elsewhere",
  () => {
    const on = bench();
    on.send("c1");
    on.entry.away.add("s1");
    on.entry.table.shardsChanged(new Set(["s1" as ShardId]));
    on.entry.move("h1", "s2", 2);
    expect(heard(on)).toEqual(["c1 unknown"]);
    expect(on.entry.shard("s2").commands).toEqual([]);
  },
);

verifies("L20", "an app that leaves waits for nothing: its commands are withdrawn, not undone", () => {
  const on = bench();
  on.send("c1");
  on.app.leave();
  expect(on.shard.heard.slice(-2)).toEqual(["withdraw-command h1 c1", "withdraw h1"]);
  on.end("c1", { kind: "result", data: "1" });
  expect(on.entry.table.commands.size).toBe(0);
});

verifies("L25", "a link has at most 64 commands open; one more never leaves the entry", () => {
  const on = bench();
  for (let at = 0; at < 65; at += 1) on.send(`c${at}`);
  expect(on.shard.commands).toHaveLength(64);
  expect(heard(on)).toEqual(["c64 not_delivered"]);
  on.end("c0", { kind: "result", data: "0" });
  on.send("c65");
  expect(on.shard.commands).toHaveLength(65);
});

verifies(
  "L31",
  "a command is written to the box with the time left and its app, and the shard is told that it stands there",
  () => {
    const entry = new EntryLinks();
    entry.addHome("h1");
    const box = entry.box("h1");
    const shard = entry.shard("s1");
    const command = {
      linkId: box.session.linkId,
      home: "h1" as HomeId,
      id: "c1" as CommandId,
      remainingMs: 900.7,
      data: "[1]",
    };
    entry.table.port.deliverCommand({ ...command, app: "phone" as never }, shard);
    entry.table.port.deliverCommand({ ...command, app: undefined }, shard);
    expect(box.socket.texts.slice(-2)).toEqual([
      '{"t":"cmd","id":"c1","ttl_ms":901,"data":[1],"app":"phone"}',
      '{"t":"cmd","id":"c1","ttl_ms":901,"data":[1],"app":"once"}',
    ]);
    box.leave();
    entry.table.port.deliverCommand({ ...command, app: undefined }, shard);
    expect(shard.heard.slice(-1)).toEqual(["settled h1 c1 not-written"]);
    expect(shard.heard.filter((line) => line === "settled h1 c1 written")).toHaveLength(2);
  },
);

verifies("L31", "what a box answers, tells and keeps goes to its owner", () => {
  const entry = new EntryLinks();
  entry.addHome("h1");
  const box = entry.box("h1");
  const shard = entry.shard("s1");
  shard.heard.length = 0;
  box.sayText('{"t":"result","id":"c1","data":{"ok":true}}');
  box.sayText('{"t":"outcome","id":"c2","outcome":"unknown"}');
  box.sayText('{"t":"event","data":"e"}');
  box.sayText('{"t":"now","data":{"w":3}}');
  expect(shard.heard).toEqual([
    'answered h1 c1 {"ok":true}',
    "answered h1 c2 unknown",
    'event h1 "e"',
    'now h1 {"w":3}',
  ]);
});

verifies("L31", "events and presence reach the apps they are for, and no box", () => {
  const entry = new EntryLinks();
  entry.addHome("h1");
  const box = entry.box("h1");
  const apps = ["a", "b"].map((app) => entry.app(entry.addToken("h1"), { app }));
  const ids = [box, ...apps].map(({ session }) => session.linkId);
  entry.table.port.sendEvent(ids, '{"n":1}');
  entry.table.port.sendPresence(ids, { box: "offline", sinceMs: 12.4 }, entry.shard("s1"));
  entry.table.port.sendPresence(ids, { box: "online", sinceMs: 0 }, entry.shard("s2"));
  for (const app of apps) {
    expect(app.of("event")).toEqual([{ t: "event", data: '{"n":1}' }]);
    expect(app.of("presence").at(-1)).toEqual({ t: "presence", box: "offline", since_ms: 12 });
  }
  expect(box.kinds).toEqual(["challenge", "hello_ok"]);
});

test("a TTL of years counts as ten minutes, one of nothing is expired at once", () => {
  const on = bench();
  on.send("long", { ttlMs: 1e15 });
  expect(on.shard.commands[0]?.remainingMs).toBe(600_000);
  on.send("none", { ttlMs: 0 });
  expect(heard(on)).toEqual(["none expired"]);
  expect(on.shard.commands).toHaveLength(1);
});

verifies(
  "L24",
  "a node that leaves waits for its one-shots, and ends what is left after its grace honestly",
  async () => {
    const on = bench();
    const ends: string[] = [];
    const submit = (id: string, home: string) =>
      on.entry.table.commands.submit({
        home: home as HomeId,
        id: id as CommandId,
        app: undefined,
        ttlMs: 60_000,
        data: "1",
        waiter: { written: () => {}, ended: ({ kind }) => void ends.push(`${id} ${kind}`) },
      });
    const { commands } = on.entry.table;
    await commands.finishOneShots(1_000); // none: at once
    submit("answered", "h1");
    on.send("of-an-app");
    let isFinished = false;
    const finished = commands.finishOneShots(10_000).then(() => void (isFinished = true));
    await on.entry.runtime.advanceAsync(5_000);
    expect(isFinished).toBe(false);
    on.end("answered", { kind: "result", data: "1" });
    await finished;
    on.entry.addHome("h2", "s2");
    on.entry.away.add("s2");
    submit("sent", "h1");
    submit("held", "h2");
    const given = commands.finishOneShots(10_000);
    await on.entry.runtime.advanceAsync(10_000);
    await given;
    expect(ends).toEqual(["answered result", "sent unknown", "held not-delivered"]);
    expect(commands.size).toBe(1);
  },
);
