// Things that arrive and are taken one by one, in order: what a test waits for instead of sleeping.
//
// I1  What came before it is asked for is not lost.

import { within } from "./within.ts";

/** A queue that can be waited for. */
export class Inbox<Item> {
  readonly #what: string;
  readonly #items: Item[] = [];
  readonly #takers: ((item: Item) => void)[] = [];

  /** @param what an item is, for the error of a wait that is in vain */
  constructor(what: string) {
    this.#what = what;
  }

  /** Items that nobody has taken. */
  get size(): number {
    return this.#items.length;
  }

  put(item: Item): void {
    const taker = this.#takers.shift();
    if (taker === undefined) this.#items.push(item);
    else taker(item);
  }

  /** The next item, there or to come. Rejects after the deadline, milliseconds. */
  take(deadlineMs?: number): Promise<Item> {
    if (this.#items.length > 0) return Promise.resolve(this.#items.shift() as Item);
    return within(new Promise<Item>((resolve) => this.#takers.push(resolve)), this.#what, deadlineMs);
  }
}
