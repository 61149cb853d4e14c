// Whether a newer link of a home's box may take the place of the one that is there.
//
// Spec: L23. Two boxes with one identity would replace each other for ever: after REPLACEMENTS_MAX replacements in
// REPLACEMENT_WINDOW_MS the incumbent stays for INCUMBENT_STAYS_MS, and the operator is told.
// I1  Only a replacement of a link that is there counts: a box that comes back after its link ended is no newcomer.
// I2  Time is a parameter.

import { INCUMBENT_STAYS_MS, REPLACEMENT_WINDOW_MS, REPLACEMENTS_MAX } from "../../server-limits.ts";

/** What an operator sees while newcomers are held off. */
export interface DuplicateIdentity {
  readonly remainingMs: number;
  /** Newcomers refused since the incumbent stays. Count. */
  readonly heldOff: number;
}

/** The guard of one home. Instants are the shard's monotonic milliseconds. */
export class BoxGuard {
  #replacedAtMs: number[] = [];
  #staysUntilMs = Number.NEGATIVE_INFINITY;
  #heldOff = 0;

  /** Notes a replacement; whether the incumbent stays from now on. */
  noteReplacement(nowMs: number): boolean {
    this.#replacedAtMs = [...this.#recent(nowMs), nowMs];
    if (this.#replacedAtMs.length < REPLACEMENTS_MAX) return false;
    this.#replacedAtMs = [];
    this.#staysUntilMs = nowMs + INCUMBENT_STAYS_MS;
    this.#heldOff = 0;
    return true;
  }

  /** Milliseconds for which a newcomer is held off, and counts it; 0 = it may replace. */
  holdOff(nowMs: number): number {
    const waitMs = Math.max(0, this.#staysUntilMs - nowMs);
    if (waitMs > 0) this.#heldOff += 1;
    return waitMs;
  }

  /** Another box was enrolled: those that fought are none of the home's any more, or the only one. */
  forget(): void {
    this.#replacedAtMs = [];
    this.#staysUntilMs = Number.NEGATIVE_INFINITY;
  }

  /** What to show; undefined while nobody is held off. */
  status(nowMs: number): DuplicateIdentity | undefined {
    const remainingMs = Math.ceil(this.#staysUntilMs - nowMs);
    return remainingMs > 0 ? { remainingMs, heldOff: this.#heldOff } : undefined;
  }

  /** Whether nothing would be lost by forgetting it. */
  isIdle(nowMs: number): boolean {
    return this.#staysUntilMs <= nowMs && this.#recent(nowMs).length === 0;
  }

  #recent(nowMs: number): number[] {
    return this.#replacedAtMs.filter((atMs) => atMs > nowMs - REPLACEMENT_WINDOW_MS);
  }
}
