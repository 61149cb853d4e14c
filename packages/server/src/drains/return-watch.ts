// Counts who came back after a drain: here, elsewhere, or never.
//
// Spec: L24; design "Drains and restarts" (report).
// I1  Every noted client is counted once: the first link it has again decides.
// I2  Times are counted from the first close of the drain, on the wall clock of its start and the monotonic one from then
//     on: they lie in two processes.

import type { Runtime } from "@moor/runtime";
import type { DrainNote } from "./drain-note.ts";
import { markOf } from "./drain-note.ts";
import type { LinkedClient } from "./link-drain-port.ts";

/** How long after the end of the spread somebody who is missing is waited for. Milliseconds: the longest backoff. */
export const MISSING_MS = 60_000;

/** What became of the clients of a drain. Counts, and milliseconds since its first close. */
export interface ReturnCounts {
  /** Clients the note tells of. */
  readonly noted: number;
  readonly back: number;
  /** Of these: before the last wave's spread was over. */
  readonly backWithinSpread: number;
  /** Linked to another node. */
  readonly elsewhere: number;
  /** Not seen until now. */
  readonly missing: number;
  /** Of those that are back here; undefined when nobody is. */
  readonly p50Ms: number | undefined;
  readonly p95Ms: number | undefined;
  readonly maxMs: number | undefined;
}

/** A watch over one drain. */
export class ReturnWatch {
  readonly note: DrainNote;
  readonly #runtime: Pick<Runtime, "monotonicMs">;
  /** The drain's first close, on the monotonic clock of this process. */
  readonly #startedAtMs: number;
  /** Clients not seen yet, by mark: the same app may have had several links. */
  readonly #missing = new Map<string, number>();
  readonly #backMs: number[] = [];
  #elsewhere: number;

  constructor(note: DrainNote, runtime: Pick<Runtime, "monotonicMs" | "wallMs">) {
    this.note = note;
    this.#runtime = runtime;
    this.#startedAtMs = runtime.monotonicMs() - Math.max(0, runtime.wallMs() - note.startedAtMs);
    for (const mark of note.marks) this.#missing.set(mark, (this.#missing.get(mark) ?? 0) + 1);
    this.#elsewhere = note.elsewhere;
  }

  /** A client is linked again. */
  came(client: LinkedClient, where: "here" | "elsewhere"): void {
    this.#take(markOf(this.note.salt, client), where);
  }

  /** Clients with these marks are linked to another node. */
  seenElsewhere(marks: readonly string[]): void {
    for (const mark of marks) this.#take(mark, "elsewhere");
  }

  /** Whether nobody is missing. */
  get isComplete(): boolean {
    return this.#missing.size === 0;
  }

  /** How long somebody who is missing is still waited for. Milliseconds, 0 when that is over. */
  get remainingMs(): number {
    return Math.max(0, this.note.endMs + MISSING_MS - this.#sinceStartMs());
  }

  /** Time in which clients that do as they are told still come back. Milliseconds, 0 when it is over. */
  get spreadLeftMs(): number {
    return Math.max(0, this.note.endMs - this.#sinceStartMs());
  }

  /** Marks of those not seen yet. */
  missingMarks(): string[] {
    return [...this.#missing].flatMap(([mark, count]) => Array<string>(count).fill(mark));
  }

  counts(): ReturnCounts {
    const { endMs, marks, elsewhere } = this.note;
    const sorted = this.#backMs.toSorted((one, other) => one - other);
    const quantile = (part: number) => sorted[Math.ceil(part * sorted.length) - 1];
    return {
      noted: marks.length + elsewhere,
      back: sorted.length,
      backWithinSpread: sorted.filter((ms) => ms <= endMs).length,
      elsewhere: this.#elsewhere,
      missing: this.missingMarks().length,
      p50Ms: quantile(0.5),
      p95Ms: quantile(0.95),
      maxMs: sorted.at(-1),
    };
  }

  #take(mark: string, where: "here" | "elsewhere"): void {
    const left = this.#missing.get(mark);
    if (left === undefined) return;
    if (left > 1) this.#missing.set(mark, left - 1);
    else this.#missing.delete(mark);
    if (where === "here") this.#backMs.push(this.#sinceStartMs());
    else this.#elsewhere += 1;
  }

  #sinceStartMs(): number {
    return this.#runtime.monotonicMs() - this.#startedAtMs;
  }
}
