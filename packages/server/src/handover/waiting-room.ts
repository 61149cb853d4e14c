// Requests and upgrades that came to a node which does not serve yet, because another process is still leaving.
//
// Spec: L24, T11. Whoever dials during a handover waits here instead of being refused.
// I1  It is bounded: beyond WAITING_MAX in number or WAITING_MS in time the answer is 503 with Retry-After.
// I2  Nothing of a body is read while its request waits. I3  Who leaves meanwhile is forgotten.
// I4  They are served in the order in which they came.

import type { Runtime, TimerHandle } from "@moor/runtime";

/** Most that wait at once. Count: as many as a listener's queue keeps. */
export const WAITING_MAX = 4_096;

/** Longest wait. Milliseconds: below the 15 s in which a link's dial expects its 101 (L15). */
export const WAITING_MS = 12_000;

/** How a wait ends. `turned-away`: it is to be answered 503 with Retry-After. `gone`: its connection has ended. */
export type WaitEnd = "admitted" | "turned-away" | "gone";

interface Guest {
  readonly timer: TimerHandle;
  readonly end: (end: WaitEnd) => void;
}

export class WaitingRoom {
  readonly #runtime: Runtime;
  readonly #waiting = new Set<Guest>();
  #isOpen = false;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** How many wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /**
   * Waits for the room to open.
   *
   * @param onGone runs what it is given once, when the connection ends
   */
  wait(onGone: (run: () => void) => void): Promise<WaitEnd> {
    if (this.#isOpen) return Promise.resolve("admitted");
    if (this.#waiting.size >= WAITING_MAX) return Promise.resolve("turned-away");
    const { promise, resolve } = Promise.withResolvers<WaitEnd>();
    const timer = this.#runtime.schedule(WAITING_MS, () => this.#end(guest, "turned-away"));
    const guest: Guest = { timer, end: resolve };
    this.#waiting.add(guest);
    onGone(() => this.#end(guest, "gone"));
    return promise;
  }

  /** Admits who waits, and from now on everybody at once. */
  open(): void {
    this.#isOpen = true;
    for (const guest of this.#waiting) this.#end(guest, "admitted");
  }

  /** Turns away who waits. */
  close(): void {
    for (const guest of this.#waiting) this.#end(guest, "turned-away");
  }

  #end(guest: Guest, end: WaitEnd): void {
    if (!this.#waiting.delete(guest)) return;
    this.#runtime.cancel(guest.timer);
    guest.end(end);
  }
}
