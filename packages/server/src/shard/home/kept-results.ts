// Results of a home's commands that a repeat of their id may still ask for.
//
// Spec: L31, L33. For HOME_RESULT_KEPT_MS, at most HOME_RESULTS_KEPT_MAX and HOME_RESULT_BYTES_MAX a home, the oldest
// dropped first; what does not fit the node's budget is not kept. The box has them for longer (L20).
// I1  No command and no snapshot of any home is refused for want of what results hold.

import type { CommandId } from "@moor/protocol";
import type { ByteBudget } from "../../entry/byte-budget.ts";
import {
  HOME_RESULT_BYTES_MAX,
  HOME_RESULT_KEPT_MS,
  HOME_RESULTS_KEPT_MAX,
  HOME_RESULTS_SHARE,
} from "../../server-limits.ts";

interface KeptResult {
  readonly data: string;
  readonly bytes: number;
  readonly atMs: number;
}

/** The kept results of one home. Instants are the shard's monotonic milliseconds. */
export class KeptResults {
  readonly #budget: ByteBudget;
  /** Oldest first. */
  readonly #results = new Map<CommandId, KeptResult>();
  #bytes = 0;

  constructor(budget: ByteBudget) {
    this.#budget = budget;
  }

  get size(): number {
    return this.#results.size;
  }

  /** The result of a command, raw JSON, if it is still kept. */
  find(id: CommandId, nowMs: number): string | undefined {
    const kept = this.#results.get(id);
    return kept === undefined || isOver(kept, nowMs) ? undefined : kept.data;
  }

  keep(id: CommandId, data: string, nowMs: number): void {
    this.#drop(id);
    const bytes = Buffer.byteLength(data);
    if (!this.#makeRoom(bytes)) return;
    this.#results.set(id, { data, bytes, atMs: nowMs });
    this.#bytes += bytes;
  }

  /** Forgets what is over. */
  sweep(nowMs: number): void {
    for (const [id, kept] of this.#results) {
      if (!isOver(kept, nowMs)) return;
      this.#drop(id);
    }
  }

  clear(): void {
    for (const id of this.#results.keys()) this.#drop(id);
  }

  /** Drops the oldest until `bytes` more fit, and takes them from the budget; false = they never will. */
  #makeRoom(bytes: number): boolean {
    for (const id of this.#results.keys()) {
      const isFitting =
        this.#results.size < HOME_RESULTS_KEPT_MAX && this.#bytes + bytes <= HOME_RESULT_BYTES_MAX;
      if (isFitting && this.#isReserved(bytes)) return true;
      this.#drop(id);
    }
    return bytes <= HOME_RESULT_BYTES_MAX && this.#isReserved(bytes);
  }

  #isReserved(bytes: number): boolean {
    return this.#budget.tryReserve(bytes, HOME_RESULTS_SHARE);
  }

  #drop(id: CommandId): void {
    const kept = this.#results.get(id);
    if (kept === undefined) return;
    this.#results.delete(id);
    this.#bytes -= kept.bytes;
    this.#budget.release(kept.bytes);
  }
}

function isOver(kept: KeptResult, nowMs: number): boolean {
  return nowMs - kept.atMs >= HOME_RESULT_KEPT_MS;
}
