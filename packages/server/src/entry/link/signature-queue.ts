// Signatures of boxes, checked off the event loop, each client address in its turn.
//
// Spec: L25, L28. A check costs 0.1 ms; what asks for it is anybody who can say hello.
// I1  Bounded: beyond the bounds a check is refused, never kept.
// I2  Fair: of the addresses that wait, each gets one check in its turn, so that one that floods slows only itself.

/** One check: what is to be found out, and who wants to know. */
export interface SignatureCheck {
  /** Client address it is charged to. */
  readonly address: string;
  /** Called once, later, with whether the signature is good. */
  readonly done: (isValid: boolean) => void;
  /** Starts the check off this thread; `answer` is called once. */
  readonly start: (answer: (isValid: boolean) => void) => void;
}

/** Bounds of a queue. Counts. */
export interface SignatureQueueLimits {
  readonly runningMax: number;
  readonly waitingMax: number;
  readonly perAddressMax: number;
}

export class SignatureQueue {
  readonly #limits: SignatureQueueLimits;
  /** In the order of their next turn. */
  readonly #byAddress = new Map<string, SignatureCheck[]>();
  #waitingCount = 0;
  #runningCount = 0;

  constructor(limits: SignatureQueueLimits) {
    this.#limits = limits;
  }

  /** Checks that wait or run. */
  get size(): number {
    return this.#waitingCount + this.#runningCount;
  }

  /** Takes a check on; false when there is no room for it (I1). */
  submit(check: SignatureCheck): boolean {
    const { waitingMax, perAddressMax } = this.#limits;
    const own = this.#byAddress.get(check.address);
    if (this.#waitingCount >= waitingMax || (own?.length ?? 0) >= perAddressMax) return false;
    if (own === undefined) this.#byAddress.set(check.address, [check]);
    else own.push(check);
    this.#waitingCount += 1;
    this.#startMore();
    return true;
  }

  #startMore(): void {
    while (this.#runningCount < this.#limits.runningMax) {
      const check = this.#next();
      if (check === undefined) return;
      this.#runningCount += 1;
      check.start((isValid) => {
        this.#runningCount -= 1;
        this.#startMore();
        check.done(isValid);
      });
    }
  }

  #next(): SignatureCheck | undefined {
    for (const [address, checks] of this.#byAddress) {
      const check = checks.shift();
      this.#byAddress.delete(address);
      if (checks.length > 0) this.#byAddress.set(address, checks);
      this.#waitingCount -= 1;
      return check;
    }
    return undefined;
  }
}
