// The revision at which this process started: what it numbers above it is above all that earlier ones numbered.
//
// Spec: L23, R22. Revisions are the directory's time in microseconds.
// I1  It never falls within a process, whatever the registration brings.

import type { Runtime } from "@moor/runtime";

const MICROSECONDS_PER_MS = 1_000;

export class StartRevision {
  readonly #unregistered: number;
  #wasUsed = false;
  #registered: number | undefined;

  /** @param lastKnown of an earlier start of this node, as its replica has it: good until it can register */
  constructor(lastKnown: number, runtime: Pick<Runtime, "wallMs">) {
    this.#unregistered = Math.max(lastKnown, runtime.wallMs() * MICROSECONDS_PER_MS);
  }

  /** The directory has registered this start. */
  register(startRevision: number): void {
    this.#registered = this.#wasUsed ? Math.max(startRevision, this.#unregistered) : startRevision;
  }

  get(): number {
    if (this.#registered !== undefined) return this.#registered;
    this.#wasUsed = true;
    return this.#unregistered;
  }
}
