// A node as its clients meet it when they come back: away for a while, then it accepts dials one after the other.
//
// Spec: L15 (how long a dial waits), L24.   Pure: time is a parameter.
// I1  Dials are brought in the order in which they are made, and accepted in that order, at the accept rate.
// I2  A dial that would wait longer than DIAL_WAIT_MS is given up by its client then, and costs the node nothing.

import { DIAL_WAIT_MS } from "@moor/protocol";

/** How a dial ends: with a hello_ok at that moment, or failed. */
export interface DialEnd {
  readonly isAccepted: boolean;
  readonly atMs: number;
}

/** What an accept queue is made of. */
export interface AcceptQueueOptions {
  /** When the node begins to accept. Milliseconds. */
  readonly opensAtMs: number;
  /** Whether dials wait until then, instead of being refused. */
  readonly isQueued: boolean;
  /** Handshakes a second. More than 0. */
  readonly acceptRate: number;
}

export class AcceptQueue {
  readonly #options: AcceptQueueOptions;
  readonly #handshakeMs: number;
  /** When whoever waits now has been accepted. */
  #freeAtMs: number;

  constructor(options: AcceptQueueOptions) {
    this.#options = options;
    this.#handshakeMs = 1000 / options.acceptRate;
    this.#freeAtMs = options.opensAtMs;
  }

  /** Whether a dial at `atMs` is refused, whoever else dials. */
  isRefused(atMs: number): boolean {
    return !this.#options.isQueued && atMs < this.#options.opensAtMs;
  }

  /** A dial that is not refused. */
  dial(atMs: number): DialEnd {
    const acceptedAtMs = Math.max(atMs, this.#freeAtMs) + this.#handshakeMs;
    if (acceptedAtMs - atMs > DIAL_WAIT_MS) return { isAccepted: false, atMs: atMs + DIAL_WAIT_MS };
    this.#freeAtMs = acceptedAtMs;
    return { isAccepted: true, atMs: acceptedAtMs };
  }
}
