import { PollClient, type PollResult } from "@moor/client";
import { VirtualRuntime, verifies } from "@moor/testkit";
import { expect } from "vitest";
import { answer, correction, FakeControlPlane, reset } from "./fake-control-plane.ts";

const WISH = { limit: 10, waitMs: 25_000, deadlineMs: 30_000 };

function client() {
  const controlPlane = new FakeControlPlane();
  const polling = new PollClient(controlPlane, new VirtualRuntime());
  const tokens = () => controlPlane.polls.map(({ request }) => request.token);
  const start = (signal = new AbortController().signal) => {
    const result = polling.poll(WISH, signal);
    const poll = controlPlane.polls.at(-1);
    if (poll === undefined) throw new Error("no poll was made");
    return { result, answer: poll.answer };
  };
  const poll = (with_: Parameters<ReturnType<typeof start>["answer"]>[0]): Promise<PollResult> => {
    const started = start();
    started.answer(with_);
    return started.result;
  };
  return { start, poll, tokens };
}

verifies(
  ["R9", "R10", "R11", "R12"],
  "a new client is tokenless, carries a correction's token, and keeps it over successes",
  async () => {
    const { poll, tokens } = client();
    await poll(correction("tok-1", 5));
    await poll(answer(200, '{"commands":[]}', [["X-Tunnel-Shard-Token", "taught"]]));
    await poll(answer(204));
    await poll(correction("tok-0", 4));
    await poll(correction("tok-2", 6));
    await poll(answer(204));
    expect(tokens()).toEqual([undefined, "tok-1", "tok-1", "tok-1", "tok-1", "tok-2"]);
    const other = client();
    await other.poll(answer(204));
    expect(other.tokens()).toEqual([undefined]);
  },
);

verifies("R13", "the third correction without a success clears the token, whatever it said", async () => {
  const { poll, tokens } = client();
  for (const revision of [1, 2, 3, 4]) await poll(correction(`tok-${revision}`, revision));
  await poll(answer(204));
  expect(tokens()).toEqual([undefined, "tok-1", "tok-2", undefined, "tok-4"]);
});

verifies(
  ["R14", "R15"],
  "three destination failures clear the token; a success between starts the count again",
  async () => {
    const { poll, tokens } = client();
    await poll(correction("tok", 1));
    await poll(reset());
    await poll({ kind: "cut", status: 200, headerLines: [], category: "timeout" });
    await poll(answer(204));
    await poll(answer(500));
    await poll(answer(408));
    expect(tokens().at(-1)).toBe("tok");
    await poll(answer(503));
    await poll(answer(204));
    expect(tokens().at(-1)).toBeUndefined();
  },
);

verifies(
  "R16",
  "a late answer of an older generation changes nothing, yet its commands are served",
  async () => {
    const { start, poll, tokens } = client();
    const late = start();
    const lateCorrection = start();
    await poll(correction("new", 9));
    late.answer(answer(200, '{"commands":[{}]}'));
    lateCorrection.answer(correction("later", 10));
    const result = await late.result;
    expect(result.kind === "success" && result.commands.length).toBe(1);
    expect((await lateCorrection.result).kind).toBe("failed");
    await poll(answer(204));
    expect(tokens().at(-1)).toBe("new");
  },
);

verifies(["R6", "R7"], "a malformed correction and one on another status teach nothing", async () => {
  const { poll, tokens } = client();
  await poll(correction("tok", 1));
  await poll(correction("bad,token", 2));
  await poll({ ...(correction("tok-3", 3) as object), status: 410 } as never);
  await poll({ ...(correction("tok-4", 4) as object), isComplete: false } as never);
  await poll(answer(204));
  expect(new Set(tokens().slice(1))).toEqual(new Set(["tok"]));
});

verifies(["R14", "R16"], "a cancelled poll is cancelled, whatever else happened to it", async () => {
  const { start, poll, tokens } = client();
  await poll(correction("tok", 1));
  for (let round = 0; round < 3; round += 1) {
    const cancelling = new AbortController();
    const cancelled = start(cancelling.signal);
    cancelling.abort();
    expect(await cancelled.result).toEqual({ kind: "cancelled" });
  }
  const both = new AbortController();
  const raced = start(both.signal);
  raced.answer(correction("raced", 2));
  both.abort();
  expect(await raced.result).toEqual({ kind: "cancelled" });
  await poll(answer(204));
  expect(tokens().at(-1)).toBe("tok");
});

verifies(
  "R8",
  "a failed poll's result holds neither token nor body nor any server-supplied text",
  async () => {
    const { poll } = client();
    const results = [
      await poll(correction("token-marker", 1, [["X-Reason", "text-marker"]])),
      await poll(answer(409, '{"error":{"code":"wrong_cluster","message":"text-marker"}}')),
      await poll(answer(401, '{"error":{"message":"text-marker"}}')),
      await poll(answer(200, "text-marker")),
    ];
    expect(JSON.stringify(results)).not.toContain("marker");
    expect(results.map((result) => (result.kind === "failed" ? result.failure.kind : result.kind))).toEqual([
      "correction",
      "malformed-correction",
      "ordinary-error",
      "ordinary-error",
    ]);
  },
);

verifies("R17", "Retry-After is read on every error status and on none that is a success", async () => {
  const { poll } = client();
  const retryAfterMs = async (...args: Parameters<typeof answer>) => {
    const result = await poll(answer(...args));
    return result.kind === "failed" ? result.retryAfterMs : undefined;
  };
  expect(await retryAfterMs(503, "", [["Retry-After", "7"]])).toBe(7_000);
  expect(await retryAfterMs(401, "", [["Retry-After", "99999999999999999999"]])).toBe(60_000);
  expect(await retryAfterMs(503, "", [["Retry-After", "-1"]])).toBeUndefined();
  expect(await retryAfterMs(204, "", [["Retry-After", "7"]])).toBeUndefined();
});
