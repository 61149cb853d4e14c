// What a poll's ending means, beyond what the vectors list.

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  classifyPollAnswer,
  CORRECTION_BODY_BYTES_MAX,
  encodeCorrectionBody,
  JSON_DEPTH_MAX,
  retryAfterMsOf,
  type BodyEnding,
  type PollEnding,
  type PollFault,
} from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";

const utf8 = new TextEncoder();
const FAULTS: readonly PollFault[] = ["connect", "tls", "dns", "reset", "bad-head", "deadline", "body-cut"];

function answer(status: number, body: string | Uint8Array, bodyEnding: BodyEnding = "complete"): PollEnding {
  const headerLines = [["X-Tunnel-Shard-Token", "tok-a"]] as const;
  return {
    kind: "answer",
    head: { status, headerLines },
    body: typeof body === "string" ? utf8.encode(body) : body,
    bodyEnding,
  };
}

const anyEnding: fc.Arbitrary<PollEnding> = fc.oneof(
  fc.constantFrom(...FAULTS).map((fault): PollEnding => ({ kind: "fault", fault })),
  fc
    .tuple(
      fc.integer({ min: 200, max: 599 }),
      fc.constantFrom(encodeCorrectionBody(7), '{"commands":[]}', "{}", ""),
      fc.constantFrom<BodyEnding>("complete", "cut", "stopped"),
    )
    .map(([status, body, ending]) => answer(status, body, ending)),
);

describe("classifyPollAnswer", () => {
  verifies(["R6", "R7"], "only a complete 409 is ever a correction, only 200 and 204 ever a success", () => {
    checkProperty(
      fc.property(anyEnding, (ending) => {
        const { kind } = classifyPollAnswer(ending, false);
        const status =
          ending.kind === "answer" && ending.bodyEnding === "complete" ? ending.head.status : undefined;
        if (kind === "correction") expect(status).toBe(409);
        if (kind === "success")
          expect(ending.kind === "answer" && [200, 204].includes(ending.head.status)).toBe(true);
      }),
      3000,
    );
  });

  verifies("R14", "cancellation wins over every ending", () => {
    checkProperty(fc.property(anyEnding, (ending) => classifyPollAnswer(ending, true).kind === "cancelled"));
  });

  verifies("R14", "every fault is a destination failure", () => {
    const kinds = FAULTS.map((fault) => classifyPollAnswer({ kind: "fault", fault }, false).kind);
    expect(new Set(kinds)).toEqual(new Set(["destination-failure"]));
  });

  verifies("R14", "a body whose reading was stopped at its bound is not a body cut short", () => {
    const oversize = new Uint8Array(CORRECTION_BODY_BYTES_MAX + 1).fill(0x20);
    expect(classifyPollAnswer(answer(409, oversize, "stopped"), false)).toEqual({
      kind: "malformed-correction",
      reason: "body-too-large",
    });
    expect(classifyPollAnswer(answer(200, oversize, "stopped"), false).kind).toBe("ordinary-error");
    expect(classifyPollAnswer(answer(401, oversize, "stopped"), false).kind).toBe("ordinary-error");
    expect(classifyPollAnswer(answer(503, oversize, "stopped"), false).kind).toBe("destination-failure");
  });

  verifies("R8", "a refused correction is named by its clause and holds nothing of the answer", () => {
    const marker = "marker-8c1f";
    const ending: PollEnding = {
      kind: "answer",
      head: { status: 409, headerLines: [["X-Tunnel-Shard-Token", `${marker},`]] },
      body: utf8.encode(`{"error":{"code":"wrong_cluster","policy_revision":1,"message":"${marker}"}}`),
      bodyEnding: "complete",
    };
    const outcome = classifyPollAnswer(ending, false);
    expect(outcome).toEqual({ kind: "malformed-correction", reason: "token-value" });
    expect(JSON.stringify(outcome)).not.toContain(marker);
  });

  test("the commands of a success are slices of its body, byte for byte", () => {
    const body = utf8.encode('{"commands":[ {"n":1.0} , {"n":12345678901234567890} ]}');
    const outcome = classifyPollAnswer(answer(200, body), false);
    const texts = outcome.kind === "success" ? outcome.commands : [];
    expect(texts.map(({ start, end }) => new TextDecoder().decode(body.subarray(start, end)))).toEqual([
      '{"n":1.0}',
      '{"n":12345678901234567890}',
    ]);
  });

  test("a command may hold a message of the deepest nesting a service accepts", () => {
    const message = "[".repeat(JSON_DEPTH_MAX) + "]".repeat(JSON_DEPTH_MAX);
    const body = `{"commands":[{"jsonrpc":${message}}]}`;
    expect(classifyPollAnswer(answer(200, body), false).kind).toBe("success");
    expect(classifyPollAnswer(answer(200, body.replace(message, `[${message}]`)), false).kind).toBe(
      "ordinary-error",
    );
  });
});

describe("retryAfterMsOf", () => {
  const wait = (status: number, ...lines: readonly (readonly [string, string])[]) =>
    retryAfterMsOf({ status, headerLines: lines }, 0);

  verifies("R17", "is read on every status but 200 and 204, whatever the case of its name", () => {
    for (const status of [401, 404, 408, 409, 429, 500, 503])
      expect(wait(status, ["retry-after", "3"])).toBe(3000);
    expect(wait(200, ["Retry-After", "3"])).toBeUndefined();
    expect(wait(204, ["Retry-After", "3"])).toBeUndefined();
  });

  test("is as absent when there are two", () => {
    expect(wait(503, ["Retry-After", "3"], ["Retry-After", "4"])).toBeUndefined();
  });
});
