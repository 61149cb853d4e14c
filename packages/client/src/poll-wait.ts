// The wait a poll asks for: as configured, or less while something on the way cuts polls before their time.
//
// Spec: T17 (a poll cut short by a proxy lowers the asked wait, not under 5 s).   Pure.
// I1  Never above the configured wait; under 5 s only if that was configured.

import { POLL_WAIT_MS_MIN } from "@moor/protocol";
import type { PollFailure } from "./poll-client.ts";

/** Polls that last their whole wait before the configured wait is tried again: a cut may have been a passing fault. */
const FULL_POLLS_BEFORE_RAISE = 100;

/** What of the time a cut poll lasted is asked for next. */
const SHARE_OF_CUT = 0.8;

/** Statuses a gateway answers with when it is tired of waiting. */
const GATEWAY_STATUSES: ReadonlySet<number> = new Set([408, 502, 504]);

/** One agent's asked wait. */
export class PollWait {
  readonly #configuredMs: number;
  #currentMs: number;
  #fullPolls = 0;

  /** @param configuredMs the wait to ask for when nothing interferes, milliseconds */
  constructor(configuredMs: number) {
    this.#configuredMs = configuredMs;
    this.#currentMs = configuredMs;
  }

  /** Milliseconds. */
  get currentMs(): number {
    return this.#currentMs;
  }

  /** @param heldMs how long the poll lasted, milliseconds */
  afterSuccess(heldMs: number): void {
    if (this.#currentMs === this.#configuredMs || heldMs < this.#currentMs) return;
    this.#fullPolls += 1;
    if (this.#fullPolls >= FULL_POLLS_BEFORE_RAISE) this.#set(this.#configuredMs);
  }

  /**
   * @param heldMs how long the poll lasted, milliseconds
   * @param askedMs the wait it had asked for, milliseconds
   */
  afterFailure({ fault, status }: PollFailure, heldMs: number, askedMs: number): void {
    const isCut = fault === "reset" || (status !== undefined && GATEWAY_STATUSES.has(status));
    if (!isCut || heldMs < POLL_WAIT_MS_MIN || heldMs >= askedMs) return;
    const loweredMs = Math.max(POLL_WAIT_MS_MIN, Math.floor(heldMs * SHARE_OF_CUT));
    this.#set(Math.min(this.#currentMs, loweredMs));
  }

  #set(waitMs: number): void {
    this.#currentMs = waitMs;
    this.#fullPolls = 0;
  }
}
