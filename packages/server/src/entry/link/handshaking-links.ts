// The links whose handshake is not finished, and how many of them each client address has.
//
// Spec: L25. What is counted per address is unfinished work: a fleet that comes back quickly passes through.
// I1  A link is given back to the address it was charged to, whatever its session says by then.

import type { Gauge } from "prom-client";
import { HANDSHAKES_MAX, HANDSHAKES_PER_ADDRESS_MAX } from "./link-limits.ts";
import type { LinkSession } from "./link-session.ts";

export class HandshakingLinks {
  /** Each with the address it is charged to. */
  readonly #sessions = new Map<LinkSession, string>();
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
    const { address } = session;
    this.#sessions.set(session, address);
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1);
    this.#gauge.set(this.#sessions.size);
  }

  remove(session: LinkSession): void {
    const address = this.#sessions.get(session);
    if (address === undefined) return;
    this.#sessions.delete(session);
    const left = (this.#byAddress.get(address) ?? 1) - 1;
    if (left > 0) this.#byAddress.set(address, left);
    else this.#byAddress.delete(address);
    this.#gauge.set(this.#sessions.size);
  }

  /** Those that wait now. One may end while they are gone through. */
  all(): Iterable<LinkSession> {
    return this.#sessions.keys();
  }
}
