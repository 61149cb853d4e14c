// This node and one other: connections between the two, of which at most one is the link.
//
// Spec: docs/protocol/peer-link.md, "One link per pair".
// I1  The node with the smaller id decides; the other takes the link that it is given. So both always mean the same one.
// I2  A newer connection replaces the link only when the other process is another one (its incarnation differs), or when
//     it stays: a side that has the link itself drops its other connections.
// I3  `down` of the old link is told before `up` of the new one.

import type { Runtime, TimerHandle } from "@moor/runtime";
import type { LinkCore } from "./link-core.ts";
import { DUPLICATE_WAIT_MS } from "./transport-limits.ts";

/** What a pair tells its network. */
export interface PairEffects {
  up(link: LinkCore): void;
  down(link: LinkCore): void;
  /** There is no link and nothing on the way that could become one: dial. */
  linkless(): void;
}

/** Connections between this node and one other. */
export class PeerPair {
  readonly #runtime: Runtime;
  readonly #effects: PairEffects;
  readonly #isDeciding: boolean;
  #link: LinkCore | undefined;
  /** The link whose `up` was told and whose `down` was not. */
  #announced: LinkCore | undefined;
  #isClosing = false;
  /** Not up, and not closed. */
  readonly #candidates = new Map<LinkCore, TimerHandle | undefined>();

  /** @param isDeciding whether this node's id is the smaller one */
  constructor(isDeciding: boolean, runtime: Runtime, effects: PairEffects) {
    this.#isDeciding = isDeciding;
    this.#runtime = runtime;
    this.#effects = effects;
  }

  /** The link that is up. */
  get link(): LinkCore | undefined {
    return this.#link;
  }

  /** A connection that may become the link: dialled, or accepted and claimed. */
  add(link: LinkCore): void {
    this.#candidates.set(link, undefined);
  }

  /** Both sides of a connection know each other. */
  introduced(link: LinkCore): void {
    if (!this.#isDeciding) return;
    const current = this.#link;
    if (current === undefined || current.incarnation !== link.incarnation) return this.#decideFor(link);
    // The other side may not have seen yet that the link is up: then it closes this connection itself. If not, it has
    // lost the link, and this side will hear of that later or never.
    const timer = this.#runtime.schedule(DUPLICATE_WAIT_MS, () => this.#decideFor(link));
    this.#candidates.set(link, timer);
  }

  /** The deciding side, which is the other one, chose this connection. */
  confirmed(link: LinkCore): void {
    this.#adopt(link);
  }

  /** A connection of this pair has closed. */
  closed(link: LinkCore): void {
    this.#forget(link);
    const wasLink = link === this.#link;
    if (wasLink) this.#link = undefined;
    if (link === this.#announced) {
      this.#announced = undefined;
      this.#effects.down(link);
    }
    if (this.#isClosing) return;
    if (wasLink) this.#decideForWaiting();
    if (this.#link === undefined && this.#candidates.size === 0) this.#effects.linkless();
  }

  /** Closes everything, for good. */
  close(end: "unlisted" | "leaving"): void {
    this.#isClosing = true;
    for (const link of this.#candidates.keys()) link.close(end);
    this.#link?.close(end);
  }

  #decideFor(link: LinkCore): void {
    link.confirm();
    if (link.isUp) this.#adopt(link);
  }

  #adopt(link: LinkCore): void {
    this.#forget(link);
    const previous = this.#link;
    this.#link = link;
    previous?.close("replaced"); // `closed` tells its end
    for (const other of this.#candidates.keys()) other.close("duplicate");
    if (link !== this.#link) return;
    this.#announced = link;
    this.#effects.up(link);
  }

  /** The link is gone: a connection that waited for this takes its place. */
  #decideForWaiting(): void {
    if (!this.#isDeciding) return;
    for (const [link, timer] of this.#candidates) {
      if (timer !== undefined) return this.#decideFor(link);
    }
  }

  #forget(link: LinkCore): void {
    this.#runtime.cancel(this.#candidates.get(link));
    this.#candidates.delete(link);
  }
}
