// Messages that must not be lost while the other node lives: settlements of claims, ends of offers, endings of commands.
//
// I1  They are sent in order, over as many links to the same incarnation as it takes; another incarnation has forgotten
//     what they are about, and so do we.
// I2  At most OUTBOX_MAX messages and OUTBOX_BYTES_MAX of payload wait per incarnation: beyond that the other side is out
//     of reach for so long that its calls have ended.
// I3  Nothing overtakes what waits: `trySend` sends only when nothing does.

import type { Runtime, TimerHandle } from "@moor/runtime";
import type { Peer, PeerMessage } from "./transport/peer-network.ts";

/** Messages kept for one incarnation. Count. */
const OUTBOX_MAX = 10_000;

/** Bytes of payload kept for one incarnation. Bytes, 8 MiB: a hundred of the largest results. */
const OUTBOX_BYTES_MAX = 8 * 1024 * 1024;

/** How often a full link is tried again. Milliseconds. */
const RETRY_MS = 20;

interface Waiting {
  readonly messages: PeerMessage[];
  payloadBytes: number;
}

export class PeerOutbox {
  readonly #runtime: Runtime;
  readonly #peerOf: (incarnation: string) => Peer | undefined;
  readonly #waiting = new Map<string, Waiting>();
  #retry: TimerHandle | undefined;

  /** @param peerOf the link that is up to an incarnation, if any */
  constructor(runtime: Runtime, peerOf: (incarnation: string) => Peer | undefined) {
    this.#runtime = runtime;
    this.#peerOf = peerOf;
  }

  /** Sends now, or as soon as `incarnation` can take it. */
  send(incarnation: string, message: PeerMessage): void {
    if (this.trySend(incarnation, message)) return;
    this.#keep(incarnation, message);
    this.#scheduleRetry();
  }

  /** Sends now or not at all; whether it was sent. */
  trySend(incarnation: string, message: PeerMessage): boolean {
    return !this.#waiting.has(incarnation) && this.#peerOf(incarnation)?.send(message) === true;
  }

  /** A link came up: what waits for that incarnation goes out. */
  flush(incarnation: string): void {
    const waiting = this.#waiting.get(incarnation);
    const peer = this.#peerOf(incarnation);
    if (waiting === undefined || peer === undefined) return;
    const { messages } = waiting;
    while (messages.length > 0) {
      const [message] = messages;
      if (message === undefined || !peer.send(message)) break;
      messages.shift();
      waiting.payloadBytes -= payloadBytesOf(message);
    }
    if (messages.length === 0) this.#waiting.delete(incarnation);
    else this.#scheduleRetry();
  }

  /** An incarnation is gone for good. */
  forget(incarnation: string): void {
    this.#waiting.delete(incarnation);
  }

  close(): void {
    this.#runtime.cancel(this.#retry);
  }

  #keep(incarnation: string, message: PeerMessage): void {
    let waiting = this.#waiting.get(incarnation);
    if (waiting === undefined) {
      waiting = { messages: [], payloadBytes: 0 };
      this.#waiting.set(incarnation, waiting);
    }
    const payloadBytes = waiting.payloadBytes + payloadBytesOf(message);
    if (waiting.messages.length >= OUTBOX_MAX || payloadBytes > OUTBOX_BYTES_MAX) return;
    waiting.messages.push(message);
    waiting.payloadBytes = payloadBytes;
  }

  #scheduleRetry(): void {
    this.#retry ??= this.#runtime.schedule(RETRY_MS, () => {
      this.#retry = undefined;
      for (const incarnation of this.#waiting.keys()) this.flush(incarnation);
    });
  }
}

function payloadBytesOf({ payload }: PeerMessage): number {
  return payload?.byteLength ?? 0;
}
