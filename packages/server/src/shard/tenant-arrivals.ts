// Since when a shard has had each of its tenants: from its own start, or from the tenant's arrival.
//
// Spec: T12 (last sentence), L31: a new owner takes agents and boxes for on their way for a while.
// I1  An arrival is noted once, and remembered for as long as somebody asks about it.

import { OWNER_GRACE_MS } from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import type { KnownPlacement } from "../peer/peer-link.ts";

/** Revisions are at least the directory's time in microseconds. Spec R22. */
const MICROSECONDS_PER_MS = 1_000;

/** The arrivals at one shard. Instants are its monotonic milliseconds. */
export class TenantArrivals<Tenant extends string> {
  readonly #runtime: Runtime;
  readonly #rememberedMs: number;
  /** The shard's own start. */
  readonly startedAtMs: number;
  readonly #arrivedAtMs = new Map<Tenant, number>();

  /** @param rememberedMs how long an arrival matters */
  constructor(runtime: Runtime, rememberedMs: number) {
    this.#runtime = runtime;
    this.#rememberedMs = rememberedMs;
    this.startedAtMs = runtime.monotonicMs();
  }

  /** Notes that a tenant came from elsewhere; false if that is known already. */
  note(tenant: Tenant): boolean {
    if (this.#arrivedAtMs.has(tenant)) return false;
    this.#arrivedAtMs.set(tenant, this.#runtime.monotonicMs());
    return true;
  }

  /** The tenant left. */
  forget(tenant: Tenant): void {
    this.#arrivedAtMs.delete(tenant);
  }

  sinceMs(tenant: Tenant): number {
    return this.#arrivedAtMs.get(tenant) ?? this.startedAtMs;
  }

  /**
   * Whether a placement was made moments ago, by its revision: a replica may show it before its listeners are told, and
   * a message may come in between.
   */
  isJustPlaced({ revision }: KnownPlacement): boolean {
    return Math.abs(this.#runtime.wallMs() - revision / MICROSECONDS_PER_MS) < OWNER_GRACE_MS;
  }

  /** Forgets what does not matter any more. */
  sweep(): void {
    const overMs = this.#runtime.monotonicMs() - this.#rememberedMs;
    for (const [tenant, atMs] of this.#arrivedAtMs) if (atMs < overMs) this.#arrivedAtMs.delete(tenant);
  }
}
