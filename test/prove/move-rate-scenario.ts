// How many moves a second: ordered one by one, several at a time, and by a job.
//
// Design: "Moves" (batches of at most 500 in one transaction).

import { createNodeRuntime } from "@moor/runtime";
import type { OperatorClient } from "@moor/testkit/operator-client";
import { until } from "@moor/testkit/within";
import { setStage, type StageOptions } from "./prove-stage.ts";
import { equals, type Pace, type Scenario } from "./scenario.ts";

export interface MoveRateRun {
  /** Moves a second, each ordered when the one before was answered. */
  readonly onePerS: number;
  /** Moves a second with eight orders under way. */
  readonly eightPerS: number;
  /** Moves a second of a job without a brake of its own. */
  readonly jobPerS: number;
  readonly jobMoved: number;
  readonly tunnels: number;
}

interface JobView {
  readonly id: string;
  readonly state: string;
  readonly moved: number;
  readonly total: number;
}

const runtime = createNodeRuntime();

/** Moves ordered one by one, and eight at a time. */
const ORDERED_MOVES = 200;
/** Rate the job is given: the highest there is. */
const JOB_RATE_PER_S = 10_000;
const JOB_MS_MAX = 120_000;

/** Measures all three on one cluster. */
export async function runMoveRate(
  directory: StageOptions["directory"],
  tunnelCount: number,
): Promise<MoveRateRun> {
  const stage = await setStage({ directory, entryMode: "replica" });
  try {
    const operator = stage.operators[0] as OperatorClient;
    const tunnels = (await stage.cluster.createTunnels(tunnelCount)).map(({ id }) => id);
    const [first = "", second = ""] = stage.cluster.shards;
    const onePerS = await orderMoves(operator, tunnels, [first, second], 1);
    const eightPerS = await orderMoves(operator, tunnels, [first, second], 8);
    await runJob(operator, second, first); // all of them on one shard
    const job = await runJob(operator, first, second);
    return { onePerS, eightPerS, ...job, tunnels: tunnelCount };
  } finally {
    await stage.strike();
  }
}

async function orderMoves(
  operator: OperatorClient,
  tunnels: readonly string[],
  shards: readonly [string, string],
  atATime: number,
): Promise<number> {
  let next = 0;
  const startMs = runtime.monotonicMs();
  const worker = async () => {
    while (next < ORDERED_MOVES) {
      const at = next;
      next += 1;
      const round = Math.floor(at / tunnels.length);
      const to = shards[(at + round) % 2] ?? "";
      const reply = await operator.move(tunnels[at % tunnels.length] ?? "", to);
      // Who is there already is refused, which costs the same look at the directory.
      if (reply.status !== 200 && reply.status !== 409)
        throw new Error(`a move was answered ${reply.status}`);
    }
  };
  await Promise.all(Array.from({ length: atATime }, worker));
  return Math.round((ORDERED_MOVES * 1000) / (runtime.monotonicMs() - startMs));
}

async function runJob(
  operator: OperatorClient,
  from: string,
  to: string,
): Promise<Pick<MoveRateRun, "jobPerS" | "jobMoved">> {
  const startMs = runtime.monotonicMs();
  const order = { kind: "move", from, to, rate: JOB_RATE_PER_S, reason: "bench" };
  const { id } = await operator.demand<JobView>("POST", "/v1/jobs", order);
  const job = await until(
    async () => {
      const seen = await operator.demand<JobView>("GET", `/v1/jobs/${id}`);
      return seen.state === "running" ? undefined : seen;
    },
    "the job to end",
    JOB_MS_MAX,
  );
  if (job.state !== "done") throw new Error(`the job ended as ${job.state}`);
  return {
    jobPerS: Math.round((job.moved * 1000) / (runtime.monotonicMs() - startMs)),
    jobMoved: job.moved,
  };
}

/** The scenario on one directory. */
export function moveRateScenario(directory: StageOptions["directory"]): Scenario {
  return {
    name: `move-rate-${directory}`,
    title: `Moves a second: ${directory}`,
    needsPostgres: directory === "postgres",
    run: async (pace: Pace) => {
      const tunnels = Math.min(5_000, pace.scaleTunnels);
      const run = await runMoveRate(directory, tunnels);
      return {
        claims: [equals("the job moved every tunnel", run.jobMoved, tunnels)],
        figures: { ...run },
      };
    },
  };
}
