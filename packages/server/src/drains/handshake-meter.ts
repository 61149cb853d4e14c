// How many handshakes a second this node can accept when it does nothing else, learnt from what they cost.
//
// Spec: L24 (accept rate). A node's handshakes run on one event loop, TLS included. What one of them costs is how much
// busier that loop is while many come than it was while few came, for each that came: other work is in both.
// I1  Only windows with many verified links teach: with few, the loop was busy with something else.
// I2  A window with many handshakes that failed teaches nothing: bad hellos are work too, and nobody knows how much.
// I3  Other work explains at most half of what a window cost: what was idle before need not be so now.
// I4  The estimate never leaves RATE_MIN–RATE_MAX, whatever a clock or a stalled machine reports.

import type { Runtime } from "@moor/runtime";

/** Verified links that fill a window. Count. */
const WINDOW_COUNT_MIN = 50;

/** Shortest window: below it one garbage collection would decide. Milliseconds. */
const WINDOW_MS_MIN = 250;

/** A window that is not full by then was a calm one (I1). Milliseconds: RATE_MIN is what fills one in time. */
const WINDOW_MS_MAX = 1_000;

/** Handshakes that may fail in a window that teaches, for each verified link (I2). */
const FAILED_PER_VERIFIED_MAX = 0.25;

/** Part of a window's work that what the loop did before may explain (I3). */
const OTHER_WORK_MAX = 0.5;

/** Weight of the newest window. */
const NEWEST_WEIGHT = 0.3;

/** Work of a handshake before one was measured. Milliseconds: 1,000 links a second. */
export const HANDSHAKE_MS_AT_FIRST = 1;

/** Bounds of the accept rate. Links a second: 20 ms a handshake, and less than a signature takes. */
const RATE_MIN = 50;
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
  /** Links verified, and handshakes that ended otherwise. Counts. */
  readonly verified: number;
  readonly failed: number;
}

/** What the loop does besides storms, as the last calm window showed it. */
interface Calm {
  /** Part of the time that the loop was busy. */
  readonly busyShare: number;
  readonly verifiedPerMs: number;
}

/** Counts verified links, and handshakes that come to nothing. */
export class HandshakeMeter {
  readonly #options: HandshakeMeterOptions;
  #window: Window | undefined;
  #calm: Calm = { busyShare: 0, verifiedPerMs: 0 };
  #handshakeMs = HANDSHAKE_MS_AT_FIRST;
  #isMeasured = false;

  constructor(options: HandshakeMeterOptions) {
    this.#options = options;
  }

  /** Links a second this node can accept when it does nothing else. RATE_MIN–RATE_MAX. */
  get acceptRate(): number {
    return Math.min(RATE_MAX, Math.max(RATE_MIN, 1000 / this.#handshakeMs));
  }

  /** Whether the rate was measured, by this process or the one before; else it is the start value. */
  get isMeasured(): boolean {
    return this.#isMeasured;
  }

  /** Takes over what an earlier process of this node has measured. Nothing that was measured since is given up for it. */
  recall(acceptRate: number): void {
    if (this.#isMeasured || !(acceptRate >= RATE_MIN && acceptRate <= RATE_MAX)) return;
    this.#handshakeMs = 1000 / acceptRate;
    this.#isMeasured = true;
  }

  /** A link was verified. */
  noteVerified(): void {
    this.#note(1, 0);
  }

  /** A handshake ended without a verified link, or a dial was refused before it. */
  noteFailed(): void {
    this.#note(0, 1);
  }

  #note(verified: number, failed: number): void {
    const nowMs = this.#options.runtime.monotonicMs();
    const begun = this.#window;
    if (begun === undefined) return this.#begin(nowMs);
    const window = { ...begun, verified: begun.verified + verified, failed: begun.failed + failed };
    const tookMs = nowMs - window.startedAtMs;
    const isFull = window.verified >= WINDOW_COUNT_MIN && tookMs >= WINDOW_MS_MIN;
    if (!isFull && tookMs <= WINDOW_MS_MAX) {
      this.#window = window;
      return;
    }
    this.#judge(window, tookMs);
    this.#begin(nowMs);
  }

  #begin(nowMs: number): void {
    this.#window = { startedAtMs: nowMs, busyAtMs: this.#options.busyMs(), verified: 0, failed: 0 };
  }

  #judge({ busyAtMs, verified, failed }: Window, tookMs: number): void {
    if (failed > Math.max(WINDOW_COUNT_MIN, verified) * FAILED_PER_VERIFIED_MAX) return;
    const busyMs = Math.min(tookMs, this.#options.busyMs() - busyAtMs);
    if (verified < WINDOW_COUNT_MIN) {
      this.#calm = { busyShare: busyMs / tookMs, verifiedPerMs: verified / tookMs };
      return;
    }
    // A burst and the quiet after it: neither.
    if (tookMs > WINDOW_MS_MAX) return;
    const { busyShare, verifiedPerMs } = this.#calm;
    const moreMs = busyMs - busyShare * tookMs;
    const moreVerified = verified - verifiedPerMs * tookMs;
    this.#learn(Math.max(moreMs / moreVerified, (OTHER_WORK_MAX * busyMs) / verified));
  }

  #learn(handshakeMs: number): void {
    const weight = this.#isMeasured ? NEWEST_WEIGHT : 1;
    this.#handshakeMs = Math.max(0, this.#handshakeMs + weight * (handshakeMs - this.#handshakeMs));
    this.#isMeasured = true;
  }
}
