// What an entry holds, found by home. Most homes have one link here: it is kept bare, without a set around it.

import type { HomeId } from "@moor/protocol";

export class HomeIndex<Item extends object> {
  readonly #byHome = new Map<HomeId, Item | Set<Item>>();

  add(home: HomeId, item: Item): void {
    const held = this.#byHome.get(home);
    if (held === undefined) this.#byHome.set(home, item);
    else if (held instanceof Set) held.add(item);
    else this.#byHome.set(home, new Set([held, item]));
  }

  remove(home: HomeId, item: Item): void {
    const held = this.#byHome.get(home);
    if (held === item) this.#byHome.delete(home);
    if (!(held instanceof Set)) return;
    held.delete(item);
    if (held.size === 0) this.#byHome.delete(home);
  }

  /** The items of a home now; what is added or removed meanwhile does not disturb the caller. */
  of(home: HomeId): readonly Item[] {
    const held = this.#byHome.get(home);
    if (held === undefined) return [];
    return held instanceof Set ? [...held] : [held];
  }
}
