// Messages about homes and links: what one side calls, the other is called with, whatever lies between.

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AppInstance, CommandId, HomeId } from "@moor/protocol";
import { VirtualRuntime } from "@moor/testkit";
import type { ShardId } from "../src/directory/directory.ts";
import { foreignHomeShard } from "../src/peer/foreign-home-shard.ts";
import { HOME_SHARD_MESSAGES } from "../src/peer/home-shard-messages.ts";
import { LINK_ENTRY_MESSAGES } from "../src/peer/link-entry-messages.ts";
import type {
  CommandEnding,
  HomeShardPort,
  HomeStatus,
  LinkEnding,
  LinkEntryPort,
  LinkId,
  LinkRefusal,
  NowOutcome,
  RegisteredLink,
  SubmissionId,
  SubmittedCommand,
} from "../src/peer/link-ports.ts";
import { noLinks } from "../src/peer/no-links.ts";
import type { EntryId, KnownPlacement } from "../src/peer/peer-link.ts";
import { MalformedHead, type RawHead } from "../src/peer/peer-messages.ts";
import { PeerOutbox } from "../src/peer/peer-outbox.ts";
import { RemoteHomeShard } from "../src/peer/remote-home-shard.ts";
import { RemoteLinkEntry } from "../src/peer/remote-link-entry.ts";
import type { Peer, PeerMessage } from "../src/peer/transport/peer-network.ts";
import { checkProperty } from "./support/check-property.ts";
import { RecordingEntry } from "./support/home-stage.ts";

const FILE = "packages/server/test/link-messages.test.ts";
const SHARD = "s1" as ShardId;
const ENTRY = "e1" as EntryId;
const [HOME, LINK, ID] = ["h1" as HomeId, "e1-1" as LinkId, "c1" as CommandId];
const SUBMISSION = "e1-2" as SubmissionId;
const PLACEMENT: KnownPlacement = { shard: SHARD, revision: 2_000_000_000_000_001 };
/** What JSON.parse and JSON.stringify would change. */
const DATA = '{"n": 1.0,"big":12345678901234567890,"text":"é\u{1f600}"}';

/** A message as the other side reads it. */
function overTheWire({ head, payload }: PeerMessage): PeerMessage {
  const read = JSON.parse(JSON.stringify(head)) as RawHead;
  return payload === undefined ? { head: read } : { head: read, payload: Uint8Array.from(payload) };
}

/** A shard behind the wire, and what it was called with. */
function farShard(answers: { now?: NowOutcome; status?: HomeStatus | undefined } = {}) {
  const calls: unknown[][] = [];
  const note =
    (name: string) =>
    (...args: unknown[]) =>
      void calls.push([name, ...args]);
  const shard: HomeShardPort = {
    shard: SHARD,
    registerLink: note("registerLink"),
    withdrawLink: note("withdrawLink"),
    submitCommand: note("submitCommand"),
    withdrawCommand: note("withdrawCommand"),
    commandSettled: note("commandSettled"),
    boxAnswered: note("boxAnswered"),
    boxEvent: note("boxEvent"),
    boxNow: note("boxNow"),
    readNow: (home, placement, answer) => {
      calls.push(["readNow", home, placement]);
      answer(answers.now ?? { kind: "none" });
    },
    describeHome: (home, answer) => {
      calls.push(["describeHome", home]);
      answer(answers.status);
    },
  };
  return { shard, calls };
}

/** The near end of a wire to `shard`. */
function remoteShard(shard: HomeShardPort, isUp = true): { remote: RemoteHomeShard; entry: RecordingEntry } {
  const entry = new RecordingEntry(ENTRY);
  const deliver = (message: PeerMessage, reply: (said: PeerMessage) => void) => {
    const { head, payload } = overTheWire(message);
    const handler = HOME_SHARD_MESSAGES[String(head["t"])];
    if (handler === undefined) throw new Error(`no handler of ${String(head["t"])}`);
    handler(shard, payload === undefined ? { head } : { head, payload }, { sender: ENTRY, reply });
  };
  const remote = new RemoteHomeShard({
    shard: SHARD,
    entry: () => entry,
    send: (message) => {
      if (isUp) deliver(message, () => {});
      return isUp;
    },
    sendSurely: (message) => deliver(message, () => {}),
    ask: (head, onReply) => {
      if (isUp) deliver({ head }, (said) => onReply(overTheWire(said)));
      else onReply(undefined);
    },
  });
  return { remote, entry };
}

describe("to a shard", () => {
  const box: RegisteredLink = {
    linkId: LINK,
    entry: ENTRY,
    home: HOME,
    role: "box",
    app: undefined,
    isFollowing: true,
    credential: "key",
    seenSeq: 42,
    generation: 2_000_000_000_000_007,
    placement: { ...PLACEMENT, tokenKey: "tk_1", tokenFormat: 1 },
  };
  const command: SubmittedCommand = {
    submission: SUBMISSION,
    entry: ENTRY,
    home: HOME,
    id: ID,
    app: "phone" as AppInstance,
    remainingMs: 1_234.5,
    data: DATA,
    placement: PLACEMENT,
    isAgain: false,
  };

  test("every call arrives as it was made", () => {
    const { shard, calls } = farShard();
    const { remote } = remoteShard(shard);
    const made: (readonly [keyof HomeShardPort, ...(readonly unknown[])])[] = [
      ["registerLink", box],
      [
        "registerLink",
        { ...box, role: "app", app: "phone" as AppInstance, generation: undefined, isFollowing: false },
      ],
      ["withdrawLink", HOME, LINK, undefined],
      ["withdrawLink", HOME, LINK, 5_000],
      ["submitCommand", command],
      ["submitCommand", { ...command, app: undefined, isAgain: true }],
      ["withdrawCommand", HOME, SUBMISSION],
      ["commandSettled", HOME, LINK, ID, "written"],
      ["commandSettled", HOME, LINK, ID, "not-written"],
      ["boxAnswered", HOME, LINK, ID, { kind: "result", data: DATA }],
      ["boxAnswered", HOME, LINK, ID, { kind: "outcome", outcome: "not_delivered" }],
      ["boxAnswered", HOME, LINK, ID, { kind: "outcome", outcome: "expired" }],
      ["boxAnswered", HOME, LINK, ID, { kind: "outcome", outcome: "unknown" }],
      ["boxEvent", HOME, LINK, DATA],
      ["boxNow", HOME, LINK, DATA],
    ];
    for (const [name, ...args] of made) (remote[name] as (...args: readonly unknown[]) => void)(...args);
    expect(calls).toEqual(made);
  });

  test("the entry of a message is its sender, whatever the call said", () => {
    const { shard, calls } = farShard();
    remoteShard(shard).remote.registerLink({ ...box, entry: "other" as EntryId });
    expect(calls).toEqual([["registerLink", box]]);
  });

  test("questions are answered with what the shard says, or with nothing", () => {
    const outcomes: NowOutcome[] = [
      { kind: "snapshot", data: DATA, ageMs: 1_000, etag: "abc" },
      { kind: "none" },
      { kind: "not-owner", placement: PLACEMENT },
      { kind: "not-owner", placement: undefined },
    ];
    for (const now of outcomes) {
      remoteShard(farShard({ now }).shard).remote.readNow(HOME, PLACEMENT, (said) =>
        expect(said).toEqual(now),
      );
    }
    const status: HomeStatus = {
      presence: { box: "online", sinceMs: 7 },
      box: { entry: ENTRY, ageMs: 7, isFollowing: true, generation: 2_000_000_000_000_007 },
      apps: [{ entry: ENTRY, ageMs: 3, isFollowing: false, app: "phone" as AppInstance }],
      duplicateIdentity: { remainingMs: 5, heldOff: 2 },
      commandsOpen: 1,
    };
    const bare = { ...status, box: undefined, apps: [], duplicateIdentity: undefined };
    for (const told of [status, bare, undefined]) {
      remoteShard(farShard({ status: told }).shard).remote.describeHome(HOME, (said) =>
        expect(said).toEqual(told),
      );
    }
    const away = remoteShard(farShard().shard, false).remote;
    away.readNow(HOME, PLACEMENT, (said) => expect(said).toEqual({ kind: "unavailable" }));
    away.describeHome(HOME, (said) => expect(said).toBeUndefined());
  });

  test("a command that cannot be sent was not delivered; one that was sent before is unknown", () => {
    const { remote, entry } = remoteShard(farShard().shard, false);
    remote.submitCommand(command);
    remote.submitCommand({ ...command, isAgain: true });
    expect(entry.takeOnly("commandEnded")).toEqual([
      [SUBMISSION, { kind: "not-delivered", why: "busy" }],
      [SUBMISSION, { kind: "unknown" }],
    ]);
  });

  test("a node that does not run the shard owns nothing, and runs nothing anew", () => {
    const entry = new RecordingEntry(ENTRY);
    const { remote } = remoteShard(foreignHomeShard(SHARD, () => entry));
    const notOwner = { kind: "not-owner", placement: undefined };
    remote.registerLink(box);
    remote.submitCommand(command);
    remote.submitCommand({ ...command, isAgain: true });
    remote.boxEvent(HOME, LINK, DATA);
    expect(entry.take()).toEqual([
      ["linkRefused", LINK, notOwner],
      ["commandEnded", SUBMISSION, notOwner],
      ["commandEnded", SUBMISSION, { kind: "unknown" }],
    ]);
    remote.readNow(HOME, PLACEMENT, (said) => expect(said).toEqual(notOwner));
    remote.describeHome(HOME, (said) => expect(said).toBeUndefined());
  });
});

describe("to an entry", () => {
  function remoteEntry(far: LinkEntryPort, isUp = true): RemoteLinkEntry {
    const { shard } = farShard();
    const deliver = (message: PeerMessage) => {
      const read = overTheWire(message);
      const handler = LINK_ENTRY_MESSAGES[String(read.head["t"])];
      if (handler === undefined) throw new Error(`no handler of ${String(read.head["t"])}`);
      handler({ entry: far, shard: () => shard }, read);
    };
    const send = (message: PeerMessage) => {
      if (isUp) deliver(message);
      return isUp;
    };
    return new RemoteLinkEntry({ entry: ENTRY, send, sendSurely: deliver });
  }

  test("every call arrives as it was made", () => {
    const far = new RecordingEntry(ENTRY);
    const remote = remoteEntry(far);
    const presence = { box: "unknown", sinceMs: 12 } as const;
    const refusals: LinkRefusal[] = [
      { kind: "not-owner", placement: PLACEMENT },
      { kind: "not-owner", placement: undefined },
      { kind: "incumbent-stays", waitMs: 1_000 },
      { kind: "superseded" },
      { kind: "busy", waitMs: 2_000 },
      { kind: "revoked" },
      { kind: "home-gone" },
    ];
    const endings: LinkEnding[] = [
      { kind: "not-owner", placement: PLACEMENT },
      { kind: "replaced" },
      { kind: "revoked" },
      { kind: "home-gone" },
    ];
    const commandEndings: CommandEnding[] = [
      { kind: "result", data: DATA },
      { kind: "unknown" },
      { kind: "expired" },
      { kind: "not-delivered", why: "no-box" },
      { kind: "not-delivered", why: "busy" },
      { kind: "not-delivered", why: "box" },
      { kind: "not-owner", placement: PLACEMENT },
    ];
    const delivered = { linkId: LINK, home: HOME, id: ID, remainingMs: 5, data: DATA };
    const made: (readonly [keyof LinkEntryPort, ...(readonly unknown[])])[] = [
      ["linkAccepted", LINK, { generation: 2_000_000_000_000_007, presence }],
      ["linkAccepted", LINK, { generation: undefined, presence: { box: "online", sinceMs: 0 } }],
      ...refusals.map((refusal) => ["linkRefused", LINK, refusal] as const),
      ...endings.map((ending) => ["closeLink", LINK, ending] as const),
      ["deliverCommand", { ...delivered, app: "phone" }],
      ["deliverCommand", { ...delivered, app: undefined }],
      ["commandWritten", SUBMISSION],
      ...commandEndings.map((ending) => ["commandEnded", SUBMISSION, ending] as const),
      ["sendEvent", [LINK, "e1-3"], DATA],
      ["sendPresence", [LINK], { box: "offline", sinceMs: 3 }],
    ];
    const port = farShard().shard;
    for (const [name, ...args] of made) {
      (remote[name] as (...args: readonly unknown[]) => void)(...args, port);
    }
    expect(far.take()).toEqual(made);
  });

  test("a command that cannot be sent is settled as not written, and one at a node without links too", () => {
    for (const entry of [remoteEntry(new RecordingEntry(ENTRY), false), noLinks(ENTRY).port]) {
      const { shard, calls } = farShard();
      entry.deliverCommand(
        { linkId: LINK, home: HOME, id: ID, app: undefined, remainingMs: 5, data: DATA },
        shard,
      );
      expect(calls).toEqual([["commandSettled", HOME, LINK, ID, "not-written"]]);
    }
  });

  test("a word of a later version means the most careful one", () => {
    const far = new RecordingEntry(ENTRY);
    const context = { entry: far, shard: () => farShard().shard };
    const tell = (head: RawHead) => LINK_ENTRY_MESSAGES[String(head["t"])]?.(context, { head });
    tell({ t: "link-refused", shard: SHARD, link: LINK, why: "tomorrow" });
    tell({ t: "command-ended", submission: SUBMISSION, ending: "tomorrow" });
    tell({ t: "close-link", shard: SHARD, link: LINK, why: "tomorrow" });
    expect(far.take()).toEqual([
      ["linkRefused", LINK, { kind: "busy", waitMs: 30_000 }],
      ["commandEnded", SUBMISSION, { kind: "unknown" }],
      ["closeLink", LINK, { kind: "not-owner", placement: undefined }],
    ]);
  });
});

describe("malformed messages", () => {
  test("are refused as such, and cost nothing else", async () => {
    const names = [...Object.keys(HOME_SHARD_MESSAGES), ...Object.keys(LINK_ENTRY_MESSAGES)];
    const field = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom("h1", "box", "written", "result", "online", "not-owner"),
      fc.constant({ shard: "s1", revision: 1 }),
    );
    const members = ["home", "link", "links", "role", "app", "credential", "generation", "placement", "id"];
    const more = ["submission", "outcome", "answer", "remainingMs", "why", "ending", "box", "sinceMs"];
    const head = fc.dictionary(fc.constantFrom(...members, ...more), field);
    const payload = fc.option(fc.uint8Array({ maxLength: 10 }), { nil: undefined });
    await checkProperty(
      fc.property(fc.constantFrom(...names), head, payload, (t, fields, bytes) => {
        const message = { head: { ...fields, t }, ...(bytes === undefined ? {} : { payload: bytes }) };
        const { shard } = farShard();
        try {
          HOME_SHARD_MESSAGES[t]?.(shard, message, { sender: ENTRY, reply: () => {} });
          LINK_ENTRY_MESSAGES[t]?.({ entry: new RecordingEntry(ENTRY), shard: () => shard }, message);
        } catch (error) {
          expect(error).toBeInstanceOf(MalformedHead);
        }
      }),
      2_000,
      FILE,
    );
  });

  test.each([
    ["an event without data", { t: "box-event", home: HOME, link: LINK }, undefined],
    ["a snapshot over 4 KiB", { t: "box-now", home: HOME, link: LINK }, new Uint8Array(4_097)],
    ["data over 64 KiB", { t: "box-event", home: HOME, link: LINK }, new Uint8Array(65_537)],
    [
      "an app link without an app",
      { t: "register-link", home: HOME, link: LINK, role: "app", credential: "k", placement: PLACEMENT },
      undefined,
    ],
    [
      "a generation that is no whole number",
      {
        t: "register-link",
        home: HOME,
        link: LINK,
        role: "box",
        credential: "k",
        placement: PLACEMENT,
        generation: 1.5,
      },
      undefined,
    ],
  ])("%s is none", (_what, head, payload) => {
    const message = payload === undefined ? { head } : { head, payload };
    const { shard, calls } = farShard();
    const take = () => HOME_SHARD_MESSAGES[head.t]?.(shard, message, { sender: ENTRY, reply: () => {} });
    expect(take).toThrow(MalformedHead);
    expect(calls).toEqual([]);
  });
});

describe("the outbox", () => {
  /** An outbox to a peer that takes what `isOpen` lets through. */
  function outboxTo(peer: { isUp: boolean; isFull: boolean }) {
    const sent: PeerMessage[] = [];
    const send = (message: PeerMessage) => {
      if (!peer.isFull) sent.push(message);
      return !peer.isFull;
    };
    const runtime = new VirtualRuntime();
    const outbox = new PeerOutbox(runtime, () => (peer.isUp ? ({ send } as unknown as Peer) : undefined));
    return { outbox, sent, runtime };
  }

  test("keeps what must arrive in order, and lets nothing overtake it", () => {
    const peer = { isUp: false, isFull: false };
    const { outbox, sent, runtime } = outboxTo(peer);
    const message = (n: number) => ({ head: { t: "x", n } });
    for (const n of [1, 2]) outbox.send("e2", message(n));
    peer.isUp = true;
    peer.isFull = true;
    outbox.flush("e2");
    peer.isFull = false;
    expect([outbox.trySend("e2", message(3)), sent]).toEqual([false, []]);
    runtime.advance(20);
    expect(outbox.trySend("e2", message(4))).toBe(true);
    expect(sent.map(({ head }) => head["n"])).toEqual([1, 2, 4]);
  });

  test("keeps 8 MiB of payload for a process, and forgets them with it", () => {
    const peer = { isUp: false, isFull: false };
    const { outbox, sent } = outboxTo(peer);
    const payload = new Uint8Array(1024 * 1024);
    for (let n = 0; n < 10; n += 1) outbox.send("e2", { head: { t: "x", n }, payload });
    outbox.send("e2", { head: { t: "x", n: "small" } });
    outbox.send("e3", { head: { t: "x", n: "other" } });
    outbox.forget("e3");
    peer.isUp = true;
    outbox.flush("e3");
    outbox.flush("e2");
    expect(sent.map(({ head }) => head["n"])).toEqual([0, 1, 2, 3, 4, 5, 6, 7, "small"]);
    for (let n = 0; n < 8; n += 1) outbox.send("e2", { head: { t: "x", n }, payload });
    expect(sent).toHaveLength(17);
  });
});
