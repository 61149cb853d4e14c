// Allowances by key (a home, a client address): each key may do so much at once, and more as time passes.
//
// Spec: L25.   Pure: time comes in.
// I1  Memory is bounded: keys whose allowance is whole again are forgotten, and beyond a bound the oldest.
// I2  So is time: making room looks at every key, so it makes room for many.

/** Part of the keys that is left when room is made, at most. */
const KEPT_PART = 7 / 8;

/** How much of something is allowed. */
export interface Allowance {
  /** What may be taken at once after a pause. */
  readonly capacity: number;
  /** What comes back each second. */
  readonly perS: number;
}

interface Bucket {
  level: number;
  atMs: number;
}

export class RateBuckets<Key> {
  readonly #allowance: Allowance;
  readonly #keysMax: number;
  readonly #buckets = new Map<Key, Bucket>();

  constructor(allowance: Allowance, keysMax: number) {
    this.#allowance = allowance;
    this.#keysMax = keysMax;
  }

  /** Takes one; 0 when it was there, else how many milliseconds until it will be. */
  take(key: Key, nowMs: number): number {
    const { perS } = this.#allowance;
    const bucket = this.#bucketOf(key, nowMs);
    bucket.level = refilled(bucket.level, nowMs - bucket.atMs, this.#allowance);
    bucket.atMs = nowMs;
    if (bucket.level < 1) return Math.ceil(((1 - bucket.level) / perS) * 1000);
    bucket.level -= 1;
    return 0;
  }

  get size(): number {
    return this.#buckets.size;
  }

  #bucketOf(key: Key, nowMs: number): Bucket {
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      if (this.#buckets.size >= this.#keysMax) this.#makeRoom(nowMs);
      bucket = { level: this.#allowance.capacity, atMs: nowMs };
      this.#buckets.set(key, bucket);
    }
    return bucket;
  }

  #makeRoom(nowMs: number): void {
    for (const [key, { level, atMs }] of this.#buckets) {
      if (refilled(level, nowMs - atMs, this.#allowance) >= this.#allowance.capacity)
        this.#buckets.delete(key);
    }
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size <= this.#keysMax * KEPT_PART) return;
      this.#buckets.delete(oldest);
    }
  }
}

/** A level after `elapsedMs` milliseconds of refill. */
export function refilled(level: number, elapsedMs: number, { capacity, perS }: Allowance): number {
  return Math.min(capacity, level + (Math.max(0, elapsedMs) * perS) / 1000);
}
