// How old every shard's lease is, as this node sees it: the time its counter stood still here.
//
// Design: "Liveness". I1  No clock but this node's monotonic one is used: a wall clock that jumps makes nobody late.
// I2  An age is never below the truth by more than LEASE_LOOK_INTERVAL_MS and the replica's lag; a shard just met for
//     the first time is as old as this watch of it.

import type { Runtime, TimerHandle } from "@moor/runtime";
import type { ShardId } from "../directory/records.ts";
import type { Replica } from "../directory/replica.ts";
import { LEASE_LOOK_INTERVAL_MS, LEASE_MS } from "./lease-limits.ts";

/** What a watch needs. */
export interface LeaseWatchOptions {
  readonly replica: Pick<Replica, "shards">;
  readonly runtime: Runtime;
}

interface Sighting {
  readonly counter: number;
  readonly atMs: number;
}

/** Watches from `start` to `stop`. */
export class LeaseWatch {
  readonly #options: LeaseWatchOptions;
  #sightings = new Map<ShardId, Sighting>();
  #timer: TimerHandle | undefined;

  constructor(options: LeaseWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.look();
    this.#timer = this.#options.runtime.schedule(LEASE_LOOK_INTERVAL_MS, () => this.start());
  }

  stop(): void {
    this.#options.runtime.cancel(this.#timer);
  }

  /** Reads the counters now. */
  look(): void {
    const { replica, runtime } = this.#options;
    const nowMs = runtime.monotonicMs();
    const seen = replica.shards().map(({ id, leaseCounter }): [ShardId, Sighting] => {
      const last = this.#sightings.get(id);
      return [id, last?.counter === leaseCounter ? last : { counter: leaseCounter, atMs: nowMs }];
    });
    this.#sightings = new Map(seen);
  }

  /** Milliseconds the shard's counter has stood still; undefined for a shard never seen. */
  ageMs(shard: ShardId): number | undefined {
    const sighting = this.#sightings.get(shard);
    return sighting === undefined ? undefined : this.#options.runtime.monotonicMs() - sighting.atMs;
  }

  /** Whether the shard's holder missed its lease. */
  isLate(shard: ShardId): boolean {
    return (this.ageMs(shard) ?? 0) > LEASE_MS;
  }
}
