import { classifyPollAnswer, type Slice } from "@moor/protocol";
import { createLogger } from "@moor/runtime";
import { VirtualRuntime, verifies } from "@moor/testkit";
import { expect } from "vitest";
import { Dispatcher } from "../src/dispatcher.ts";
import { answer, FakeControlPlane } from "./fake-control-plane.ts";
import { FakeTarget, result } from "./fake-target.ts";

interface Fields {
  readonly id: string;
  readonly token?: string;
  readonly timeout?: string;
  readonly channel?: string;
  readonly type?: string;
  readonly jsonrpc?: unknown;
}

function setUp(concurrency = 10) {
  const runtime = new VirtualRuntime();
  const controlPlane = new FakeControlPlane();
  const target = new FakeTarget();
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger({
    level: "debug",
    destination: { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  });
  const targets = new Map([["main", target]]);
  const dispatcher = new Dispatcher({ runtime, logger, controlPlane, targets, concurrency });
  /** Hands out commands in one poll answer whose head arrived at `headAtMs`. */
  const handOut = async (commands: readonly (Fields | string)[], headAtMs = runtime.monotonicMs()) => {
    const texts = commands.map((fields) => (typeof fields === "string" ? fields : write(fields)));
    const body = Buffer.from(`{"commands":[${texts.join(",")}]}`);
    const head = { status: 200, headerLines: [] };
    const outcome = classifyPollAnswer({ kind: "answer", head, body, bodyEnding: "complete" }, false);
    const slices: readonly Slice[] = outcome.kind === "success" ? outcome.commands : [];
    dispatcher.accept({ kind: "success", body, commands: slices, headAtMs });
    await runtime.advanceAsync(0);
  };
  const acceptAll = async () => {
    for (const { answer: settle } of controlPlane.responses) settle(answer(200, '{"status":"ok"}'));
    await runtime.advanceAsync(0);
  };
  const posted = () => controlPlane.bodies.map((body) => JSON.parse(body) as Record<string, unknown>);
  return { runtime, controlPlane, target, dispatcher, lines, handOut, acceptAll, posted };
}

function write({
  id,
  token = `t-${id}`,
  timeout = "30s",
  channel,
  type = "jsonrpc",
  jsonrpc,
}: Fields): string {
  return JSON.stringify({
    command_type: type,
    request_id: id,
    shard_token: token,
    channel,
    response_timeout: timeout,
    jsonrpc: jsonrpc ?? { jsonrpc: "2.0", id, method: "tools/call" },
  });
}

verifies(
  "T18",
  "a command's time runs from the poll's head, and nothing is posted when it is over",
  async () => {
    const { runtime, target, dispatcher, controlPlane, handOut } = setUp();
    await runtime.advanceAsync(4_000);
    await handOut([{ id: "a", timeout: "5s" }], 1_000);
    expect(target.calls).toHaveLength(1);
    await runtime.advanceAsync(1_999);
    expect(target.calls[0]?.signal.aborted).toBe(false);
    await runtime.advanceAsync(1);
    expect(target.calls[0]?.signal.aborted).toBe(true);
    expect(dispatcher.inProgress).toBe(0);
    expect(controlPlane.responses).toHaveLength(0);
  },
);

verifies("T18", "0s and a time already over are expired: the target is not contacted", async () => {
  const { runtime, target, dispatcher, handOut } = setUp();
  await runtime.advanceAsync(10_000);
  await handOut([{ id: "a", timeout: "0s" }]);
  await handOut([{ id: "b", timeout: "5s" }], 5_000);
  expect(target.calls).toHaveLength(0);
  expect(dispatcher.inProgress).toBe(0);
});

verifies(
  "T18",
  "a malformed response_timeout is as absent: the command is served without a short deadline",
  async () => {
    const { runtime, target, handOut } = setUp();
    await handOut([{ id: "a", timeout: "1m30s" }]);
    await runtime.advanceAsync(600_000);
    expect(target.calls[0]?.signal.aborted).toBe(false);
  },
);

verifies(["T17", "T18"], "commands beyond the slots wait in order, their time running", async () => {
  const { runtime, target, dispatcher, handOut, acceptAll } = setUp(2);
  await handOut([{ id: "a" }, { id: "b" }, { id: "c", timeout: "10s" }, { id: "d" }]);
  expect(target.calls.map(({ request }) => request.rawId)).toEqual(['"a"', '"b"']);
  expect(dispatcher.freeSlots).toBe(0);
  await runtime.advanceAsync(11_000);
  target.calls[0]?.answer(result());
  await runtime.advanceAsync(0);
  await acceptAll();
  expect(target.calls.map(({ request }) => request.rawId)).toEqual(['"a"', '"b"', '"d"']);
  target.calls[1]?.answer(result());
  target.calls[2]?.answer(result());
  await runtime.advanceAsync(0);
  await acceptAll();
  expect(dispatcher.freeSlots).toBe(2);
  expect(runtime.pendingCount).toBe(0);
});

verifies(
  ["R20", "T23"],
  "bad, unknown and unechoable commands are dropped before any tool runs, the others served",
  async () => {
    const { target, controlPlane, lines, handOut } = setUp();
    await handOut([
      "null",
      { id: "bad-token", token: "a\nb" },
      { id: "strange", type: "levitate" },
      { id: "good" },
      { id: "no-message", jsonrpc: [] },
    ]);
    expect(target.calls.map(({ request }) => request.rawId)).toEqual(['"good"']);
    expect(controlPlane.responses).toHaveLength(0);
    const dropped = lines.filter(({ event }) => event === "command-dropped");
    expect(dropped.map(({ requestId, reason }) => [requestId, reason])).toEqual([
      [undefined, "not-an-object"],
      ["bad-token", "bad-token"],
      ["strange", "unknown-type"],
      ["no-message", "bad-message"],
    ]);
  },
);

verifies(
  "T23",
  "an unknown channel is answered with -32603 and code 400, its target not contacted",
  async () => {
    const { target, posted, handOut } = setUp();
    await handOut([
      { id: "a", channel: "elsewhere" },
      { id: "b", channel: "e", jsonrpc: { method: "m" } },
    ]);
    expect(target.calls).toHaveLength(0);
    expect(posted()).toMatchObject([
      {
        request_id: "a",
        channel: "elsewhere",
        resp_code: 400,
        resp_type: "jsonrpc_response",
        resp_json: { id: "a", error: { code: -32_603 } },
      },
      { request_id: "b", resp_code: 400, resp_type: "notify_ack" },
    ]);
  },
);

verifies("R21", "a command handed out twice while it runs is begun once", async () => {
  const { target, lines, handOut } = setUp();
  await handOut([{ id: "a" }]);
  await handOut([{ id: "a" }]);
  expect(target.calls).toHaveLength(1);
  expect(lines.at(-1)).toMatchObject({ event: "command-dropped", reason: "already-in-progress" });
});

verifies("R20", "every response carries its own command's token", async () => {
  const { target, controlPlane, runtime, handOut } = setUp();
  await handOut([
    { id: "a", token: "first, token" },
    { id: "b", token: "zweites é" },
  ]);
  target.calls[1]?.answer(result());
  await runtime.advanceAsync(0);
  target.calls[0]?.answer(result());
  await runtime.advanceAsync(0);
  expect(controlPlane.responses.map(({ request }) => request.token)).toEqual(["zweites é", "first, token"]);
});

verifies(
  "T25",
  "stopping waits for running commands, then ends what is left and posts nothing for it",
  async () => {
    const { target, dispatcher, controlPlane, runtime, handOut, acceptAll } = setUp();
    await handOut([{ id: "a" }, { id: "b" }]);
    let isIdle = false;
    void dispatcher.untilIdle(new AbortController().signal).then(() => (isIdle = true));
    target.calls[0]?.answer(result());
    await runtime.advanceAsync(0);
    await acceptAll();
    expect(isIdle).toBe(false);
    dispatcher.abortAll();
    await runtime.advanceAsync(0);
    expect(target.calls[1]?.signal.aborted).toBe(true);
    expect(isIdle).toBe(true);
    expect(controlPlane.responses).toHaveLength(1);
  },
);

verifies(
  "T23",
  "a command that meets a fault of the agent's own is answered, logged, and costs no slot",
  async () => {
    const { target, dispatcher, posted, lines, handOut, acceptAll } = setUp();
    target.call = () => Promise.reject(new TypeError("text-marker"));
    await handOut([{ id: "a" }]);
    await acceptAll();
    expect(posted()).toMatchObject([
      { request_id: "a", resp_code: 502, resp_json: { error: { code: -32_603 } } },
    ]);
    expect(lines.filter(({ level }) => level === "error")).toMatchObject([
      { event: "command-broken", name: "TypeError" },
    ]);
    expect(JSON.stringify(lines)).not.toContain("text-marker");
    expect(dispatcher.freeSlots).toBe(10);
  },
);
