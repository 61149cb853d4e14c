// What an app hears of the commands it sends over a link (L20, L31).

import { parseCommandId, type CommandFrame, type CommandId } from "@moor/protocol";
import { settle, verifies, VirtualRuntime } from "@moor/testkit";
import { expect, test } from "vitest";
import { APP_COMMANDS_MAX, AppCommands, type CommandEnding } from "../../src/link/app-commands.ts";

const ID = parseCommandId("c1") as CommandId;
const FRAME: CommandFrame = { t: "cmd", id: ID, ttl_ms: 1_000, data: "1" };

function setUp(isTaken = true) {
  const runtime = new VirtualRuntime();
  const sent: CommandFrame[] = [];
  const commands = new AppCommands(runtime, (frame) => {
    if (isTaken) sent.push(frame);
    return isTaken;
  });
  const endings: CommandEnding[] = [];
  const send = (onAcked?: () => void) =>
    void commands.send(FRAME, onAcked).then((ending) => endings.push(ending));
  return { runtime, sent, commands, endings, send };
}

verifies("L31", "a result ends a command with the data byte for byte, after it was acked", async () => {
  const { commands, endings, send } = setUp();
  let acks = 0;
  send(() => (acks += 1));
  commands.take({ t: "ack", id: ID });
  expect(acks).toBe(1);
  commands.take({ t: "result", id: ID, data: '{"a" : 1.0}' });
  await settle();
  const [ending] = endings;
  expect(ending?.kind === "result" && ending.data.text).toBe('{"a" : 1.0}');
});

test.each(["not_delivered", "expired", "unknown"] as const)(
  "an outcome %s is told as it is",
  async (outcome) => {
    const { commands, endings, send } = setUp();
    send();
    commands.take({ t: "outcome", id: ID, outcome });
    await settle();
    expect(endings).toEqual([{ kind: outcome }]);
  },
);

verifies(
  "L20",
  "a command in flight when its link ends is unknown, acked or not, and is not sent again",
  async () => {
    const { commands, endings, send, sent, runtime } = setUp();
    send();
    commands.lose();
    await settle();
    expect([endings, sent.length, runtime.pendingCount]).toEqual([[{ kind: "unknown" }], 1, 0]);
  },
);

verifies("L20", "a command that the link did not take was certainly not delivered", async () => {
  const { endings, send, runtime } = setUp(false);
  send();
  await settle();
  expect([endings, runtime.pendingCount]).toEqual([[{ kind: "not_delivered" }], 0]);
});

test("a command that nobody ends is unknown some seconds after its time", async () => {
  const { endings, send, runtime } = setUp();
  send();
  await runtime.advanceAsync(10_999);
  expect(endings).toEqual([]);
  await runtime.advanceAsync(1);
  expect(endings).toEqual([{ kind: "unknown" }]);
});

test("a command whose id is under way is joined, not written a second time", async () => {
  const { commands, endings, send, sent } = setUp();
  let acks = 0;
  send(() => (acks += 1));
  send(() => (acks += 1));
  commands.take({ t: "ack", id: ID });
  commands.take({ t: "result", id: ID, data: "1" });
  await settle();
  expect([sent.length, acks, endings.length]).toEqual([1, 2, 2]);
});

test("what the service says of a command that nobody waits for changes nothing", () => {
  const { commands } = setUp();
  commands.take({ t: "ack", id: ID });
  commands.take({ t: "result", id: ID, data: "1" });
  commands.take({ t: "outcome", id: ID, outcome: "unknown" });
});

test("more commands than can be waited for are not delivered, and not written", async () => {
  const { commands, sent } = setUp();
  const idOf = (index: number) => parseCommandId(`c${index}`) as CommandId;
  for (let index = 0; index < APP_COMMANDS_MAX; index += 1) void commands.send({ ...FRAME, id: idOf(index) });
  expect(await commands.send({ ...FRAME, id: idOf(APP_COMMANDS_MAX) })).toEqual({ kind: "not_delivered" });
  commands.take({ t: "outcome", id: idOf(0), outcome: "unknown" });
  void commands.send({ ...FRAME, id: idOf(APP_COMMANDS_MAX) });
  expect(sent).toHaveLength(APP_COMMANDS_MAX + 1);
});
