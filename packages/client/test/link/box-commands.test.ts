// A box acts on each command at most once, and answers every one (L20, L31), on a log in memory and virtual time.

import type { BoxCommand, CommandHandler } from "@moor/client";
import { parseLinkFrame, type BoxCommandFrame, type OutcomeFrame, type ResultFrame } from "@moor/protocol";
import { createMemoryCommandLog, settle, verifies, VirtualRuntime } from "@moor/testkit";
import { expect, test } from "vitest";
import { BOX_COMMANDS_MAX, BoxCommands } from "../../src/link/box-commands.ts";

type Answer = ResultFrame | OutcomeFrame;

function setUp(onCommand: CommandHandler = ({ data }) => data) {
  const runtime = new VirtualRuntime();
  const log = createMemoryCommandLog();
  const commands = new BoxCommands({ runtime, log, onCommand });
  const answers: Answer[] = [];
  const take = (id: string, data = "1", ttlMs = 1_000) =>
    commands.take(frameOf(id, data, ttlMs), (answer) => answers.push(answer));
  return { runtime, log, commands, answers, take };
}

function frameOf(id: string, data: string, ttlMs: number): BoxCommandFrame {
  const parsed = parseLinkFrame(
    `{"t":"cmd","id":"${id}","ttl_ms":${ttlMs},"data":${data},"app":"phone-1"}`,
    "service",
  );
  if (parsed.kind !== "frame" || parsed.frame.t !== "cmd") throw new Error("no command");
  return parsed.frame;
}

/** A handler whose results the test gives. */
function heldHandler() {
  const begun: BoxCommand[] = [];
  const results: PromiseWithResolvers<unknown>[] = [];
  const onCommand: CommandHandler = (command) => {
    begun.push(command);
    const result = Promise.withResolvers<unknown>();
    results.push(result);
    return result.promise;
  };
  return { begun, results, onCommand };
}

verifies(
  "L31",
  "a handler gets id, app, time and data as they came, and its result goes back as it is",
  async () => {
    const seen: unknown[] = [];
    const { take, answers } = setUp(({ id, app, ttlMs, data }) => {
      seen.push(id, app, ttlMs, data.text);
      return { heat: 21 };
    });
    take("c1", '{"a" : 1.0}');
    await settle();
    expect(seen).toEqual(["c1", "phone-1", 1_000, '{"a" : 1.0}']);
    expect(answers).toEqual([{ t: "result", id: "c1", data: '{"heat":21}' }]);
  },
);

verifies("L20", "the id is durable before the handler runs, the result before it is told", async () => {
  const { begun, results, onCommand } = heldHandler();
  const { take, log, answers } = setUp(onCommand);
  take("c1");
  expect(begun).toEqual([]);
  await settle();
  expect([log.written, begun.length]).toEqual([["c1"], 1]);
  results[0]?.resolve("done");
  await settle();
  expect(log.written).toEqual(["c1", "c1="]);
  expect(answers).toEqual([{ t: "result", id: "c1", data: '"done"' }]);
});

verifies(
  "L20",
  "a repeat joins a run under way, repeats a result, and is unknown where only the id is known",
  async () => {
    const { begun, results, onCommand } = heldHandler();
    const { take, answers, log } = setUp(onCommand);
    take("c1");
    take("c1");
    await settle();
    take("c1");
    results[0]?.resolve(7);
    await settle();
    take("c1");
    await settle();
    const result = { t: "result", id: "c1", data: "7" };
    expect([begun.length, answers]).toEqual([1, [result, result, result, result]]);
    await log.begin("c2");
    take("c2");
    await settle();
    expect(answers.at(-1)).toEqual({ t: "outcome", id: "c2", outcome: "unknown" });
    expect(begun).toHaveLength(1);
  },
);

verifies("L20", "what cannot be remembered is not acted on, and was not delivered", async () => {
  const { begun, onCommand } = heldHandler();
  const { take, answers, log } = setUp(onCommand);
  log.isFull = true;
  take("c1");
  await settle();
  log.isFull = false;
  log.isGone = true;
  take("c1");
  await settle();
  const outcome = { t: "outcome", id: "c1", outcome: "not_delivered" };
  expect([begun, answers]).toEqual([[], [outcome, outcome]]);
});

verifies("L20", "a result that cannot be kept is told, and is unknown afterwards", async () => {
  const { begun, results, onCommand } = heldHandler();
  const { take, answers, log } = setUp(onCommand);
  take("c1");
  await settle();
  log.isFull = true;
  results[0]?.resolve(7);
  await settle();
  take("c1");
  await settle();
  expect(answers).toEqual([
    { t: "result", id: "c1", data: "7" },
    { t: "outcome", id: "c1", outcome: "unknown" },
  ]);
  expect(begun).toHaveLength(1);
});

test.each([
  ["throws", () => Promise.reject(new Error("planted-marker")), '{"error":"command_failed"}'],
  [
    "throws at once",
    () => {
      throw new Error("planted-marker");
    },
    '{"error":"command_failed"}',
  ],
  ["gives nothing", () => undefined, '{"error":"command_failed"}'],
  ["gives what JSON cannot say", () => 1n, '{"error":"command_failed"}'],
  ["gives too much", () => "x".repeat(65_535), '{"error":"result_too_large"}'],
])("a handler that %s gives a result that says so", async (_what, handler, data) => {
  const { take, answers } = setUp(handler);
  take("c1");
  await settle();
  expect(answers).toEqual([{ t: "result", id: "c1", data }]);
});

verifies("L31", "a command whose time is over is not begun; one under way is told when it is", async () => {
  const { begun, onCommand } = heldHandler();
  const { take, answers, runtime } = setUp(onCommand);
  take("c1", "1", 0);
  await settle();
  expect([begun, answers]).toEqual([[], [{ t: "outcome", id: "c1", outcome: "expired" }]]);
  take("c2", "1", 500);
  await settle();
  expect(begun[0]?.signal.aborted).toBe(false);
  runtime.advance(500);
  expect(begun[0]?.signal.aborted).toBe(true);
});

test("more commands than can be under way are not delivered, and the next is once there is room", async () => {
  const { begun, results, onCommand } = heldHandler();
  const { take, answers, commands } = setUp(onCommand);
  for (let index = 0; index <= BOX_COMMANDS_MAX; index += 1) take(`c${index}`);
  await settle();
  expect(answers).toEqual([{ t: "outcome", id: `c${BOX_COMMANDS_MAX}`, outcome: "not_delivered" }]);
  expect([begun.length, commands.inProgress]).toEqual([BOX_COMMANDS_MAX, BOX_COMMANDS_MAX]);
  results[0]?.resolve(1);
  await settle();
  take("next");
  await settle();
  expect(begun.at(-1)?.id).toBe("next");
});

test("once refusing, nothing is begun, and idle is told when the last run has ended", async () => {
  const { results, onCommand } = heldHandler();
  const { take, answers, commands } = setUp(onCommand);
  await commands.untilIdle();
  take("c1");
  await settle();
  commands.refuse();
  take("c2");
  let isIdle = false;
  void commands.untilIdle().then(() => (isIdle = true));
  await settle();
  expect([isIdle, answers]).toEqual([false, [{ t: "outcome", id: "c2", outcome: "not_delivered" }]]);
  results[0]?.resolve(1);
  await settle();
  expect([isIdle, commands.inProgress]).toEqual([true, 0]);
});

test("a handler that does not listen when all are told to end leaves no timer behind", async () => {
  const { begun, onCommand } = heldHandler();
  const { take, commands, runtime } = setUp(onCommand);
  take("c1");
  await settle();
  expect([begun.length, runtime.pendingCount]).toEqual([1, 1]);
  commands.abortAll();
  expect([begun[0]?.signal.aborted, runtime.pendingCount]).toEqual([true, 0]);
});
