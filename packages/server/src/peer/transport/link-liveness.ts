// Whether the other side still speaks: pings go out, and silence is measured.
//
// Spec: docs/protocol/peer-link.md, "Liveness".
// I1  Every byte counts as a sign of life, not only pings.
// I2  Silence is declared only when both SILENCE_MS_MAX passed and SILENT_TICKS_MIN looks in a row heard nothing: a
//     process that stood still itself looks once, and then first reads what arrived meanwhile.

import type { Runtime, TimerHandle } from "@moor/runtime";
import { LIVENESS_TICK_MS, SILENCE_MS_MAX, SILENT_TICKS_MIN, TICKS_PER_PING } from "./transport-limits.ts";

/** What liveness makes its link do. */
export interface LivenessEffects {
  ping(): void;
  dead(): void;
}

/** The watch over one link. */
export class LinkLiveness {
  readonly #runtime: Runtime;
  readonly #effects: LivenessEffects;
  #timer: TimerHandle | undefined;
  #heardAtMs = 0;
  #hasHeard = false;
  #silentTicks = 0;
  #ticks = 0;

  constructor(runtime: Runtime, effects: LivenessEffects) {
    this.#runtime = runtime;
    this.#effects = effects;
  }

  start(): void {
    this.#heardAtMs = this.#runtime.monotonicMs();
    this.#planTick();
  }

  stop(): void {
    this.#runtime.cancel(this.#timer);
    this.#timer = undefined;
  }

  /** Bytes arrived. */
  heard(): void {
    this.#hasHeard = true;
  }

  #planTick(): void {
    this.#timer = this.#runtime.schedule(LIVENESS_TICK_MS, () => this.#tick());
  }

  #tick(): void {
    const nowMs = this.#runtime.monotonicMs();
    if (this.#hasHeard) {
      this.#hasHeard = false;
      this.#heardAtMs = nowMs;
      this.#silentTicks = 0;
    } else {
      this.#silentTicks += 1;
    }
    if (this.#silentTicks >= SILENT_TICKS_MIN && nowMs - this.#heardAtMs >= SILENCE_MS_MAX) {
      this.#effects.dead();
      return;
    }
    this.#planTick();
    this.#ticks += 1;
    if (this.#ticks % TICKS_PER_PING === 0) this.#effects.ping();
  }
}
