// One load on a route: what its caller sees, and what the processes between cost meanwhile.

import type { LoadResult } from "./closed-loop.ts";
import { readCpuMs, startPart, type PartOptions } from "./parts.ts";

/** What one load at one concurrency gave. */
export interface LoadFigures {
  readonly callsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly errors: number;
  /** CPU time of the processes between for each call. Microseconds. */
  readonly addedCpuUs: number;
}

/** Runs a program of this folder that measures for `measuredMs` and prints a LoadResult; `pids`: the processes between. */
export async function measureLoad(
  file: string,
  part: PartOptions,
  pids: readonly number[],
  measuredMs: number,
): Promise<LoadFigures> {
  const load = await startPart(file, part);
  const cpuMs = () => pids.reduce((sum, pid) => sum + readCpuMs(pid), 0);
  await load.stdout.waitFor("measuring");
  const cpuBeforeMs = cpuMs();
  const line = await load.stdout.waitFor(/^\{/, measuredMs + 60_000);
  const cpuAfterMs = cpuMs();
  await load.ended;
  const { calls, elapsedMs, p50Ms, p99Ms, errors } = JSON.parse(line) as LoadResult;
  const addedCpuUs = ((cpuAfterMs - cpuBeforeMs) * 1000) / calls;
  return { callsPerSecond: (calls * 1000) / elapsedMs, p50Ms, p99Ms, errors, addedCpuUs };
}
