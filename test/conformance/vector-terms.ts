// Between the terms of the vectors and those of @moor/protocol.

import assert from "node:assert/strict";
import type * as Protocol from "@moor/protocol";
import type { PollEnding, PollOutcome } from "@moor/protocol";
import { bytesOf, headerValueOf, type AnswerRecipe } from "./vector-files.ts";

/** The exports of a copy of @moor/protocol. */
export type ProtocolModule = typeof Protocol;

/** A poll ending that is an answer. */
export type PollAnswer = Extract<PollEnding, { readonly kind: "answer" }>;

/** A vector's poll answer as classifyPollAnswer takes it. */
export function endingOf(answer: AnswerRecipe): PollAnswer {
  return {
    kind: "answer",
    head: {
      status: answer.status,
      headerLines: answer.headers.map(([name, value]) => [name, headerValueOf(value)] as const),
    },
    body: bytesOf(answer.body),
    bodyEnding: answer.bodyIsCut === true ? "cut" : "complete",
  };
}

/** An outcome as vectors name it: malformed corrections are ordinary errors to them. */
export function neutral(outcome: PollOutcome): Readonly<Record<string, unknown>> {
  if (outcome.kind === "correction")
    return { outcome: outcome.kind, token: outcome.token, revision: outcome.revision };
  return { outcome: outcome.kind === "malformed-correction" ? "ordinary-error" : outcome.kind };
}

/** Compares milliseconds; null stands for undefined. */
export function assertMs(actual: number | undefined, expected: number | null, place = ""): void {
  const difference = `${place} ${actual} ms instead of ${expected} ms`.trimStart();
  if (actual === undefined || expected === null) assert.equal(actual ?? null, expected, difference);
  else assert.ok(Math.abs(actual - expected) < 1e-6, difference);
}
