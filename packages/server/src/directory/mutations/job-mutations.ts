// Jobs: many moves under one name, made by whoever leads.
//
// I1  At most one job runs from a shard.   I2  Only a running job changes, and only its leader notes progress.

import { textAt } from "../columns.ts";
import { done, refused, type MutationFunction, type MutationSteps } from "../mutation-steps.ts";
import { BLOCKED_NAMED_MAX } from "../records.ts";
import { query, READ } from "../statements.ts";
import { WRITE } from "../write-statements.ts";
import { countTenants, jobHindrance, type LeaderClaim } from "./move-mutations.ts";

/** A job to be made. */
export interface CreateJob {
  readonly kind: "create-job";
  readonly id: string;
  readonly from: string;
  /** A shard or `spread`. */
  readonly to: string;
  /** As text: moves a second may be a fraction. */
  readonly ratePerS: string;
  /** Moves homes that L22 would keep, too. */
  readonly isForced: boolean;
  readonly actor: string;
  readonly reason: string;
}

/** Progress of a job; null = stays. */
export interface UpdateJob {
  readonly kind: "update-job";
  readonly id: string;
  readonly moved: number | null;
  readonly blocked: { readonly count: number; readonly tenants: readonly string[] } | null;
  readonly cursor: string | null;
  readonly state: string | null;
  readonly error: string | null;
  readonly leader: LeaderClaim;
}

/** A job to be ended. */
export interface AbortJob {
  readonly kind: "abort-job";
  readonly id: string;
  /** Who and why, as the job's `error` shows it. */
  readonly note: string;
}

export const createJob: MutationFunction<CreateJob> = function* (job, ledger): MutationSteps {
  for (const shard of job.to === "spread" ? [job.from] : [job.from, job.to]) {
    const [found] = yield query(WRITE.shard, [shard]);
    if (found === undefined) return refused("shard_not_found", `there is no shard ${shard}`);
    if (shard === job.to && found["state"] !== "live") {
      return refused("conflict", `shard ${shard} is not live`);
    }
  }
  if (job.from === job.to) return refused("invalid_request", "a job moves tenants to another shard");
  const [running] = yield query(WRITE.runningJobFrom, [job.from]);
  if (running !== undefined) {
    return refused("conflict", `job ${textAt(running, "id")} moves tenants of shard ${job.from} already`);
  }
  const total = yield* countTenants(job.from);
  const seq = ledger.change("job", job.id);
  const { id, from, to, ratePerS, actor, reason } = job;
  const isForced = job.isForced ? 1 : 0;
  yield query(WRITE.insertJob, [id, from, to, ratePerS, total, actor, reason, ledger.wallMs, seq, isForced]);
  return done(yield query(READ.job, [id]));
};

export const updateJob: MutationFunction<UpdateJob> = function* (job, ledger): MutationSteps {
  const hindrance = yield* jobHindrance(job.id, job.leader, ledger);
  if (hindrance !== undefined) return hindrance;
  const { id, moved, cursor, state, error, blocked } = job;
  const named = blocked?.tenants.slice(0, BLOCKED_NAMED_MAX).join(" ") ?? null;
  yield query(WRITE.updateJob, [id, moved, cursor, state, error, blocked?.count ?? null, named]);
  ledger.change("job", job.id);
  return done(yield query(READ.job, [job.id]));
};

export const abortJob: MutationFunction<AbortJob> = function* ({ id, note }, ledger): MutationSteps {
  const aborted = yield query(WRITE.abortJob, [id, note]);
  if (aborted.length > 0) ledger.change("job", id);
  const [found] = yield query(READ.job, [id]);
  if (found === undefined) return refused("job_not_found", "no such job");
  if (found["state"] !== "aborted") {
    return refused("conflict", `the job has ended already: ${textAt(found, "state")}`);
  }
  return done([found]);
};
