// How many bytes of bodies a node holds at once: a flood ends in 503, not in a dead process.

/** A counter with a ceiling. */
export class ByteBudget {
  readonly #bytesMax: number;
  #heldBytes = 0;

  /** @param bytesMax ceiling in bytes */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * Takes `byteCount` bytes, or nothing and `false` when they do not fit.
   *
   * @param share of the ceiling, up to which they may fill it: the rest is for what matters more. 0–1, default 1
   */
  tryReserve(byteCount: number, share = 1): boolean {
    if (this.#heldBytes + byteCount > this.#bytesMax * share) return false;
    this.#heldBytes += byteCount;
    return true;
  }

  /** Gives back what `tryReserve` took. */
  release(byteCount: number): void {
    this.#heldBytes -= byteCount;
  }
}
