// The links whose handshake is not finished, and how many of them each client address has.
//
// Spec: L25. What is counted per address is unfinished work: a fleet that comes back quickly passes through.

import type { Gauge } from "prom-client";
import { HANDSHAKES_MAX, HANDSHAKES_PER_ADDRESS_MAX } from "./link-limits.ts";
import type { LinkSession } from "./link-session.ts";

export class HandshakingLinks {
  readonly #sessions = new Set<LinkSession>();
  readonly #byAddress = new Map<string, number>();
  readonly #gauge: Pick<Gauge, "set">;

  constructor(gauge: Pick<Gauge, "set">) {
    this.#gauge = gauge;
  }

  /** Whether one more of `address` may begin. */
  hasRoomFor(address: string): boolean {
    const own = this.#byAddress.get(address) ?? 0;
    return this.#sessions.size < HANDSHAKES_MAX && own < HANDSHAKES_PER_ADDRESS_MAX;
  }

  add(session: LinkSession): void {
    this.#sessions.add(session);
    this.#byAddress.set(session.address, (this.#byAddress.get(session.address) ?? 0) + 1);
    this.#gauge.set(this.#sessions.size);
  }

  remove(session: LinkSession): void {
    if (!this.#sessions.delete(session)) return;
    const left = (this.#byAddress.get(session.address) ?? 1) - 1;
    if (left > 0) this.#byAddress.set(session.address, left);
    else this.#byAddress.delete(session.address);
    this.#gauge.set(this.#sessions.size);
  }

  /** Those that wait now; what ends meanwhile does not disturb the caller. */
  all(): readonly LinkSession[] {
    return [...this.#sessions];
  }
}
