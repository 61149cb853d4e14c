// One move job as the leader runs it: batch after batch, at its pace, until the source's tenants are through.
//
// Design: "Moves". Spec: R22, L22.
// I1  The move id of a tenant in a job is a function of both: a batch that is done again, by this leader or another,
//     moves nobody twice.
// I2  The cursor is noted after its batch: a crash in between repeats a batch, which I1 makes harmless.
// I3  A tenant is moved only from the job's source: one that somebody moved meanwhile stays where it was put.
// I4  The job's state is read before each batch: an abort is honoured within one.
// I5  A target that is not live ends the job as failed, naming it; a directory that is away only makes it wait.
// I6  A home that L22 keeps where it is is counted and named in the job, not forgotten.

import { hash } from "node:crypto";
import { isProtocolError } from "@moor/protocol";
import { sleep, type Logger, type Runtime } from "@moor/runtime";
import { isDirectoryAway, type Directory, type MoveOrder } from "../directory/directory.ts";
import { choosePlacement } from "../directory/placement-choice.ts";
import type { Job, ShardId } from "../directory/records.ts";
import type { Replica } from "../directory/replica.ts";
import { movePace } from "./move-pace.ts";
import type { MoveBatchOutcome, Mover } from "./mover.ts";

/** What a job works on. */
export interface MoveJobOptions {
  readonly directory: Pick<Directory, "getJob" | "updateJob">;
  readonly replica: Pick<Replica, "catchUp" | "placement" | "shard" | "shards" | "tenantsOfShard">;
  readonly mover: Pick<Mover, "moveBatch">;
  readonly runtime: Runtime;
  readonly logger: Logger;
  /** Whether this node still leads. */
  readonly isLeading: () => boolean;
  /** Fires when the node leaves. */
  readonly signal: AbortSignal;
}

/** Longest wait for a replica to show what was committed before a job began or went on. Milliseconds. */
const CATCH_UP_MS = 5_000;
/** Wait after a directory that could not be asked, or that disagreed with the replica. Milliseconds. */
const RETRY_MS = 1_000;
/** Times in a row the directory may refuse a batch for good reasons that the replica does not see. Count. */
const CONFLICTS_MAX = 5;

type BatchEnd = "moved" | "ended" | "conflict" | "unavailable";

/** The id of a tenant's move in a job (I1): the form of every move id. */
export function jobMoveId(job: string, tenant: string): string {
  return `move_${hash("sha256", `${job}\0${tenant}`, "hex").slice(0, 32)}`;
}

/** Runs a job until it has ended, or this node does not lead any more. Never rejects. */
export async function runMoveJob(id: string, options: MoveJobOptions): Promise<void> {
  const { replica, runtime, logger, isLeading, signal } = options;
  await replica.catchUp(CATCH_UP_MS);
  let conflicts = 0;
  while (isLeading() && !signal.aborted) {
    const startedAtMs = runtime.monotonicMs();
    const job = await readJob(id, options);
    if (job !== undefined && job.state !== "running") return;
    const end = job === undefined ? "unavailable" : await runBatch(job, options);
    if (end === "ended") return;
    conflicts = end === "conflict" ? conflicts + 1 : 0;
    if (conflicts === CONFLICTS_MAX && job !== undefined) {
      await endJob(job, options, "the directory keeps refusing its batches");
      return;
    }
    if (end === "moved" && job !== undefined) {
      const tookMs = runtime.monotonicMs() - startedAtMs;
      await sleep(runtime, movePace(job.ratePerS).intervalMs - tookMs, signal);
      continue;
    }
    logger.warn("move-job-waits", { job: id, cause: end });
    await sleep(runtime, RETRY_MS, signal);
    await replica.catchUp(CATCH_UP_MS);
  }
}

/** The job as the authority has it; undefined when it cannot be asked. */
async function readJob(id: string, { directory }: MoveJobOptions): Promise<Job | undefined> {
  return directory.getJob(id).catch(() => undefined);
}

async function runBatch(job: Job, options: MoveJobOptions): Promise<BatchEnd> {
  const { replica, mover } = options;
  const { from, to } = job.selector;
  const targets = liveTargets(job, replica);
  if (targets.length === 0) {
    const why = to === "spread" ? `no live shard but ${from}` : `shard ${to} is not live`;
    return endJob(job, options, why);
  }
  const tenants = replica.tenantsOfShard(from, job.cursor ?? "", movePace(job.ratePerS).batchSize);
  const last = tenants.at(-1);
  if (last === undefined) return endJob(job, options);
  const { actor, reason, isForced } = job;
  const moves = tenants.map((tenant) => moveOf(job, tenant, targets));
  const outcome = await mover.moveBatch({ moves, actor, reason, job: job.id, isForced });
  switch (outcome.kind) {
    case "moved":
      return noteProgress(job, last, outcome, options);
    case "refused":
      return isDirectoryAway(outcome.error) ? "unavailable" : "conflict";
    case "unknown-outcome":
      return "unavailable";
  }
}

function liveTargets({ selector: { from, to } }: Job, replica: MoveJobOptions["replica"]): ShardId[] {
  if (to !== "spread") return replica.shard(to)?.state === "live" ? [to] : [];
  return replica
    .shards()
    .filter(({ id, state }) => state === "live" && id !== from)
    .map(({ id }) => id);
}

function moveOf({ id, selector: { from } }: Job, tenant: string, targets: readonly ShardId[]): MoveOrder {
  const to = choosePlacement(tenant, targets) as ShardId;
  return { moveId: jobMoveId(id, tenant), tenant, from, to };
}

async function noteProgress(
  job: Job,
  cursor: string,
  batch: Extract<MoveBatchOutcome, { kind: "moved" }>,
  { directory, logger }: MoveJobOptions,
): Promise<BatchEnd> {
  const moved = batch.moves.length;
  const kept = batch.blocked.map(({ tenant }) => tenant);
  const blocked = { count: job.blocked + kept.length, tenants: [...job.blockedTenants, ...kept] };
  try {
    const progress = { id: job.id, moved: job.moved + moved, cursor };
    await directory.updateJob(kept.length === 0 ? progress : { ...progress, blocked });
    logger.debug("move-job-batch", { job: job.id, moved, blocked: kept.length, cursor });
    return "moved";
  } catch (error) {
    // The job was aborted or another node leads: the next reading of it tells. Else the batch is done again (I2).
    return isProtocolError(error) && error.code === "conflict" ? "moved" : "unavailable";
  }
}

/** Ends the job as done, or as failed for a reason. */
async function endJob(job: Job, { directory, logger }: MoveJobOptions, error?: string): Promise<BatchEnd> {
  const { id, moved, blocked } = job;
  try {
    await directory.updateJob(error === undefined ? { id, state: "done" } : { id, state: "failed", error });
  } catch (thrown) {
    // Aborted meanwhile, or another node leads: the job is theirs.
    return isProtocolError(thrown) && thrown.code === "conflict" ? "ended" : "unavailable";
  }
  if (error === undefined) logger.info("move-job-done", { job: id, moved, blocked });
  else logger.error("move-job-failed", { job: id, moved, reason: error });
  return "ended";
}
