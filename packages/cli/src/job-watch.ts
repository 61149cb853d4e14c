// Watches a move job to its end, with live progress on stderr: one line rewritten on a terminal, else a line now and then.
//
// I1  Watching changes nothing: the job runs at the node that leads, with or without a watcher.
// I2  A node that cannot be reached for a while is asked again; what to do is said when it stays away.

import { sleep, type Runtime } from "@moor/runtime";
import { UnreachableError } from "./exit-code.ts";
import type { FleetClient, JobJson } from "./fleet-client.ts";
import { ProgressLine, type ProgressOutput } from "./progress-line.ts";

/** How often the job is asked for. Milliseconds. */
const LOOK_INTERVAL_MS = 500;
/** Longest time in a row that the node may be unreachable. Milliseconds: a restart fits twice. */
const UNREACHABLE_MS_MAX = 60_000;
/** Width of the bar, characters. */
const BAR_CHARS = 20;

/** What a watch needs. */
export interface JobWatch {
  readonly client: Pick<FleetClient, "showJob">;
  readonly runtime: Runtime;
  readonly output: ProgressOutput;
}

/** Resolves with the job's last state once it has ended. Rejects with RefusedError or UnreachableError. */
export async function watchJob(first: JobJson, watch: JobWatch): Promise<JobJson> {
  const { runtime, output } = watch;
  const progress = new ProgressLine(output, runtime);
  let job = first;
  let reachedAtMs = runtime.monotonicMs();
  try {
    for (;;) {
      progress.show(progressText(job), job.state);
      if (job.state !== "running") return job;
      await sleep(runtime, LOOK_INTERVAL_MS);
      const seen = await look(job.id, watch, reachedAtMs);
      if (seen === undefined) continue;
      job = seen;
      reachedAtMs = runtime.monotonicMs();
    }
  } finally {
    progress.end();
  }
}

/** The job, or undefined while the node may still come back. */
async function look(
  id: string,
  { client, runtime }: JobWatch,
  reachedAtMs: number,
): Promise<JobJson | undefined> {
  try {
    return await client.showJob(id);
  } catch (error) {
    const isOver = runtime.monotonicMs() - reachedAtMs > UNREACHABLE_MS_MAX;
    if (error instanceof UnreachableError && !isOver) return undefined;
    throw error;
  }
}

/** The progress of a job as one line: bar, counts, rate, time left. */
export function progressText({ from, to, moved, total, rate, state }: JobJson): string {
  const target = to ?? "the others";
  // Tenants that came after the job was made are moved too.
  const all = Math.max(moved, total);
  const part = all === 0 ? 1 : moved / all;
  const bar = "#".repeat(Math.round(part * BAR_CHARS)).padEnd(BAR_CHARS, "-");
  const end = state === "running" ? `${Math.ceil((all - moved) / rate)} s left` : state;
  return `${from} → ${target} [${bar}] ${moved}/${all} at ${rate}/s, ${end}`;
}
