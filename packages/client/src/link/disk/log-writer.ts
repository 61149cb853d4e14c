// Writes lines of a command log durably, many with one fsync where many wait.
//
// Spec: L20.
// I1  A line is told durable after the fsync that covers it, and is in the index before anyone is told.
// I2  After a failed write or fsync the segment is not written to any more: what the disk did with it is not known.
// I3  One commit at a time; what comes meanwhile goes into the next.

import { nodeDisk, type Disk, type DiskFile } from "./disk.ts";
import { encodeLogLine, type FoundLine, type LogLine } from "./log-line.ts";

/** What a writer works with. */
export interface LogWriterPorts {
  readonly disk: Disk;
  readonly dir: string;
  pathOf(segment: number): string;
  /** Hears of durable lines, with the segment they are in. */
  onDurable(segment: number, lines: readonly FoundLine[]): void;
  /** Called between commits when a segment is full; the next commit waits for it. */
  onFull(segment: number): Promise<void>;
}

/** Size from which a segment is full, and most that one commit takes. Bytes. */
export interface LogWriterLimits {
  readonly segmentBytes: number;
  readonly commitBytes: number;
}

interface Waiting {
  readonly line: LogLine;
  readonly bytes: Buffer;
  readonly resolve: (isDurable: boolean) => void;
}

interface OpenSegment {
  readonly file: DiskFile;
  bytes: number;
}

const LINE_END = Buffer.from("\n");

/** Appends to the segments of one log. */
export class LogWriter {
  readonly #ports: LogWriterPorts;
  readonly #limits: LogWriterLimits;
  #segment: number;
  /** Whether the segment holds lines that were told durable. */
  #isUsed: boolean;
  #open: OpenSegment | undefined;
  #waiting: Waiting[] = [];
  #pumping: Promise<void> | undefined;
  #isClosed = false;

  /** @param start the segment to go on with, and whether there is anything in it */
  constructor(
    ports: LogWriterPorts,
    limits: LogWriterLimits,
    start: { readonly segment: number; readonly isUsed: boolean },
  ) {
    this.#ports = ports;
    this.#limits = limits;
    this.#segment = start.segment;
    this.#isUsed = start.isUsed;
  }

  /** The segment that the next line goes to. */
  get segment(): number {
    return this.#segment;
  }

  /** Whether the line is durable; false when the disk refused, and after `close`. Never rejects. */
  append(line: LogLine): Promise<boolean> {
    if (this.#isClosed) return Promise.resolve(false);
    return new Promise((resolve) => {
      this.#waiting.push({ line, bytes: encodeLogLine(line), resolve });
      this.#pumping ??= this.#pump();
    });
  }

  /** Writes what waits and closes the segment. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#pumping;
    await this.#closeSegment();
  }

  async #pump(): Promise<void> {
    for (let batch = this.#takeBatch(); batch.length > 0; batch = this.#takeBatch()) {
      const isDurable = await this.#commit(batch);
      for (const { resolve } of batch) resolve(isDurable);
      if ((this.#open?.bytes ?? 0) >= this.#limits.segmentBytes) await this.#turnOver();
    }
    this.#pumping = undefined;
  }

  #takeBatch(): Waiting[] {
    let count = 0;
    let bytes = 0;
    for (const waiting of this.#waiting) {
      bytes += waiting.bytes.length;
      if (count > 0 && bytes > this.#limits.commitBytes) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  async #commit(batch: readonly Waiting[]): Promise<boolean> {
    try {
      const open = (this.#open ??= await this.#openSegment());
      await open.file.append(Buffer.concat(batch.map(({ bytes }) => bytes)));
      await open.file.sync();
      this.#tellDurable(open, batch);
      return true;
    } catch {
      await this.#closeSegment();
      if (this.#isUsed) this.#next();
      return false;
    }
  }

  #tellDurable(open: OpenSegment, batch: readonly Waiting[]): void {
    const lines = batch.map(({ line, bytes }) => {
      const found = { ...line, offset: open.bytes, byteCount: bytes.length };
      open.bytes += bytes.length;
      return found;
    });
    this.#isUsed = true;
    this.#ports.onDurable(this.#segment, lines);
  }

  async #openSegment(): Promise<OpenSegment> {
    const ports = this.#ports;
    const file = await ports.disk.open(ports.pathOf(this.#segment), this.#isUsed ? "append" : "replace");
    try {
      if (!this.#isUsed) await ports.disk.syncDir(ports.dir);
      if (file.bytesAtOpen === 0) return { file, bytes: 0 };
      // The last line may have lost its end in a power cut.
      await file.append(LINE_END);
      return { file, bytes: file.bytesAtOpen + LINE_END.length };
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async #turnOver(): Promise<void> {
    await this.#closeSegment();
    const full = this.#segment;
    this.#next();
    await this.#ports.onFull(full);
  }

  #next(): void {
    this.#segment += 1;
    this.#isUsed = false;
  }

  async #closeSegment(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    await open?.file.close().catch(() => {});
  }
}

/** Replaces a segment by these lines, whole or not at all. Rejects when the disk refuses. */
export async function rewriteSegment(
  path: string,
  dir: string,
  lines: readonly LogLine[],
  disk: Disk = nodeDisk,
): Promise<number> {
  const beside = `${path}.new`;
  const bytes = Buffer.concat(lines.map((line) => encodeLogLine(line)));
  const file = await disk.open(beside, "replace");
  try {
    await file.append(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
  await disk.rename(beside, path);
  await disk.syncDir(dir);
  return bytes.length;
}
