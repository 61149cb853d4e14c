// Notes that are written to the directory later, in batches, off the path of whoever makes them.
//
// I1  A note is held until the directory has it: a failed write is tried again, and a newer note of the same key wins.
// I2  At most one write in `intervalMs`; the first after a quiet time is made at once, so that a node that is killed soon
//     afterwards still knows of it when it is back.
// I3  At most `heldMax` notes are held; more are dropped, and whoever made them will make them again.

import type { Runtime, TimerHandle } from "@moor/runtime";

/** How notes are written. */
export interface WriteBehindOptions<Item> {
  /** Writes a batch; a rejection keeps it for later. */
  readonly write: (items: readonly Item[]) => Promise<void>;
  /** Shortest time between two writes. Milliseconds. */
  readonly intervalMs: number;
  /** Most notes of one write. Count. Default: all. */
  readonly batchMax?: number;
  /** Most notes held. Count. Default: no limit. */
  readonly heldMax?: number;
  /** Called with the number of notes of a write that failed. */
  readonly onFailed: (count: number) => void;
  readonly runtime: Runtime;
}

/** Notes by key. */
export class WriteBehind<Item> {
  readonly #options: WriteBehindOptions<Item>;
  readonly #held = new Map<string, Item>();
  #underWay: ReadonlySet<string> = new Set();
  #timer: TimerHandle | undefined;
  #flushedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: WriteBehindOptions<Item>) {
    this.#options = options;
  }

  /** Holds `item`, in place of an older one of the same key. */
  note(key: string, item: Item): void {
    const { heldMax = Number.POSITIVE_INFINITY } = this.#options;
    if (this.#held.size >= heldMax && !this.#held.has(key)) return;
    this.#held.set(key, item);
    this.#flushSoon();
  }

  /** Whether a note of this key is held or being written. */
  isUnwritten(key: string): boolean {
    return this.#held.has(key) || this.#underWay.has(key);
  }

  /** Writes what is held, at most one batch of it. Never rejects. */
  async flush(): Promise<void> {
    const { runtime, write, onFailed, batchMax = Number.POSITIVE_INFINITY } = this.#options;
    runtime.cancel(this.#timer);
    this.#timer = undefined;
    const batch = [...this.#held].slice(0, batchMax);
    if (batch.length === 0) return;
    for (const [key] of batch) this.#held.delete(key);
    this.#underWay = new Set(batch.map(([key]) => key));
    this.#flushedAtMs = runtime.monotonicMs();
    try {
      await write(batch.map(([, item]) => item));
    } catch {
      onFailed(batch.length);
      for (const [key, item] of batch) if (!this.#held.has(key)) this.#held.set(key, item);
    }
    this.#underWay = new Set();
    if (this.#held.size > 0) this.#flushSoon();
  }

  /** Writes what is held once more and stops. */
  async close(): Promise<void> {
    await this.flush();
    this.#options.runtime.cancel(this.#timer);
  }

  #flushSoon(): void {
    const { runtime, intervalMs } = this.#options;
    const quietMs = runtime.monotonicMs() - this.#flushedAtMs;
    this.#timer ??= runtime.schedule(intervalMs - quietMs, () => void this.flush());
  }
}
