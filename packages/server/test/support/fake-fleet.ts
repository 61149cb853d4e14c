// A directory of shards, placements and jobs for tests of moves: in memory, with outages and crashes on order.

import { ProtocolError } from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import type {
  Change,
  Directory,
  Job,
  MadeMove,
  Placement,
  ShardId,
  ShardRecord,
} from "../../src/directory/directory.ts";
import type { MoveBatchOutcome, MoveBatchRequest } from "../../src/moves/mover.ts";

/** What the moves' parts use of directory, replica and mover at once. The replica is always current. */
export class FakeFleet {
  readonly runtime: Runtime;
  readonly placements = new Map<string, Placement>();
  /** Every move made, in order. */
  readonly moves: MadeMove[] = [];
  /** Instants of batches that moved somebody, monotonic milliseconds. */
  readonly batchAtMs: number[] = [];
  readonly jobs = new Map<string, Job>();
  readonly states = new Map<string, ShardRecord["state"]>();
  /** Tenants that L22 keeps where they are. */
  readonly kept = new Set<string>();
  leader: string | undefined;
  /** What the next calls of these methods do instead. */
  readonly faults: { moveBatch?: () => MoveBatchOutcome; updateJob?: () => never; getJob?: () => never } = {};
  #revision = 0;
  readonly #listeners = new Set<(change: Change) => void>();

  constructor(runtime: Runtime, shards: readonly string[]) {
    this.runtime = runtime;
    for (const shard of shards) this.states.set(shard, "live");
  }

  place(tenant: string, shard: string): void {
    const placement = {
      shard: shard as ShardId,
      revision: (this.#revision += 1),
      tokenKey: "tk",
      tokenFormat: 1,
    };
    this.placements.set(tenant, placement);
  }

  /** Places `count` tenants `t000`, `t001`, … on a shard. */
  fill(shard: string, count: number): void {
    for (let at = 0; at < count; at += 1) this.place(`t${String(at).padStart(3, "0")}`, shard);
  }

  addJob(from: string, to: string, ratePerS: number, isForced = false): Job {
    const job: Job = {
      id: `job_${this.jobs.size + 1}`,
      kind: "move",
      selector: { from: from as ShardId, to: to as ShardId },
      ratePerS,
      state: "running",
      isForced,
      moved: 0,
      blocked: 0,
      blockedTenants: [],
      total: this.replica.tenantsOfShard(from, "", 10_000).length,
      cursor: null,
      actor: "operator",
      reason: "test",
      createdAtMs: 0,
    };
    this.#setJob(job);
    return job;
  }

  abort(id: string): void {
    this.#setJob({ ...this.job(id), state: "aborted" });
  }

  job(id: string): Job {
    const job = this.jobs.get(id);
    if (job === undefined) throw new ProtocolError("not_found");
    return job;
  }

  /** Shard → how many tenants it has. */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { shard } of this.placements.values()) counts[shard] = (counts[shard] ?? 0) + 1;
    return counts;
  }

  readonly directory: {
    -readonly [Name in "tryLead" | "listJobs" | "getJob" | "updateJob"]: Directory[Name];
  } = {
    tryLead: async ({ node }) => {
      this.leader ??= node;
      return this.leader === node;
    },
    listJobs: async ({ state }) => ({
      items: [...this.jobs.values()].filter((job) => state === undefined || job.state === state),
      next: null,
    }),
    getJob: async (id) => {
      this.faults.getJob?.();
      return this.job(id);
    },
    updateJob: async ({ id, blocked, ...progress }) => {
      this.faults.updateJob?.();
      const job = this.job(id);
      if (job.state !== "running") throw new ProtocolError("conflict");
      const kept = blocked === undefined ? {} : { blocked: blocked.count, blockedTenants: blocked.tenants };
      return this.#setJob({ ...job, ...progress, ...kept });
    },
  };

  readonly replica = {
    catchUp: async () => {},
    placement: (tenant: string) => this.placements.get(tenant),
    shards: (): ShardRecord[] => [...this.states.keys()].map((id) => this.#shard(id)),
    shard: (id: string) => (this.states.has(id) ? this.#shard(id) : undefined),
    tenantsOfShard: (shard: string, after: string, limit: number) =>
      [...this.placements]
        .filter(([tenant, placement]) => placement.shard === shard && tenant > after)
        .map(([tenant]) => tenant)
        .toSorted()
        .slice(0, limit),
    onChange: (listener: (change: Change) => void) => {
      this.#listeners.add(listener);
      return () => void this.#listeners.delete(listener);
    },
  };

  readonly mover = {
    moveBatch: async (request: MoveBatchRequest): Promise<MoveBatchOutcome> => {
      const { moveBatch } = this.faults;
      return moveBatch === undefined ? this.commit(request) : moveBatch();
    },
  };

  /** What the directory makes of a batch: idempotent by move id, guarded by `from`. */
  commit({ moves, actor, reason, job, isForced }: MoveBatchRequest): MoveBatchOutcome {
    const made: MadeMove[] = [];
    const isKept = (move: { readonly tenant: string }) => isForced !== true && this.kept.has(move.tenant);
    const blocked = moves.filter(isKept).map(({ tenant }) => ({ tenant, blockers: [] }));
    for (const { moveId, tenant, from, to } of moves.filter((move) => !isKept(move))) {
      const before = this.placements.get(tenant);
      if (before === undefined || before.shard !== from || this.moves.some(({ id }) => id === moveId))
        continue;
      this.place(tenant, to);
      const placement = this.placements.get(tenant) as Placement;
      const { revision } = placement;
      const move = {
        id: moveId,
        tenant,
        from: before.shard,
        to,
        revision,
        atMs: 0,
        actor,
        reason,
        job,
        placement,
      };
      made.push(move);
    }
    this.moves.push(...made);
    if (made.length > 0) this.batchAtMs.push(this.runtime.monotonicMs());
    return { kind: "moved", moves: made, blocked };
  }

  #shard(id: string): ShardRecord {
    const state = this.states.get(id) ?? "down";
    return { id: id as ShardId, node: "n", publicHost: id, state, leaseCounter: 0 };
  }

  #setJob(job: Job): Job {
    this.jobs.set(job.id, job);
    for (const listener of this.#listeners) listener({ seq: 0, kind: "job", id: job.id });
    return job;
  }
}
