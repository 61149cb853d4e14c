// What one client's next poll carries, and what each poll's outcome teaches it.
// Spec: R9–R16, R21.   Pure: no clock, no I/O; a state is never changed, a step returns the next one.
//
// I1  The watermark's revision never falls (R12). I2  A result of an older generation changes nothing (R16).
// I3  The active token is the watermark's token or none: R12 installs and restores no other.
// I4  Both counts are below 3; destinationFailures is 0 while there is no active token (R13–R15).
// I5  Only success, correction and destination failure advance the generation, by one each (R16).

import { CORRECTIONS_MAX, DESTINATION_FAILURES_MAX } from "./limits.ts";
import type { PollOutcome } from "./poll-answer.ts";

/** The newest revision met, and the token accepted at it. */
export interface Watermark {
  readonly revision: number;
  readonly token: string;
}

/** Routing state of one client instance with its fixed tunnel and endpoint; never shared, never stored. Spec R9. */
export interface PollRouting {
  /** Value of `X-Tunnel-Shard-Token` on the next poll; undefined = no such line. */
  readonly activeToken: string | undefined;
  /** In force for ever once set, also while there is no active token. */
  readonly watermark: Watermark | undefined;
  /** Valid corrections since the last success or eviction by R13, 0–2. */
  readonly corrections: number;
  /** Destination failures of the active token since the last success or valid correction, 0–2. */
  readonly destinationFailures: number;
  /** State-bearing results committed so far. */
  readonly generation: number;
}

/** What a poll takes along at its start: the token it carries, and the generation its result is judged by. */
export interface PollTicket {
  readonly generation: number;
  readonly token: string | undefined;
}

/** The next state, and whether the result was of the current generation; if not, the state is the same object. */
export interface PollRoutingStep {
  readonly state: PollRouting;
  readonly isCurrent: boolean;
}

/** The state of a new instance: tokenless. Spec R9. */
export function createPollRouting(): PollRouting {
  return {
    activeToken: undefined,
    watermark: undefined,
    corrections: 0,
    destinationFailures: 0,
    generation: 0,
  };
}

/** Snapshot for a poll that starts now. Spec R10, R16. */
export function startPoll(state: PollRouting): PollTicket {
  return { generation: state.generation, token: state.activeToken };
}

/** Applies the outcome of the poll that took `ticket`. Spec R11–R16. */
export function stepPollRouting(
  state: PollRouting,
  ticket: PollTicket,
  outcome: PollOutcome,
): PollRoutingStep {
  const isCurrent = ticket.generation === state.generation;
  if (!isCurrent) return { state, isCurrent };
  return { state: commit(state, ticket, outcome), isCurrent };
}

function commit(state: PollRouting, ticket: PollTicket, outcome: PollOutcome): PollRouting {
  switch (outcome.kind) {
    case "success":
      return { ...state, corrections: 0, destinationFailures: 0, generation: state.generation + 1 };
    case "correction":
      return afterCorrection(state, outcome);
    case "destination-failure":
      return afterDestinationFailure(state, ticket);
    case "ordinary-error":
    case "malformed-correction":
    case "cancelled":
      break;
  }
  return state;
}

function afterCorrection(state: PollRouting, correction: Watermark): PollRouting {
  // R12 first, then R13's count: a newer third correction has still moved the watermark.
  const placed = { ...state, ...place(state, correction) };
  const corrections = state.corrections + 1;
  const isExhausted = corrections >= CORRECTIONS_MAX;
  return {
    ...placed,
    activeToken: isExhausted ? undefined : placed.activeToken,
    corrections: isExhausted ? 0 : corrections,
    destinationFailures: 0,
    generation: state.generation + 1,
  };
}

/** R12: what a correction does to token and watermark. */
function place(
  state: PollRouting,
  { token, revision }: Watermark,
): Pick<PollRouting, "activeToken" | "watermark"> {
  const { watermark, activeToken } = state;
  if (watermark === undefined || revision > watermark.revision) {
    return { activeToken: token, watermark: { revision, token } };
  }
  if (revision < watermark.revision) return { activeToken, watermark };
  return { activeToken: token === watermark.token ? token : undefined, watermark };
}

function afterDestinationFailure(state: PollRouting, ticket: PollTicket): PollRouting {
  const generation = state.generation + 1;
  // R14: a poll without a token met no cached destination.
  if (ticket.token === undefined) return { ...state, generation };
  const destinationFailures = state.destinationFailures + 1;
  if (destinationFailures < DESTINATION_FAILURES_MAX) return { ...state, destinationFailures, generation };
  return { ...state, activeToken: undefined, destinationFailures: 0, generation };
}
