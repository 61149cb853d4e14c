// A steady load while every tunnel is moved again and again, beside the same load without moves.
//
// Spec: R4, R22–R25. Promise of the design's "Moves": no failed call, none run twice.

import { startFleet, type Fleet } from "@moor/testkit/fleet";
import type { AgentMix } from "@moor/testkit/fleet-agents";
import { moveRound, type MovesMade } from "@moor/testkit/fleet-moves";
import type { FleetVerdict } from "@moor/testkit/fleet-verdict";
import { createNodeRuntime, sleep } from "@moor/runtime";
import { setStage, type Stage, type StageOptions } from "./prove-stage.ts";
import { below, equals, faultClaims, type Pace, type Scenario, type ScenarioResult } from "./scenario.ts";

/** What a run with moves may differ in. */
export interface MovesCase extends StageOptions {
  readonly mix: AgentMix;
}

/** What both halves of a run came to. */
export interface MovesRun {
  readonly still: FleetVerdict;
  readonly moved: FleetVerdict;
  readonly moves: MovesMade;
  /** Valid corrections that reached capable agents. */
  readonly corrections: number;
  /** Corrections that reached agents which never declared the capability. Spec R4. */
  readonly strayCorrections: number;
}

const runtime = createNodeRuntime();

/** Most that moves may add to the slowest call. Milliseconds. */
const SLOWER_MS_MAX = 1_500;

/** Runs both halves: without moves, then with them. */
export async function runMoves(which: MovesCase, pace: Pace): Promise<MovesRun> {
  const stage = await setStage(which);
  try {
    const tunnels = await stage.cluster.createTunnels(pace.tunnels);
    const fleet = await startFleet({ tunnels, endpoints: stage.endpoints, mix: which.mix });
    try {
      await measure(fleet, pace, () => sleep(runtime, pace.warmUpMs));
      const still = await measure(fleet, pace, () => sleep(runtime, pace.measuredMs));
      let moves: MovesMade | undefined;
      const moved = await measure(fleet, pace, async () => {
        moves = await moveAll(stage, fleet, pace);
      });
      return {
        still,
        moved,
        moves: moves as MovesMade,
        corrections: fleet.agents.correctionCount(),
        strayCorrections: fleet.agents.strayCorrectionCount(),
      };
    } finally {
      await fleet.stop();
    }
  } finally {
    await stage.strike();
  }
}

/** The verdict on a load that lasts as long as `during`. */
export async function measure(
  fleet: Fleet,
  { callsPerS, sdkClients }: Pick<Pace, "callsPerS" | "sdkClients">,
  during: () => Promise<unknown>,
): Promise<FleetVerdict> {
  const run = await fleet.startRun({ callsPerS, sdkClients });
  await during();
  return run.finish();
}

function moveAll({ operators, cluster }: Stage, fleet: Fleet, pace: Pace): Promise<MovesMade> {
  return moveRound({
    operators,
    tunnels: fleet.tunnels.map(({ id }) => id),
    shards: cluster.shards,
    times: pace.moveTimes,
    durationMs: pace.measuredMs,
  });
}

/** The scenario of one case. */
export function movesScenario(which: MovesCase): Scenario {
  const { directory, entryMode, mix } = which;
  return {
    name: `moves-${directory}-${entryMode}-${mix}`,
    title: `Moves under load: ${directory}, ${entryMode} entries, ${mix} agents`,
    needsPostgres: directory === "postgres",
    run: async (pace) => describe(await runMoves(which, pace), pace),
  };
}

function describe(
  { still, moved, moves, corrections, strayCorrections }: MovesRun,
  pace: Pace,
): ScenarioResult {
  const expected = pace.tunnels * pace.moveTimes;
  return {
    claims: [
      equals(`every tunnel moved ${pace.moveTimes} times`, moves.made, expected),
      ...faultClaims("without moves", still),
      ...faultClaims("with moves", moved),
      equals("corrections to agents without the capability", strayCorrections, 0),
      below(
        "the slowest call is less than 1.5 s slower than without moves",
        moved.latency.slowestMs - still.latency.slowestMs,
        SLOWER_MS_MAX,
        "ms slower",
      ),
    ],
    figures: {
      callsWithoutMoves: still.calls,
      callsWithMoves: moved.calls,
      moves: moves.made,
      movesAcked: moves.acked,
      slowestMoveMs: moves.slowestMs,
      corrections,
      p50WithoutMovesMs: still.latency.p50Ms,
      p50WithMovesMs: moved.latency.p50Ms,
      p99WithoutMovesMs: still.latency.p99Ms,
      p99WithMovesMs: moved.latency.p99Ms,
      slowestWithoutMovesMs: still.latency.slowestMs,
      slowestWithMovesMs: moved.latency.slowestMs,
    },
  };
}
