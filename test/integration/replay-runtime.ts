// Virtual time whose random numbers are those of a vector. Runs in browsers too.

import { VirtualRuntime } from "@moor/testkit/virtual-runtime";

/** A runtime for replays. */
export class ReplayRuntime extends VirtualRuntime {
  /** What every draw gives. */
  drawn = 0;
  /** Nonces are not a vector's: they come from a seed. */
  readonly #bytes = new VirtualRuntime(7);

  override random(): number {
    return this.drawn;
  }

  override randomBytes(byteCount: number): Uint8Array {
    return this.#bytes.randomBytes(byteCount);
  }
}
