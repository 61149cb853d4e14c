import { settle, VirtualRuntime, verifies } from "@moor/testkit";
import { Dispatcher } from "undici";
import { expect } from "vitest";
import { callOverHttp } from "../src/targets/http-call.ts";
import type { TargetAnswer } from "../src/targets/mcp-target.ts";

const NOTE = '{"jsonrpc":"2.0","method":"notifications/progress"}';
const RESULT = '{"jsonrpc":"2.0","id":1,"result":{}}';

/** A dispatcher whose one exchange a test plays by hand. */
class HandPlayedDispatcher extends Dispatcher {
  isPaused = false;
  isAborted = false;
  #handler: Dispatcher.DispatchHandler | undefined;
  readonly #controller = {
    aborted: false,
    paused: false,
    reason: null,
    rawHeaders: ["Content-Type", "text/event-stream"],
    abort: () => void (this.isAborted = true),
    pause: () => void (this.isPaused = true),
    resume: () => void (this.isPaused = false),
  };

  override dispatch(_options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    this.#handler = handler;
    handler.onRequestStart?.(this.#controller, null);
    handler.onResponseStart?.(this.#controller, 200, {});
    return true;
  }

  send(...messages: readonly string[]): void {
    const text = messages.map((message) => `data: ${message}\n\n`).join("");
    this.#handler?.onResponseData?.(this.#controller, Buffer.from(text));
  }

  end(): void {
    this.#handler?.onResponseEnd?.(this.#controller, {});
  }
}

function startCall() {
  const runtime = new VirtualRuntime();
  const dispatcher = new HandPlayedDispatcher();
  const cancel = new AbortController();
  const taking: (() => void)[] = [];
  const seen: { answer: TargetAnswer | undefined } = { answer: undefined };
  const ports = { runtime, dispatcher, dump: undefined, onAnswered: () => {}, refuseServerRequest: () => {} };
  void callOverHttp(
    ports,
    { method: "POST", path: "/", headers: [] },
    "1",
    () => new Promise<void>((resolve) => taking.push(resolve)),
    cancel.signal,
  ).then((answer) => (seen.answer = answer));
  /** Takes notifications until none is waiting. */
  const takeAll = async () => {
    await settle();
    for (let take = taking.shift(); take !== undefined; take = taking.shift()) {
      take();
      await settle();
    }
  };
  return { runtime, dispatcher, cancel, seen, taking, takeAll };
}

verifies(
  "T19",
  "a stream is paused while too many of its notifications are untaken, and goes on after",
  async () => {
    const { dispatcher, seen, takeAll } = startCall();
    dispatcher.send(...Array.from({ length: 64 }, () => NOTE));
    expect(dispatcher.isPaused).toBe(false);
    dispatcher.send(NOTE);
    expect(dispatcher.isPaused).toBe(true);
    await takeAll();
    expect(dispatcher.isPaused).toBe(false);
    dispatcher.send(NOTE.replace("}", `,"params":"${"x".repeat(1_100_000)}"}`));
    expect(dispatcher.isPaused).toBe(true);
    await takeAll();
    expect(dispatcher.isPaused).toBe(false);
    dispatcher.send(RESULT);
    await settle();
    expect(seen.answer?.kind).toBe("response");
  },
);

verifies(
  ["T19", "T20"],
  "the response waits for the notifications before it, also when the stream has ended",
  async () => {
    const { dispatcher, seen, takeAll } = startCall();
    dispatcher.send(NOTE, NOTE, RESULT);
    dispatcher.end();
    await settle();
    expect(seen.answer).toBeUndefined();
    await takeAll();
    expect(seen.answer?.kind).toBe("response");
  },
);

verifies("T20", "a stream left open after its response is closed a second later, not before", async () => {
  const { runtime, dispatcher, seen } = startCall();
  dispatcher.send(RESULT);
  await runtime.advanceAsync(999);
  expect([seen.answer?.kind, dispatcher.isAborted]).toEqual(["response", false]);
  await runtime.advanceAsync(1);
  expect(dispatcher.isAborted).toBe(true);
});

verifies(
  "T18",
  "aborting a call closes its exchange and gives no answer, whatever is still waiting",
  async () => {
    const { dispatcher, cancel, seen, taking } = startCall();
    dispatcher.send(NOTE);
    await settle();
    expect(taking).toHaveLength(1);
    cancel.abort();
    await settle();
    expect([seen.answer?.kind, dispatcher.isAborted]).toEqual(["aborted", true]);
  },
);
