// Whether a live link is alive: pings, silence, and the doubt after a sleep.
//
// Spec: L32.
// I1  Any frame is life. I2  One timer at a time; a frame costs no timer. I3  A silence that was slept through is asked
//     about before it ends the link.

import { linkPingMs, linkSilenceMs, WAKE_LATE_MS, WAKE_PONG_WAIT_MS } from "@moor/protocol";
import type { Runtime, TimerHandle } from "@moor/runtime/portable";

/** What a pulse can do. */
export interface LinkPulsePorts {
  readonly runtime: Runtime;
  sendPing(): void;
  /** Called once. */
  onSilent(): void;
}

/** The pulse of one link. */
export class LinkPulse {
  readonly #ports: LinkPulsePorts;
  readonly #pingMs: number;
  readonly #silenceMs: number;
  #heardAtMs: number;
  /** Whether a ping is out since the last frame. */
  #isAsked = false;
  /** When a frame must have come after a wake; undefined while nothing is doubted. */
  #doubtEndsAtMs: number | undefined;
  #timer: TimerHandle | undefined;

  /** @param pingMs hello_ok's `ping_ms`, unclamped */
  constructor(ports: LinkPulsePorts, pingMs: number | undefined) {
    this.#ports = ports;
    this.#pingMs = linkPingMs(pingMs);
    this.#silenceMs = linkSilenceMs(pingMs);
    this.#heardAtMs = ports.runtime.monotonicMs();
    this.#schedule();
  }

  /** A frame came. */
  heard(): void {
    this.#heardAtMs = this.#ports.runtime.monotonicMs();
    this.#isAsked = false;
    this.#doubtEndsAtMs = undefined;
  }

  /** The machine slept, or is on another network: asks, and wants a frame within 5 s. */
  doubt(): void {
    if (this.#doubtEndsAtMs !== undefined) return;
    this.#doubtEndsAtMs = this.#ports.runtime.monotonicMs() + WAKE_PONG_WAIT_MS;
    this.#ask();
    this.#schedule();
  }

  stop(): void {
    this.#ports.runtime.cancel(this.#timer);
    this.#timer = undefined;
  }

  #tick(dueAtMs: number): void {
    const nowMs = this.#ports.runtime.monotonicMs();
    if (nowMs - dueAtMs >= WAKE_LATE_MS) {
      // What was to be heard meanwhile may lie in a buffer still.
      this.#doubtEndsAtMs = undefined;
      return this.doubt();
    }
    const silentMs = nowMs - this.#heardAtMs;
    const isOver =
      this.#doubtEndsAtMs === undefined ? silentMs >= this.#silenceMs : nowMs >= this.#doubtEndsAtMs;
    if (isOver) return this.#ports.onSilent();
    if (silentMs >= this.#pingMs && !this.#isAsked) this.#ask();
    this.#schedule();
  }

  #ask(): void {
    this.#isAsked = true;
    this.#ports.sendPing();
  }

  #schedule(): void {
    this.stop();
    const waitMs = this.#isAsked ? this.#silenceMs : this.#pingMs;
    const dueAtMs = this.#doubtEndsAtMs ?? this.#heardAtMs + waitMs;
    const { runtime } = this.#ports;
    this.#timer = runtime.schedule(dueAtMs - runtime.monotonicMs(), () => this.#tick(dueAtMs));
  }
}
