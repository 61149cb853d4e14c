import type { CollectedAnswer } from "@moor/client";
import { createSilentLogger } from "@moor/runtime";
import { VirtualRuntime, verifies } from "@moor/testkit";
import { expect } from "vitest";
import { Responder, type FinalOutcome } from "../src/responder.ts";
import { answer, FakeControlPlane, reset } from "./fake-control-plane.ts";

const OK = answer(200, '{"status":"ok"}');
const UNSENT = reset(false);
const FINAL = { type: "jsonrpc_response", code: 200, json: Buffer.from('{"n":1.0}') } as const;
const NOTE = { type: "jsonrpc_notify", code: 200, json: Buffer.from('{"method":"m"}') } as const;

/** A responder whose posts are answered by `answers` in turn, then by silence. */
function responder(...answers: readonly CollectedAnswer[]) {
  const runtime = new VirtualRuntime();
  const controlPlane = new FakeControlPlane();
  const ending = new AbortController();
  const context = { requestId: "r", channel: "main", token: "tok", rawId: "7", signal: ending.signal };
  const subject = new Responder(controlPlane, runtime, createSilentLogger(), context);
  let answered = 0;
  /** Answers what is posted while `afterMs` milliseconds pass. */
  const run = async (afterMs: number) => {
    for (let step = 0; step < 40; step += 1) {
      await runtime.advanceAsync(afterMs / 40);
      for (; answered < Math.min(controlPlane.responses.length, answers.length); answered += 1) {
        controlPlane.responses[answered]?.answer(answers[answered] as CollectedAnswer);
      }
    }
    await runtime.advanceAsync(0);
  };
  const finish = () => {
    const seen: { outcome: FinalOutcome | undefined } = { outcome: undefined };
    void subject.finish(FINAL).then((outcome) => (seen.outcome = outcome));
    return seen;
  };
  return { subject, controlPlane, runtime, ending, run, finish };
}

verifies(
  ["T19", "R20"],
  "a final is posted up to three times on passing trouble, the same bytes and token each time",
  async () => {
    for (const trouble of [
      reset(),
      UNSENT,
      answer(408),
      answer(429),
      answer(502),
      answer(503),
      answer(504),
    ]) {
      const { controlPlane, run, finish } = responder(trouble, trouble, trouble);
      const seen = finish();
      await run(10_000);
      expect(seen.outcome).toBe("given-up");
      expect(controlPlane.responses).toHaveLength(3);
      expect(new Set(controlPlane.bodies).size).toBe(1);
      expect(controlPlane.responses.map(({ request }) => request.token)).toEqual(["tok", "tok", "tok"]);
    }
  },
);

verifies(["T19", "R21"], "other statuses are final, wrong_cluster among them: no retry", async () => {
  const wrongCluster = answer(409, '{"error":{"code":"wrong_cluster","policy_revision":3}}', [
    ["X-Tunnel-Shard-Token", "x"],
  ]);
  for (const refusal of [answer(400), answer(401), wrongCluster, answer(500), answer(302)]) {
    const { controlPlane, run, finish } = responder(refusal);
    const seen = finish();
    await run(10_000);
    expect(seen.outcome).toBe("refused");
    expect(controlPlane.responses).toHaveLength(1);
  }
});

verifies("T19", "a Retry-After is waited for, 60 s at most", async () => {
  const { controlPlane, run, finish } = responder(answer(503, "", [["Retry-After", "600"]]), OK);
  const seen = finish();
  await run(59_000);
  expect(controlPlane.responses).toHaveLength(1);
  await run(3_000);
  expect(seen.outcome).toBe("accepted");
});

verifies("T19", "404 ends the command quietly, as does a 404 to a notification", async () => {
  const first = responder(answer(404));
  const seen = first.finish();
  await first.run(1_000);
  expect(seen.outcome).toBe("gone");
  const second = responder(answer(404));
  void second.subject.notify(NOTE);
  await second.run(1_000);
  const late = second.finish();
  await second.run(1_000);
  expect(late.outcome).toBe("gone");
  expect(second.controlPlane.responses).toHaveLength(1);
});

verifies("T19", "a notification is repeated only on 429 or when nothing of it was written", async () => {
  for (const trouble of [answer(429), UNSENT]) {
    const { subject, controlPlane, run } = responder(trouble, OK);
    void subject.notify(NOTE);
    await run(5_000);
    expect(controlPlane.responses).toHaveLength(2);
  }
  for (const trouble of [reset(true), answer(500), answer(503), answer(502)]) {
    const { subject, controlPlane, run } = responder(trouble, OK);
    void subject.notify(NOTE);
    await run(5_000);
    expect(controlPlane.responses).toHaveLength(1);
  }
});

verifies("T19", "after a failed notification the rest are skipped and the final is still sent", async () => {
  const { subject, controlPlane, run, finish } = responder(answer(500), OK);
  void subject.notify(NOTE);
  await run(1_000);
  await subject.notify(NOTE);
  const seen = finish();
  await run(1_000);
  expect(seen.outcome).toBe("accepted");
  expect(controlPlane.bodies.map((body) => (JSON.parse(body) as { resp_type: string }).resp_type)).toEqual([
    "jsonrpc_notify",
    "jsonrpc_response",
  ]);
});

verifies(
  "T20",
  "a final the service finds too large is replaced once by a small error of the same id",
  async () => {
    const { controlPlane, run, finish } = responder(answer(413), OK);
    const seen = finish();
    await run(1_000);
    expect(seen.outcome).toBe("accepted");
    expect(JSON.parse(controlPlane.bodies[1] ?? "")).toMatchObject({
      resp_code: 502,
      resp_json: { id: 7, error: { code: -32_603, data: { tunnel_failure: { source: "protocol" } } } },
    });
    const again = responder(answer(413), answer(413));
    const refused = again.finish();
    await again.run(5_000);
    expect(refused.outcome).toBe("refused");
    expect(again.controlPlane.responses).toHaveLength(2);
  },
);

verifies("T18", "nothing is posted after the command's time is over, also between attempts", async () => {
  const { controlPlane, ending, run, finish, runtime } = responder(answer(503, "", [["Retry-After", "30"]]));
  const seen = finish();
  await run(1_000);
  ending.abort();
  await run(60_000);
  expect(seen.outcome).toBe("expired");
  expect(controlPlane.responses).toHaveLength(1);
  expect(runtime.pendingCount).toBe(0);
  const late = finish();
  await run(1_000);
  expect(late.outcome).toBe("expired");
  expect(controlPlane.responses).toHaveLength(1);
});
