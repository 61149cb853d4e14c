// A Runtime whose time stands still until a test moves it, and whose randomness comes from a seed.

import type { Runtime, TimerHandle } from "@moor/runtime";

interface PendingTimer {
  readonly dueMs: number;
  readonly order: number;
  readonly run: () => void;
}

export class VirtualRuntime implements Runtime {
  #nowMs = 0;
  #wallOffsetMs: number;
  #order = 0;
  #seed: number;
  readonly #pending = new Map<object, PendingTimer>();

  /** @param seed any integer; the same seed gives the same random sequence */
  constructor(seed = 1, wallStartMs = Date.UTC(2026, 0, 1)) {
    this.#seed = seed >>> 0 || 1;
    this.#wallOffsetMs = wallStartMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs + this.#wallOffsetMs;
  }

  /** Moves the wall clock alone by `deltaMs` milliseconds, either way. */
  jumpWallClock(deltaMs: number): void {
    this.#wallOffsetMs += deltaMs;
  }

  schedule(delayMs: number, run: () => void): TimerHandle {
    const handle = { timer: {} };
    this.#order += 1;
    this.#pending.set(handle.timer, {
      dueMs: this.#nowMs + Math.max(0, delayMs),
      order: this.#order,
      run,
    });
    return handle;
  }

  cancel(handle: TimerHandle | undefined): void {
    if (handle !== undefined) this.#pending.delete(handle.timer);
  }

  /** xorshift32: small, seedable, good enough for jitter in tests. */
  random(): number {
    let x = this.#seed;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#seed = x >>> 0;
    return this.#seed / 2 ** 32;
  }

  randomBytes(byteCount: number): Uint8Array {
    return Uint8Array.from({ length: byteCount }, () => Math.floor(this.random() * 256));
  }

  /** How many timers wait. */
  get pendingCount(): number {
    return this.#pending.size;
  }

  /** Moves time by `byMs` milliseconds, firing due timers in order; timers they set fire too if due. */
  advance(byMs: number): void {
    const endMs = this.#nowMs + byMs;
    while (this.#fireNext(endMs));
    this.#nowMs = endMs;
  }

  /** Moves time from timer to timer until `isDone`, and stands still there; `byMs` milliseconds at most. */
  advanceUntil(byMs: number, isDone: () => boolean): void {
    const endMs = this.#nowMs + byMs;
    while (!isDone()) {
      if (this.#fireNext(endMs)) continue;
      this.#nowMs = endMs;
      return;
    }
  }

  /** The machine sleeps: time goes on by `byMs` milliseconds, and timers that came due meanwhile fire late, at its end. */
  sleepThrough(byMs: number): void {
    this.#nowMs += byMs;
    this.advance(0);
  }

  /** As `advance`, letting promise callbacks run after each timer and at the end. */
  async advanceAsync(byMs: number): Promise<void> {
    const endMs = this.#nowMs + byMs;
    do await settle();
    while (this.#fireNext(endMs));
    this.#nowMs = endMs;
    await settle();
  }

  /** Fires the timer that is due first, up to `endMs`; false when there is none. */
  #fireNext(endMs: number): boolean {
    const next = this.#nextDue(endMs);
    if (next === undefined) return false;
    const [key, timer] = next;
    this.#pending.delete(key);
    this.#nowMs = Math.max(this.#nowMs, timer.dueMs);
    timer.run();
    return true;
  }

  #nextDue(endMs: number): [object, PendingTimer] | undefined {
    let best: [object, PendingTimer] | undefined;
    for (const entry of this.#pending) {
      const timer = entry[1];
      if (timer.dueMs > endMs) continue;
      if (
        best === undefined ||
        timer.dueMs < best[1].dueMs ||
        (timer.dueMs === best[1].dueMs && timer.order < best[1].order)
      ) {
        best = entry;
      }
    }
    return best;
  }
}

/** Lets queued promise callbacks run, several layers deep. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}
