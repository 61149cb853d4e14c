// One client instance's polls: what each carries, and what its ending teaches the next.
//
// Spec: R9–R18, R21.
// I1  One call of `poll` is one HTTP attempt (R17). I2  A poll's ticket is taken when it starts, its outcome committed when
//     it ends, and nothing is held in between (R16): polls may overlap, and a late one changes nothing.
// I3  A result holds no token, body, host or path: a caller may log every field of it (R8).

import {
  classifyPollAnswer,
  createPollRouting,
  retryAfterMsOf,
  startPoll,
  stepPollRouting,
  type PollEnding,
  type PollFault,
  type PollOutcome,
  type PollRouting,
  type Slice,
} from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import type { ControlPlane } from "./control-plane.ts";
import type { CollectedAnswer } from "./http/collect-answer.ts";
import type { FaultCategory } from "./http/fault-category.ts";

/** What one poll asks for. */
export interface PollWish {
  /** Commands wanted, 1–25. */
  readonly limit: number;
  /** Wait asked for, milliseconds. */
  readonly waitMs: number;
  /** The poll's own deadline, milliseconds from now. */
  readonly deadlineMs: number;
}

/** Why a poll failed, in words that may be logged. */
export interface PollFailure {
  readonly kind: Exclude<PollOutcome["kind"], "success" | "cancelled">;
  /** Status of the answer, if a head came. */
  readonly status: number | undefined;
  /** Category of the transport fault, if there was one. */
  readonly fault: FaultCategory | undefined;
}

/** How one poll ended. */
export type PollResult =
  | {
      readonly kind: "success";
      /** The answer's body; commands are slices of it. */
      readonly body: Uint8Array;
      readonly commands: readonly Slice[];
      /** Monotonic time at which the answer's head arrived, milliseconds (T18). */
      readonly headAtMs: number;
    }
  | {
      readonly kind: "failed";
      readonly failure: PollFailure;
      /** Wait the answer asked for, milliseconds, 0–60_000; undefined for none. */
      readonly retryAfterMs: number | undefined;
    }
  | { readonly kind: "cancelled" };

const FAULTS: Readonly<Record<FaultCategory, PollFault>> = {
  dns: "dns",
  refused: "connect",
  unreachable: "connect",
  tls: "tls",
  reset: "reset",
  timeout: "deadline",
  protocol: "bad-head",
  other: "reset",
};

/** Polls one tunnel at one endpoint. A new one starts tokenless (R9). */
export class PollClient {
  readonly #controlPlane: ControlPlane;
  readonly #runtime: Runtime;
  #routing: PollRouting = createPollRouting();

  constructor(controlPlane: ControlPlane, runtime: Runtime) {
    this.#controlPlane = controlPlane;
    this.#runtime = runtime;
  }

  /** Makes one poll. Never rejects. */
  async poll(wish: PollWish, signal: AbortSignal): Promise<PollResult> {
    const ticket = startPoll(this.#routing);
    const answer = await this.#controlPlane.poll({ ...wish, token: ticket.token }, signal);
    const outcome: PollOutcome =
      answer.kind === "cancelled"
        ? { kind: "cancelled" }
        : classifyPollAnswer(pollEnding(answer), signal.aborted);
    this.#routing = stepPollRouting(this.#routing, ticket, outcome).state;
    return this.#result(answer, outcome);
  }

  #result(answer: CollectedAnswer, outcome: PollOutcome): PollResult {
    if (outcome.kind === "cancelled" || answer.kind === "cancelled") return { kind: "cancelled" };
    if (outcome.kind === "success" && answer.kind === "answer") {
      const { body, headAtMs } = answer;
      return { kind: "success", body, commands: outcome.commands, headAtMs };
    }
    return {
      kind: "failed",
      failure: {
        kind: outcome.kind === "success" ? "ordinary-error" : outcome.kind,
        status: answer.kind === "fault" ? undefined : answer.status,
        fault: answer.kind === "answer" ? undefined : answer.category,
      },
      retryAfterMs: answer.kind === "fault" ? undefined : retryAfterMsOf(answer, this.#runtime.wallMs()),
    };
  }
}

function pollEnding(answer: Exclude<CollectedAnswer, { kind: "cancelled" }>): PollEnding {
  switch (answer.kind) {
    case "fault":
      return { kind: "fault", fault: FAULTS[answer.category] };
    case "cut":
      return { kind: "answer", head: answer, body: new Uint8Array(), bodyEnding: "cut" };
    case "answer":
      return {
        kind: "answer",
        head: answer,
        body: answer.body,
        bodyEnding: answer.isComplete ? "complete" : "stopped",
      };
  }
}
