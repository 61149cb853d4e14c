// Whether a home's box is linked, as apps are told: online, offline, or unknown for a bounded time.
//
// Spec: L31; L24 (a restart is not a loss).
// unknown: the shard has just started or gained the home, or the box was told to come back, or its entry is out of reach.
// I1  unknown ends by itself: `lapsed` is called once when its time is over.
// I2  A change of the time alone is no change of presence: `sinceMs` counts from the last change of what apps see.

import type { Runtime, TimerHandle } from "@moor/runtime";
import type { Presence } from "../../peer/link-ports.ts";

export interface BoxPresenceOptions {
  readonly runtime: Runtime;
  /** What apps see has changed. */
  readonly changed: () => void;
  /** The box did not come within its time: it is offline now. Called after `changed`. */
  readonly lapsed: () => void;
}

/** Presence of one home's box. Instants are the shard's monotonic milliseconds. */
export class BoxPresence {
  readonly #options: BoxPresenceOptions;
  #box: Presence["box"] = "unknown";
  #sinceAtMs: number;
  #timer: TimerHandle | undefined;

  /** @param first since when the box has been waited for, and until when: if that is over, it has been offline since */
  constructor(
    options: BoxPresenceOptions,
    first: { readonly sinceMs: number; readonly expectedUntilMs: number },
  ) {
    this.#options = options;
    this.#sinceAtMs = first.sinceMs;
    const holdMs = first.expectedUntilMs - options.runtime.monotonicMs();
    if (holdMs > 0) this.#wait(holdMs);
    else {
      this.#box = "offline";
      this.#sinceAtMs = first.expectedUntilMs;
    }
  }

  get box(): Presence["box"] {
    return this.#box;
  }

  /** What an app is told now. */
  get(): Presence {
    const ageMs = this.#options.runtime.monotonicMs() - this.#sinceAtMs;
    return { box: this.#box, sinceMs: Math.max(0, Math.round(ageMs)) };
  }

  /** The box is linked. */
  online(): void {
    this.#options.runtime.cancel(this.#timer);
    this.#become("online");
  }

  /** The box is not linked. */
  offline(): void {
    this.#options.runtime.cancel(this.#timer);
    this.#become("offline");
  }

  /** The box may come within `holdMs`. */
  unknown(holdMs: number): void {
    this.#wait(holdMs);
    this.#become("unknown");
  }

  close(): void {
    this.#options.runtime.cancel(this.#timer);
  }

  #wait(holdMs: number): void {
    const { runtime, lapsed } = this.#options;
    runtime.cancel(this.#timer);
    this.#timer = runtime.schedule(holdMs, () => {
      this.#become("offline");
      lapsed();
    });
  }

  #become(box: Presence["box"]): void {
    if (this.#box === box) return;
    this.#box = box;
    this.#sinceAtMs = this.#options.runtime.monotonicMs();
    this.#options.changed();
  }
}
