// Moves every tunnel of a fleet again and again, evenly over a time, through the operator API.
//
// Spec: R22, R24. I1  A move that is refused or of unknown outcome is counted, never ordered a second time.

import { createNodeRuntime, sleep } from "@moor/runtime";
import { errorOf, type OperatorClient } from "./operator-client.ts";

/** What the moves came to. */
export interface MovesMade {
  readonly ordered: number;
  readonly made: number;
  /** Those made of which the new owner said in time that it knows. */
  readonly acked: number;
  /** What the others were answered, by code. */
  readonly refused: readonly string[];
  /** Longest time from order to answer. Milliseconds. */
  readonly slowestMs: number;
}

export interface MoveRound {
  /** Whom to order the moves from, in turn. */
  readonly operators: readonly OperatorClient[];
  readonly tunnels: readonly string[];
  /** Shards to go round, at least two. */
  readonly shards: readonly string[];
  /** Times each tunnel is moved. */
  readonly times: number;
  /** Time all moves are spread over. Milliseconds. */
  readonly durationMs: number;
  /** Orders no more once it fires. */
  readonly signal?: AbortSignal;
}

const runtime = createNodeRuntime();

/** Orders the moves one by one, each at its own time; late ones follow at once. */
export async function moveRound(round: MoveRound): Promise<MovesMade> {
  const { operators, tunnels, shards, times, durationMs, signal } = round;
  const total = tunnels.length * times;
  const startMs = runtime.monotonicMs();
  const tally = { ordered: 0, made: 0, acked: 0, refused: [] as string[], slowestMs: 0 };
  const shardAt = new Map<string, string>();
  for (let at = 0; at < total; at += 1) {
    const dueMs = startMs + (at * durationMs) / total;
    const waitMs = dueMs - runtime.monotonicMs();
    if (waitMs > 0) await sleep(runtime, waitMs, signal);
    if (signal?.aborted === true) break;
    const operator = operators[at % operators.length] as OperatorClient;
    const tunnel = tunnels[at % tunnels.length] as string;
    const from = shardAt.get(tunnel) ?? (await operator.where(tunnel))?.shard;
    const to = shards[(shards.indexOf(from ?? "") + 1) % shards.length] as string;
    const orderedAtMs = runtime.monotonicMs();
    const reply = await operator.move(tunnel, to, "round");
    tally.ordered += 1;
    tally.slowestMs = Math.max(tally.slowestMs, Math.round(runtime.monotonicMs() - orderedAtMs));
    if (reply.status !== 200) {
      tally.refused.push(errorOf(reply)?.code ?? String(reply.status));
      continue;
    }
    shardAt.set(tunnel, to);
    tally.made += 1;
    if (reply.body["acked"] === true) tally.acked += 1;
  }
  return tally;
}
