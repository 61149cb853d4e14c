// Messages that must not be lost while the other node lives: settlements of claims and ends of offers.
//
// I1  They are sent in order, over as many links to the same incarnation as it takes; another incarnation has forgotten
//     what they are about, and so do we.
// I2  At most OUTBOX_MAX wait per incarnation: beyond that the other side is out of reach for so long that its calls
//     have ended.

import type { Runtime, TimerHandle } from "@moor/runtime";
import type { RawHead } from "./peer-messages.ts";
import type { Peer } from "./transport/peer-network.ts";

/** Messages kept for one incarnation. Count. */
const OUTBOX_MAX = 10_000;

/** How often a full link is tried again. Milliseconds. */
const RETRY_MS = 20;

export class PeerOutbox {
  readonly #runtime: Runtime;
  readonly #peerOf: (incarnation: string) => Peer | undefined;
  readonly #waiting = new Map<string, RawHead[]>();
  #retry: TimerHandle | undefined;

  /** @param peerOf the link that is up to an incarnation, if any */
  constructor(runtime: Runtime, peerOf: (incarnation: string) => Peer | undefined) {
    this.#runtime = runtime;
    this.#peerOf = peerOf;
  }

  /** Sends now, or as soon as `incarnation` can take it. */
  send(incarnation: string, head: RawHead): void {
    const waiting = this.#waiting.get(incarnation);
    if (waiting === undefined && this.#peerOf(incarnation)?.send({ head }) === true) return;
    if (waiting === undefined) this.#waiting.set(incarnation, [head]);
    else if (waiting.length < OUTBOX_MAX) waiting.push(head);
    this.#scheduleRetry();
  }

  /** A link came up: what waits for that incarnation goes out. */
  flush(incarnation: string): void {
    const waiting = this.#waiting.get(incarnation);
    const peer = this.#peerOf(incarnation);
    if (waiting === undefined || peer === undefined) return;
    while (waiting.length > 0) {
      const [head] = waiting;
      if (head === undefined || !peer.send({ head })) break;
      waiting.shift();
    }
    if (waiting.length === 0) this.#waiting.delete(incarnation);
    else this.#scheduleRetry();
  }

  /** An incarnation is gone for good. */
  forget(incarnation: string): void {
    this.#waiting.delete(incarnation);
  }

  close(): void {
    this.#runtime.cancel(this.#retry);
  }

  #scheduleRetry(): void {
    this.#retry ??= this.#runtime.schedule(RETRY_MS, () => {
      this.#retry = undefined;
      for (const incarnation of this.#waiting.keys()) this.flush(incarnation);
    });
  }
}
