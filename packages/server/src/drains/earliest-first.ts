// What is to come, earliest first: a binary heap.

interface Entry<Item> {
  readonly atMs: number;
  readonly item: Item;
}

export class EarliestFirst<Item> {
  readonly #heap: Entry<Item>[] = [];

  add(atMs: number, item: Item): void {
    const heap = this.#heap;
    const entry = { atMs, item };
    let at = heap.length;
    for (;;) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || parent.atMs <= atMs) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = entry;
  }

  /** Takes the earliest one out; undefined when there is none. */
  take(): Entry<Item> | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const below =
        (heap[left + 1]?.atMs ?? Number.POSITIVE_INFINITY) < (heap[left]?.atMs ?? 0) ? left + 1 : left;
      const child = heap[below];
      if (child === undefined || child.atMs >= last.atMs) break;
      heap[at] = child;
      at = below;
    }
    heap[at] = last;
    return first;
  }
}
