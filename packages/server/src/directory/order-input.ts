// What orders of moves, jobs and token keys may say.
//
// Spec: R22.   Refused values are never repeated in the message.

import { ProtocolError } from "@moor/protocol";
import type { JobInput, MoveOrder, Order } from "./directory.ts";
import { parseShardId } from "./records.ts";
import { NAME_CHARS_MAX, assertText } from "./tunnel-input.ts";

/** Longest reason of an order, UTF-16 units. */
export const REASON_CHARS_MAX = 1_024;
/** Most moves of one transaction. Count: a placement change is one short transaction. */
export const MOVES_PER_ORDER_MAX = 500;
/** Slowest and fastest pace of a job. Moves a second. */
const RATE_PER_S = { min: 0.01, max: 10_000 } as const;

/** Throws `invalid_request` with `param` for an order whose actor or reason cannot be used. */
export function assertOrder(order: Order): void {
  assertText("actor", order.actor, 1, NAME_CHARS_MAX);
  if (order.reason !== undefined) assertText("reason", order.reason, 0, REASON_CHARS_MAX);
}

/** Throws `invalid_request` for a move that cannot be asked for. */
export function assertMoveOrder(order: MoveOrder): void {
  if (!/^move_[0-9a-f]{32}$/.test(order.moveId)) {
    throw invalid("moveId", "a move id is move_ and 32 hexadecimal digits");
  }
  assertShards({ to: order.to, ...(order.from === undefined ? {} : { from: order.from }) });
}

/** Throws `invalid_request` for a job that cannot be asked for. */
export function assertJobInput(input: JobInput): void {
  assertOrder(input);
  const { min, max } = RATE_PER_S;
  if (!(input.ratePerS >= min && input.ratePerS <= max)) {
    throw invalid("rate", `rate is ${min} to ${max} moves a second`);
  }
  const { from, to } = input.selector;
  assertShards({ from, to });
}

/** @param named shards by the parameter that names each */
function assertShards(named: Readonly<Record<string, string>>): void {
  for (const [param, shard] of Object.entries(named)) {
    if (parseShardId(shard) === undefined) throw invalid(param, "a shard is named like a DNS label");
  }
}

function invalid(param: string, message: string): ProtocolError {
  return new ProtocolError("invalid_request", { param, message });
}
