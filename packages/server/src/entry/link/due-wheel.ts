// One timer for all links: each is looked at when something of it is due.
//
// Spec: L27, L32.
// I1  One runtime timer at most, and none while nothing is due.
// I2  An item is woken at most one tick late, and may be woken early: it says itself when it wants to be looked at next.
// I3  An item costs one number of its own and one slot of an array.
// I4  After a stall of this process what is due is looked at one tick later: what its peers have sent meanwhile waits in
//     their sockets, and is read first.

import type { Runtime, TimerHandle } from "@moor/runtime";

type WheelRuntime = Pick<Runtime, "monotonicMs" | "schedule" | "cancel">;

/** Ticks since the last look that tell of a stall (I4). Count. */
const STALL_TICKS = 3;

/** Something a wheel looks at. */
export interface DueItem {
  /** Tick the wheel looks at it; kept by the wheel. Initially 0. */
  wheelTick: number;
  /** Does what is due; returns when to be looked at next (monotonic milliseconds), or undefined for never. */
  wake(nowMs: number): number | undefined;
}

export class DueWheel<Item extends DueItem> {
  readonly #runtime: WheelRuntime;
  readonly #tickMs: number;
  readonly #slots: Item[][];
  #tick: number;
  #timer: TimerHandle | undefined;
  #isLateForAStall = false;
  /** Entries of all slots, outdated ones included. */
  #count = 0;

  constructor(runtime: WheelRuntime, options: { readonly tickMs: number; readonly slots: number }) {
    this.#runtime = runtime;
    this.#tickMs = options.tickMs;
    this.#slots = Array.from({ length: options.slots }, () => []);
    this.#tick = this.#tickAt(runtime.monotonicMs());
  }

  /** Has `item` looked at when `dueAtMs` (monotonic) has come, unless it is looked at before that anyway. */
  add(item: Item, dueAtMs: number): void {
    const nowMs = this.#runtime.monotonicMs();
    if (this.#timer === undefined) this.#tick = this.#tickAt(nowMs);
    const dueTick = Math.ceil(dueAtMs / this.#tickMs);
    const tick = Math.min(Math.max(dueTick, this.#tick + 1), this.#tick + this.#slots.length - 1);
    if (item.wheelTick > this.#tick && item.wheelTick <= tick) return;
    item.wheelTick = tick;
    this.#slots[tick % this.#slots.length]?.push(item);
    this.#count += 1;
    if (this.#timer === undefined) this.#schedule(nowMs);
  }

  /** Looks at nothing any more. */
  close(): void {
    this.#runtime.cancel(this.#timer);
    for (const slot of this.#slots) slot.length = 0;
    this.#count = 0;
  }

  #turn(): void {
    this.#timer = undefined;
    const nowMs = this.#runtime.monotonicMs();
    const reached = this.#tickAt(nowMs);
    this.#isLateForAStall = !this.#isLateForAStall && reached - this.#tick > STALL_TICKS;
    if (this.#isLateForAStall) {
      this.#timer = this.#runtime.schedule(this.#tickMs, () => this.#turn());
      return;
    }
    // After a stall every slot is gone through once, at most.
    this.#tick = Math.max(this.#tick, reached - this.#slots.length);
    const woken: Item[] = [];
    while (this.#tick < reached) {
      this.#tick += 1;
      this.#take(this.#tick, woken);
    }
    if (this.#count > 0) this.#schedule(nowMs);
    for (const item of woken) {
      const nextAtMs = item.wake(nowMs);
      if (nextAtMs !== undefined) this.add(item, nextAtMs);
    }
  }

  /** Empties the slot of `tick`: what was brought forward meanwhile, or put off, has its entry elsewhere. */
  #take(tick: number, woken: Item[]): void {
    const slot = this.#slots[tick % this.#slots.length] ?? [];
    this.#slots[tick % this.#slots.length] = [];
    this.#count -= slot.length;
    for (const item of slot) {
      if (item.wheelTick === 0 || item.wheelTick > tick) continue;
      item.wheelTick = 0;
      woken.push(item);
    }
  }

  #schedule(nowMs: number): void {
    this.#timer = this.#runtime.schedule((this.#tick + 1) * this.#tickMs - nowMs, () => this.#turn());
  }

  #tickAt(nowMs: number): number {
    return Math.floor(nowMs / this.#tickMs);
  }
}
