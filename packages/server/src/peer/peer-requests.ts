// Questions to other nodes: each is answered once, by the peer, by its link going down, or by its time being over.
//
// I1  `onReply` runs exactly once per question. I2  A reply that comes after that goes to `onLate`, since some replies
//     oblige (a granted claim must be settled).

import type { Runtime, TimerHandle } from "@moor/runtime";
import type { RawHead } from "./peer-messages.ts";
import type { Peer, PeerMessage } from "./transport/peer-network.ts";

/** A reply, or why there is none. */
export type Reply = PeerMessage | undefined;

interface OpenQuestion {
  readonly peer: Peer;
  readonly timer: TimerHandle;
  readonly onReply: (reply: Reply) => void;
}

export class PeerRequests {
  readonly #runtime: Runtime;
  readonly #open = new Map<number, OpenQuestion>();
  #next = 1;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Asks `peer`; `onReply` gets `undefined` when it cannot be asked or does not answer within `waitMs`. */
  ask(peer: Peer, message: PeerMessage, waitMs: number, onReply: (reply: Reply) => void): void {
    const n = this.#next;
    this.#next += 1;
    if (!peer.send({ ...message, head: { ...message.head, n } })) return onReply(undefined);
    const timer = this.#runtime.schedule(waitMs, () => this.#finish(n, undefined));
    this.#open.set(n, { peer, timer, onReply });
  }

  /** As `ask`, as a promise. */
  request(peer: Peer, message: PeerMessage, waitMs: number): Promise<Reply> {
    return new Promise((resolve) => this.ask(peer, message, waitMs, resolve));
  }

  /** Takes a reply; `false` if nobody waits for it any more. */
  take(peer: Peer, head: RawHead, message: PeerMessage): boolean {
    const n = head["n"];
    if (typeof n !== "number" || this.#open.get(n)?.peer !== peer) return false;
    return this.#finish(n, message);
  }

  /** A link went down: its questions stay unanswered. */
  peerDown(peer: Peer): void {
    for (const [n, question] of this.#open) if (question.peer === peer) this.#finish(n, undefined);
  }

  #finish(n: number, reply: Reply): boolean {
    const question = this.#open.get(n);
    if (question === undefined) return false;
    this.#open.delete(n);
    this.#runtime.cancel(question.timer);
    question.onReply(reply);
    return true;
  }
}
