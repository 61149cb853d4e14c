// The newest snapshot that a home's box sent.
//
// Spec: L31 (`now`), L34. Kept over box links; gone with the home, or NOW_KEPT_MS after it came.
// I1  One that does not fit the node's budget replaces nothing: there is then none, rather than an old one with a new age.

import { createHash } from "node:crypto";
import type { ByteBudget } from "../../entry/byte-budget.ts";
import type { NowOutcome } from "../../peer/link-ports.ts";
import { HOME_SNAPSHOTS_SHARE, NOW_KEPT_MS } from "../../server-limits.ts";

/** Characters of a tag: 96 bits of SHA-256. */
const ETAG_CHARS = 16;

interface Kept {
  readonly data: string;
  readonly bytes: number;
  readonly atMs: number;
  etag: string | undefined;
}

/** The snapshot of one home. Instants are the shard's monotonic milliseconds. */
export class NowSnapshot {
  readonly #budget: ByteBudget;
  #kept: Kept | undefined;

  constructor(budget: ByteBudget) {
    this.#budget = budget;
  }

  /** Takes a newer one: raw JSON. */
  set(data: string, nowMs: number): void {
    this.clear();
    const bytes = Buffer.byteLength(data);
    if (!this.#budget.tryReserve(bytes, HOME_SNAPSHOTS_SHARE)) return;
    this.#kept = { data, bytes, atMs: nowMs, etag: undefined };
  }

  read(nowMs: number): Exclude<NowOutcome, { readonly kind: "not-owner" }> {
    const kept = this.#kept;
    if (kept === undefined || isOver(kept, nowMs)) return { kind: "none" };
    kept.etag ??= createHash("sha256").update(kept.data).digest("base64url").slice(0, ETAG_CHARS);
    return { kind: "snapshot", data: kept.data, ageMs: nowMs - kept.atMs, etag: kept.etag };
  }

  /** Whether there is none that anybody could still get. */
  isIdle(nowMs: number): boolean {
    return this.#kept === undefined || isOver(this.#kept, nowMs);
  }

  clear(): void {
    if (this.#kept !== undefined) this.#budget.release(this.#kept.bytes);
    this.#kept = undefined;
  }
}

function isOver(kept: Kept, nowMs: number): boolean {
  return nowMs - kept.atMs >= NOW_KEPT_MS;
}
