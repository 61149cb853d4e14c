// A box's command log on disk: append-only segments `FILE.HOME.00000001`, … of JSON lines.
//
// Spec: L20.
// I1  Nothing is told begun or ended before its line is durable. I2  What cannot be read or written makes the box refuse
//     to act, and is tried again with the next command; it never ends a link.
// I3  Bounded: results beyond `resultBytesMax` are dropped, oldest first, their ids kept; at `idsMax` ids that must still
//     be known no further command is begun.

import { basename, dirname, resolve } from "node:path";
import type { Runtime } from "@moor/runtime";
import type { CommandLog, LoggedCommand } from "../command-log.ts";
import { nodeDisk, type Disk } from "./disk.ts";
import { LogIndex } from "./log-index.ts";
import { parseLogLine, readLogLines } from "./log-line.ts";
import { lockLog, type LogLock } from "./log-lock.ts";
import { LogWriter, rewriteSegment } from "./log-writer.ts";

/** Sizes of a log. */
export interface CommandLogLimits {
  /** Time for which an id is known at least, milliseconds for which the log is open. Default 24 h. Spec L20. */
  readonly keepMs: number;
  /** Further ids for which an id is known at least. Default 10,000. Spec L20. */
  readonly keepIds: number;
  /** Ids that are known at most: 11 commands a second for 24 h, some 100 MB of memory. Default 1,000,000. */
  readonly idsMax: number;
  /** Bytes of results kept on disk at most, but for the newest segment's. Default 32 MiB. */
  readonly resultBytesMax: number;
  /** Size at which a segment is full, bytes. Default 4 MiB. */
  readonly segmentBytes: number;
}

/** What a log is opened with. */
export interface FileCommandLogOptions {
  /** Path that its segments' names begin with; its folder must exist. */
  readonly path: string;
  readonly home: string;
  readonly runtime: Pick<Runtime, "monotonicMs">;
  /** Hears once of each run of failures, and once of lines that could not be read. Default: nobody. */
  readonly onWarning?: (warning: CommandLogWarning) => void;
  readonly disk?: Disk;
  readonly limits?: Partial<CommandLogLimits>;
}

/** What goes wrong with a log: it cannot be used; it is full; some of its lines are not sound. */
export type CommandLogWarning = "log-unusable" | "log-full" | "log-damaged";

const LIMITS_DEFAULT: CommandLogLimits = {
  keepMs: 24 * 60 * 60 * 1_000,
  keepIds: 10_000,
  idsMax: 1_000_000,
  resultBytesMax: 32 * 1024 * 1024,
  segmentBytes: 4 * 1024 * 1024,
};
const COMMIT_BYTES_MAX = 1024 * 1024;
const SEGMENT_DIGITS = 8;

/** Opens a log. Rejects with ConfigError (`--log`) when another process uses it; a disk that fails is no reason not to open. */
export async function openFileCommandLog(options: FileCommandLogOptions): Promise<CommandLog> {
  const prefix = `${resolve(options.path)}.${options.home}`;
  const log = new FileCommandLog(options, prefix, await lockLog("--log", prefix));
  await log.tryOpen();
  return log;
}

interface Opened {
  readonly index: LogIndex;
  readonly writer: LogWriter;
  /** The log's own time when it was opened, less the clock's. */
  readonly offsetMs: number;
}

class FileCommandLog implements CommandLog {
  readonly #prefix: string;
  readonly #dir: string;
  readonly #lock: LogLock;
  readonly #runtime: Pick<Runtime, "monotonicMs">;
  readonly #disk: Disk;
  readonly #limits: CommandLogLimits;
  readonly #onWarning: (warning: CommandLogWarning) => void;
  #opening: Promise<Opened | undefined> | undefined;
  #isClosed = false;
  #warned: CommandLogWarning | undefined;

  constructor(options: FileCommandLogOptions, prefix: string, lock: LogLock) {
    this.#prefix = prefix;
    this.#dir = dirname(prefix);
    this.#lock = lock;
    this.#runtime = options.runtime;
    this.#disk = options.disk ?? nodeDisk;
    this.#limits = { ...LIMITS_DEFAULT, ...options.limits };
    this.#onWarning = options.onWarning ?? (() => {});
  }

  async look(id: string): Promise<LoggedCommand> {
    const opened = await this.tryOpen();
    if (opened === undefined) return { kind: "unreadable" };
    const known = opened.index.look(id);
    if (known === undefined) return { kind: "new" };
    const { segment, result } = known;
    if (result === undefined) return { kind: "begun" };
    return this.#readResult(id, segment, result);
  }

  async begin(id: string): Promise<"begun" | "unwritable"> {
    const opened = await this.tryOpen();
    if (opened === undefined) return "unwritable";
    if (opened.index.idCount >= this.#limits.idsMax) await this.#forgetExpired(opened);
    if (opened.index.idCount >= this.#limits.idsMax) {
      this.#warn("log-full");
      return "unwritable";
    }
    return (await this.#append(opened, id)) ? "begun" : "unwritable";
  }

  async end(id: string, resultJson: string): Promise<"ended" | "unwritable"> {
    const opened = await this.tryOpen();
    const isDurable = opened !== undefined && (await this.#append(opened, id, resultJson));
    return isDurable ? "ended" : "unwritable";
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const opened = await this.#opening;
    await opened?.writer.close();
    await this.#lock.release();
  }

  /** What is open, opened now if it is not; undefined while the disk refuses. */
  async tryOpen(): Promise<Opened | undefined> {
    // Whoever holds the lock now may be writing.
    if (this.#isClosed) return undefined;
    const opening = (this.#opening ??= this.#read().catch(() => undefined));
    const opened = await opening;
    if (opened !== undefined) return opened;
    // Only the first of those who waited for it clears the way for another try.
    if (this.#opening === opening) this.#opening = undefined;
    this.#warn("log-unusable");
    return undefined;
  }

  async #append(opened: Opened, id: string, resultJson?: string): Promise<boolean> {
    const atMs = opened.offsetMs + this.#runtime.monotonicMs();
    const isDurable = await opened.writer.append({ id, atMs, resultJson });
    if (isDurable) this.#warned = undefined;
    else this.#warn("log-unusable");
    return isDurable;
  }

  async #readResult(
    id: string,
    segment: number,
    { offset, byteCount }: { readonly offset: number; readonly byteCount: number },
  ): Promise<LoggedCommand> {
    try {
      const bytes = await this.#disk.readAt(this.#pathOf(segment), offset, byteCount);
      const line = parseLogLine(bytes);
      // Another id stands there when the segment was rewritten meanwhile.
      if (line?.id === id && line.resultJson !== undefined) {
        return { kind: "ended", resultJson: line.resultJson };
      }
    } catch {
      this.#warn("log-unusable");
    }
    return { kind: "begun" };
  }

  async #read(): Promise<Opened> {
    const index = new LogIndex();
    const segments = await this.#findSegments();
    for (const segment of segments) await this.#readSegment(index, segment);
    const newest = segments.at(-1) ?? 0;
    const isFull = newest === 0 || index.bytesOf(newest) >= this.#limits.segmentBytes;
    const opened: Opened = {
      index,
      offsetMs: index.newestAtMs - this.#runtime.monotonicMs(),
      writer: new LogWriter(
        {
          disk: this.#disk,
          dir: this.#dir,
          pathOf: (segment) => this.#pathOf(segment),
          onDurable: (segment, lines) => {
            for (const line of lines) index.add(segment, line);
          },
          onFull: () => this.#tidy(opened),
        },
        { segmentBytes: this.#limits.segmentBytes, commitBytes: COMMIT_BYTES_MAX },
        isFull ? { segment: newest + 1, isUsed: false } : { segment: newest, isUsed: true },
      ),
    };
    return opened;
  }

  async #findSegments(): Promise<number[]> {
    const stem = `${basename(this.#prefix)}.`;
    const names = (await this.#disk.list(this.#dir)).filter((name) => name.startsWith(stem));
    const suffixes = names.map((name) => name.slice(stem.length));
    const isSegment = new RegExp(`^\\d{${SEGMENT_DIGITS},}$`);
    return suffixes
      .filter((suffix) => isSegment.test(suffix))
      .map(Number)
      .sort((a, b) => a - b);
  }

  async #readSegment(index: LogIndex, segment: number): Promise<void> {
    const bytes = (await this.#disk.read(this.#pathOf(segment))) ?? Buffer.alloc(0);
    const { lines, brokenCount } = readLogLines(bytes);
    for (const line of lines) index.add(segment, line);
    index.setBytes(segment, bytes.length);
    // The torn last line of a segment, closed by the next run, is what a power cut leaves: one is expected.
    if (brokenCount > 1) this.#warn("log-damaged");
  }

  /** Forgets what need not be known any more and drops results that are too many. A failure is tried again later. */
  async #tidy(opened: Opened): Promise<void> {
    try {
      await this.#forgetExpired(opened);
      await this.#dropResults(opened);
    } catch {
      this.#warn("log-unusable");
    }
  }

  async #forgetExpired({ index, writer, offsetMs }: Opened): Promise<void> {
    for (;;) {
      const nowMs = offsetMs + this.#runtime.monotonicMs();
      const segment = index.expired(nowMs, this.#limits, writer.segment);
      if (segment === undefined) return;
      index.drop(segment);
      await this.#disk.remove(this.#pathOf(segment)).catch(() => this.#warn("log-unusable"));
    }
  }

  /** Rewrites the oldest segments without their results until those that are left are few enough. */
  async #dropResults({ index, writer }: Opened): Promise<void> {
    let before: number | undefined;
    for (const segment of index.segments) {
      if (index.resultBytes <= this.#limits.resultBytesMax) return;
      if (segment === writer.segment) return;
      if (index.resultBytesOf(segment) > 0) await this.#compact(index, before, segment);
      before = segment;
    }
  }

  /** Rewrites a segment as ids alone, together with the small one before it. */
  async #compact(index: LogIndex, before: number | undefined, segment: number): Promise<void> {
    const isSmall = before !== undefined && index.bytesOf(before) * 2 <= this.#limits.segmentBytes;
    const merged = isSmall ? index.idsOf(before) : [];
    const lines = [...merged, ...index.idsOf(segment)];
    const bytes = await rewriteSegment(this.#pathOf(segment), this.#dir, lines, this.#disk);
    if (isSmall) {
      await this.#disk.remove(this.#pathOf(before));
      index.drop(before);
    }
    index.replace(segment, lines, bytes);
  }

  #pathOf(segment: number): string {
    return `${this.#prefix}.${String(segment).padStart(SEGMENT_DIGITS, "0")}`;
  }

  #warn(warning: CommandLogWarning): void {
    if (this.#warned === warning) return;
    this.#warned = warning;
    this.#onWarning(warning);
  }
}
