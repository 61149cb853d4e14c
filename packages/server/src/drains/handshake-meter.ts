// How many links a second this node can take in, learnt from what its handshakes cost.
//
// Spec: L24 (accept rate). A node's handshakes run on one event loop, TLS included: the time that loop was busy in a
// window, divided by the links verified in it, is what one costs at most, since other work is counted along.
// I1  Only windows with many handshakes teach: with few, the loop was busy with something else.
// I2  The estimate never leaves RATE_MIN–RATE_MAX, whatever a clock or a stalled machine reports.

import type { Runtime } from "@moor/runtime";

/** Handshakes that close a window. Count. */
const WINDOW_COUNT_MIN = 50;

/** Shortest window: below it one garbage collection would decide. Milliseconds. */
const WINDOW_MS_MIN = 250;

/** A window that took longer teaches nothing (I1): under 10 handshakes a second. Milliseconds. */
const WINDOW_MS_MAX = 5_000;

/** Weight of the newest window. */
const NEWEST_WEIGHT = 0.3;

/** Part of the event loop that a storm of handshakes may take; the rest is for links that live and for calls. */
export const ACCEPT_HEADROOM = 0.5;

/** Work of a handshake before one was measured. Milliseconds: with the headroom 500 links a second. */
export const HANDSHAKE_MS_AT_FIRST = 1;

/** Bounds of the accept rate. Links a second. */
const RATE_MIN = 20;
const RATE_MAX = 20_000;

/** What a meter reads. */
export interface HandshakeMeterOptions {
  readonly runtime: Pick<Runtime, "monotonicMs">;
  /** Time this thread's event loop was busy since some start. Milliseconds, never falling. */
  readonly busyMs: () => number;
}

interface Window {
  readonly startedAtMs: number;
  readonly busyAtMs: number;
  readonly count: number;
}

/** Counts verified links. */
export class HandshakeMeter {
  readonly #options: HandshakeMeterOptions;
  #window: Window | undefined;
  #handshakeMs = HANDSHAKE_MS_AT_FIRST;
  #isMeasured = false;

  constructor(options: HandshakeMeterOptions) {
    this.#options = options;
  }

  /** Links a second this node should be asked to take in. */
  get acceptRate(): number {
    return Math.min(RATE_MAX, Math.max(RATE_MIN, (ACCEPT_HEADROOM * 1000) / this.#handshakeMs));
  }

  /** Whether the rate was measured, by this process or the one before; else it is the start value. */
  get isMeasured(): boolean {
    return this.#isMeasured;
  }

  /** Takes over what an earlier process of this node has measured. Nothing that was measured since is given up for it. */
  recall(acceptRate: number): void {
    if (this.#isMeasured || !(acceptRate >= RATE_MIN && acceptRate <= RATE_MAX)) return;
    this.#handshakeMs = (ACCEPT_HEADROOM * 1000) / acceptRate;
    this.#isMeasured = true;
  }

  /** A link was verified. */
  noteHandshake(): void {
    const nowMs = this.#options.runtime.monotonicMs();
    const window = this.#window;
    if (window === undefined || nowMs - window.startedAtMs > WINDOW_MS_MAX) return this.#begin(nowMs);
    const count = window.count + 1;
    const tookMs = nowMs - window.startedAtMs;
    if (count < WINDOW_COUNT_MIN || tookMs < WINDOW_MS_MIN) {
      this.#window = { ...window, count };
      return;
    }
    const busyMs = Math.min(tookMs, this.#options.busyMs() - window.busyAtMs);
    this.#learn(busyMs / count);
    this.#begin(nowMs);
  }

  #begin(nowMs: number): void {
    this.#window = { startedAtMs: nowMs, busyAtMs: this.#options.busyMs(), count: 0 };
  }

  #learn(handshakeMs: number): void {
    const weight = this.#isMeasured ? NEWEST_WEIGHT : 1;
    this.#handshakeMs = Math.max(0, this.#handshakeMs + weight * (handshakeMs - this.#handshakeMs));
    this.#isMeasured = true;
  }
}
