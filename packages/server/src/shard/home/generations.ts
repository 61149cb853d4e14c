// The generations of box links that one shard gives out.
//
// Spec: L23, L28: a generation only rises, over restarts, moves and failover, without asking the directory.
// I1  A new one is above the home's placement revision and above the start of this process, both times of the directory in
//     microseconds: so it is above whatever an earlier owner or an earlier process gave out, which counted up from an
//     earlier such time by one a link.
// I2  Within a process it is above every one seen of the home: of homes that were forgotten the highest is remembered.

/** Numbers the box links of a shard's homes. */
export class Generations {
  readonly #startRevision: () => number;
  /** Highest generation of any home that was forgotten. */
  #floor = 0;

  /** @param startRevision directory time at which this process registered, in microseconds; it may become known late */
  constructor(startRevision: () => number) {
    this.#startRevision = startRevision;
  }

  /** The next generation of a home whose highest one so far was `last` (0 = none known). */
  next(last: number, placementRevision: number): number {
    const base = Math.max(placementRevision, this.#startRevision(), this.#floor);
    return Math.max(last, base) + 1;
  }

  /** A home whose highest generation was `last` is forgotten. */
  forget(last: number): void {
    this.#floor = Math.max(this.#floor, last);
  }
}
