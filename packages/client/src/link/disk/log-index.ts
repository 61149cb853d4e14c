// What a command log knows, without the results themselves: which ids, how old, and where their results lie.
//
// Spec: L20 (≥ 24 h and ≥ 10,000 ids).   Pure.
// I1  An id is forgotten with its segment, and a segment only when it is the oldest, all of it is older than the time to
//     keep AND enough newer ids remain. I2  An id counts for the segment of its newest line.

import type { FoundLine, LogLine } from "./log-line.ts";

/** An id that is known. */
export interface IndexedCommand {
  readonly segment: number;
  readonly atMs: number;
  /** Where its result's line lies in the segment; undefined if there is none, or none any more. */
  readonly result: { readonly offset: number; readonly byteCount: number } | undefined;
}

interface SegmentFacts {
  ids: number;
  newestAtMs: number;
  bytes: number;
  resultBytes: number;
}

/** How long ids are kept. */
export interface LogRetention {
  /** Milliseconds of the log's own time. */
  readonly keepMs: number;
  /** Ids. */
  readonly keepIds: number;
}

/** The index of one log. */
export class LogIndex {
  readonly #commands = new Map<string, IndexedCommand>();
  readonly #segments = new Map<number, SegmentFacts>();

  /** Ids that are known. */
  get idCount(): number {
    return this.#commands.size;
  }

  /** Bytes of all segments. */
  get bytes(): number {
    return this.#sum((facts) => facts.bytes);
  }

  /** Bytes of the lines that hold results. */
  get resultBytes(): number {
    return this.#sum((facts) => facts.resultBytes);
  }

  get newestAtMs(): number {
    return Math.max(0, ...[...this.#segments.values()].map((facts) => facts.newestAtMs));
  }

  /** Segments, oldest first. */
  get segments(): number[] {
    return [...this.#segments.keys()].sort((a, b) => a - b);
  }

  look(id: string): IndexedCommand | undefined {
    return this.#commands.get(id);
  }

  bytesOf(segment: number): number {
    return this.#facts(segment).bytes;
  }

  resultBytesOf(segment: number): number {
    return this.#facts(segment).resultBytes;
  }

  /** Takes a line that is durable in `segment`. */
  add(segment: number, { id, atMs, resultJson, offset, byteCount }: FoundLine): void {
    this.#unlink(id);
    const facts = this.#facts(segment);
    facts.ids += 1;
    facts.newestAtMs = Math.max(facts.newestAtMs, atMs);
    facts.bytes = Math.max(facts.bytes, offset + byteCount);
    const result = resultJson === undefined ? undefined : { offset, byteCount };
    facts.resultBytes += result?.byteCount ?? 0;
    this.#commands.set(id, { segment, atMs, result });
  }

  /** Counts a segment's bytes, lines that mean nothing included. */
  setBytes(segment: number, bytes: number): void {
    this.#facts(segment).bytes = bytes;
  }

  /** What must be kept of a segment when its results are not: a line for each id that counts for it. */
  idsOf(segment: number): LogLine[] {
    const lines: LogLine[] = [];
    for (const [id, { segment: of, atMs }] of this.#commands) if (of === segment) lines.push({ id, atMs });
    return lines;
  }

  /** The oldest segment, if nothing in it need be known any more. `current` is never given. */
  expired(nowMs: number, { keepMs, keepIds }: LogRetention, current: number): number | undefined {
    const [oldest] = this.segments;
    if (oldest === undefined || oldest === current) return undefined;
    const { ids, newestAtMs } = this.#facts(oldest);
    const isOver = newestAtMs <= nowMs - keepMs && this.#commands.size - ids >= keepIds;
    return isOver ? oldest : undefined;
  }

  /** Takes note that a segment holds these ids alone now, and no results. */
  replace(segment: number, lines: readonly LogLine[], bytes: number): void {
    for (const { id, atMs } of lines) {
      // One whose newest line has come to lie elsewhere meanwhile counts for that.
      if ((this.#commands.get(id)?.segment ?? segment) > segment) continue;
      this.add(segment, { id, atMs, offset: 0, byteCount: 0 });
    }
    this.setBytes(segment, bytes);
  }

  /** Forgets a segment and the ids that count for it. */
  drop(segment: number): void {
    this.#segments.delete(segment);
    for (const [id, command] of this.#commands) if (command.segment === segment) this.#commands.delete(id);
  }

  #unlink(id: string): void {
    const before = this.#commands.get(id);
    if (before === undefined) return;
    // Deleted, so that the map stays in the order of the newest lines.
    this.#commands.delete(id);
    const facts = this.#facts(before.segment);
    facts.ids -= 1;
    facts.resultBytes -= before.result?.byteCount ?? 0;
  }

  #facts(segment: number): SegmentFacts {
    let facts = this.#segments.get(segment);
    if (facts === undefined) {
      facts = { ids: 0, newestAtMs: 0, bytes: 0, resultBytes: 0 };
      this.#segments.set(segment, facts);
    }
    return facts;
  }

  #sum(of: (facts: SegmentFacts) => number): number {
    let total = 0;
    for (const facts of this.#segments.values()) total += of(facts);
    return total;
  }
}
