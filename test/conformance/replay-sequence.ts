// Replays one sequence of vectors/sequences.json against the machines: PollRouting, PollBackoff and readiness.

import assert from "node:assert/strict";
import type { PollOutcome, PollTicket } from "@moor/protocol";
import { assertMs, endingOf, neutral, type ProtocolModule } from "./vector-terms.ts";
import type { Sequence, SequenceStep, StepExpectation } from "./vector-files.ts";

/** A step that ends a poll. */
type EndingStep = Exclude<SequenceStep, { readonly do: "start" }>;

/** Throws on the first difference, naming the step. */
export function replaySequence(protocol: ProtocolModule, sequence: Sequence): void {
  let routing = protocol.createPollRouting();
  let backoff = protocol.createPollBackoff();
  let isReady = false;
  const tickets = new Map<number, PollTicket>();

  for (const [index, step] of sequence.steps.entries()) {
    const place = `step ${index + 1} (${step.do} ${step.poll})`;
    if (step.do === "start") {
      const ticket = protocol.startPoll(routing);
      tickets.set(step.poll, ticket);
      assert.equal(ticket.token ?? null, step.sends, place);
      continue;
    }
    const ticket = tickets.get(step.poll);
    assert.ok(ticket, `${place}: the poll was started`);
    tickets.delete(step.poll);

    const outcome = outcomeOf(protocol, step);
    routing = protocol.stepPollRouting(routing, ticket, outcome).state;
    let delayMs: number | undefined;
    if (outcome.kind === "success") {
      backoff = protocol.backoffAfterSuccess(backoff);
      isReady = true;
    } else if (outcome.kind !== "cancelled") {
      const failed = protocol.backoffAfterFailure(backoff, failureOf(protocol, step));
      backoff = failed.state;
      delayMs = failed.delayMs;
      isReady = false;
    }
    assertStep(step.expect, { outcome, routing, delayMs, isReady }, place);
  }
}

interface Observed {
  readonly outcome: PollOutcome;
  readonly routing: ReturnType<ProtocolModule["createPollRouting"]>;
  readonly delayMs: number | undefined;
  readonly isReady: boolean;
}

function assertStep(expect: StepExpectation, observed: Observed, place: string): void {
  const { outcome, routing, delayMs, isReady } = observed;
  assert.equal(neutral(outcome)["outcome"], expect.outcome, place);
  const state = {
    ...routing,
    activeToken: routing.activeToken ?? null,
    watermark: routing.watermark ?? null,
  };
  assert.deepEqual(state, expect.state, place);
  assertMs(delayMs, expect.delayMs);
  if (expect.ready !== undefined) assert.equal(isReady, expect.ready, place);
  if (expect.commands !== undefined) {
    assert.equal(outcome.kind === "success" ? outcome.commands.length : 0, expect.commands, place);
  }
}

function outcomeOf(protocol: ProtocolModule, step: EndingStep): PollOutcome {
  switch (step.do) {
    case "fault":
      return protocol.classifyPollAnswer({ kind: "fault", fault: step.fault }, false);
    case "answer":
      return protocol.classifyPollAnswer(endingOf(step), false);
    case "cancel": {
      const { status, headers = [], body = "" } = step;
      if (status === undefined) return protocol.classifyPollAnswer({ kind: "fault", fault: "reset" }, true);
      return protocol.classifyPollAnswer(endingOf({ status, headers, body, bodyIsCut: true }), true);
    }
  }
}

function failureOf(
  protocol: ProtocolModule,
  step: EndingStep,
): { random: number; retryAfterMs?: number | undefined } {
  if (step.do !== "answer") return { random: step.do === "fault" ? step.random : 0 };
  return {
    random: step.random ?? 0,
    retryAfterMs: protocol.retryAfterMsOf(endingOf(step).head, step.wallMs ?? 0),
  };
}
