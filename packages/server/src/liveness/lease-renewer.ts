// Renews the leases of this node's shards, and ages the leases of everybody's.
//
// Design: "Liveness". A lease is a counter in the directory: its holder counts time from when it sent the renewal, a
// watcher times how long the counter stood still, both on their own monotonic clock.
// I1  One renewal is under way at a time; a slow directory is not sent a second one.
// I2  A node that another incarnation of itself has replaced stops renewing: its shards are not its own any more.

import { isProtocolError } from "@moor/protocol";
import type { Logger, Runtime, TimerHandle } from "@moor/runtime";
import type { Directory } from "../directory/directory.ts";
import type { ShardId } from "../directory/records.ts";
import type { Replica } from "../directory/replica.ts";
import { LEASE_MS } from "./lease-limits.ts";

/** What a renewer needs. */
export interface LeaseRenewerOptions {
  readonly directory: Pick<Directory, "renewLeases">;
  readonly node: string;
  readonly incarnation: string;
  /** What this node's replica shows, told with each renewal. */
  readonly replica: Pick<Replica, "seq">;
  /** Shards this node runs; a node without any renews its own lease alone. */
  readonly shards: readonly ShardId[];
  readonly runtime: Runtime;
  readonly logger: Logger;
  /** Called once when another incarnation of this node has registered. */
  readonly onReplaced?: () => void;
}

/** How often a lease is renewed: two renewals may fail before it is late. Milliseconds. */
export const LEASE_RENEW_INTERVAL_MS = LEASE_MS / 3;

/** Renews from `start` to `stop`. */
export class LeaseRenewer {
  readonly #options: LeaseRenewerOptions;
  #timer: TimerHandle | undefined;
  #isStopped = false;
  #isFailing = false;
  #renewedAtMs: number | undefined;

  constructor(options: LeaseRenewerOptions) {
    this.#options = options;
  }

  /** Milliseconds since the newest renewal that succeeded was sent; undefined before the first. */
  get ageMs(): number | undefined {
    if (this.#renewedAtMs === undefined) return undefined;
    return this.#options.runtime.monotonicMs() - this.#renewedAtMs;
  }

  /** Renews at once and then every LEASE_RENEW_INTERVAL_MS. */
  start(): void {
    void this.#renew();
  }

  stop(): void {
    this.#isStopped = true;
    this.#options.runtime.cancel(this.#timer);
  }

  async #renew(): Promise<void> {
    const { directory, replica, node, incarnation, shards, runtime, logger } = this.#options;
    const sentAtMs = runtime.monotonicMs();
    try {
      await directory.renewLeases({ node, incarnation, shards, seq: replica.seq });
      this.#renewedAtMs = sentAtMs;
      if (this.#isFailing) logger.info("lease-renewed-again");
      this.#isFailing = false;
    } catch (error) {
      if (this.#isReplacedBy(error)) return;
      this.#noteFailure(error);
    }
    if (this.#isStopped) return;
    const tookMs = runtime.monotonicMs() - sentAtMs;
    this.#timer = runtime.schedule(LEASE_RENEW_INTERVAL_MS - tookMs, () => void this.#renew());
  }

  #isReplacedBy(error: unknown): boolean {
    if (!isProtocolError(error) || error.code !== "conflict") return false;
    if (this.#isStopped) return true;
    this.stop();
    this.#options.logger.error("node-replaced", { reason: error.message });
    this.#options.onReplaced?.();
    return true;
  }

  /** One line when renewals begin to fail, not one for each. */
  #noteFailure(error: unknown): void {
    if (this.#isFailing || this.#isStopped) return;
    this.#isFailing = true;
    const reason = error instanceof Error ? error.message : "unknown failure";
    this.#options.logger.warn("lease-renewal-failed", { reason });
  }
}
