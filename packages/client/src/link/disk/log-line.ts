// One line of a command log: `{"id":"…","at":12}` when a command begins, with `"data"` when it has ended.
//
// Spec: L20.   Pure.
// I1  A line is whole or nothing: what a power cut left of one is skipped. I2  Unknown members are ignored.

/** A line's meaning. */
export interface LogLine {
  readonly id: string;
  /** The log's own time: milliseconds for which it has been open, over all runs. Only rises. */
  readonly atMs: number;
  /** The result as JSON text; undefined in lines that say only that the command was begun. */
  readonly resultJson?: string | undefined;
}

/** Where a line lies in a segment. */
export interface FoundLine extends LogLine {
  readonly offset: number;
  readonly byteCount: number;
}

const NEWLINE = 0x0a;

/** A line with its end. A result is a JSON string inside, so that its own line breaks stay in one line. */
export function encodeLogLine({ id, atMs, resultJson }: LogLine): Buffer {
  return Buffer.from(`${JSON.stringify({ id, at: Math.floor(atMs), data: resultJson })}\n`);
}

/** Reads one line, with or without its end; undefined for one that is torn or foreign. */
export function parseLogLine(bytes: Buffer): LogLine | undefined {
  try {
    const { id, at, data } = JSON.parse(bytes.toString("utf8")) as Record<string, unknown>;
    if (typeof id !== "string" || typeof at !== "number") return undefined;
    return { id, atMs: at, resultJson: typeof data === "string" ? data : undefined };
  } catch {
    return undefined;
  }
}

/** The sound lines of a segment in order, and how many others there are. A last line without its end is torn. */
export function readLogLines(bytes: Buffer): { readonly lines: FoundLine[]; readonly brokenCount: number } {
  const lines: FoundLine[] = [];
  let brokenCount = 0;
  for (let offset = 0; offset < bytes.length;) {
    const end = bytes.indexOf(NEWLINE, offset);
    if (end < 0) break;
    const line = parseLogLine(bytes.subarray(offset, end));
    if (line !== undefined) lines.push({ ...line, offset, byteCount: end + 1 - offset });
    else if (end > offset) brokenCount += 1;
    offset = end + 1;
  }
  return { lines, brokenCount };
}
