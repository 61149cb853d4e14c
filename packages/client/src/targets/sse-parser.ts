// Splits a text/event-stream into the data of its events, as bytes.
//
// Spec: T6, T20 (what the target wrote passes byte for byte). Event-stream format: HTML Living Standard, 9.2.
// I1  Data lines are joined with one LF and otherwise untouched. I2  An event is emitted at its blank line; one cut short
//     by the end of the stream is not. I3  Holds at most `eventBytesMax` bytes of one event.

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const JOINT = Buffer.from("\n");
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/** Whether parsing may go on. `too-large`: one event is over the limit and the stream is of no more use. */
export type SseFeedResult = "ok" | "too-large";

/** An incremental parser of one stream. */
export interface SseParser {
  feed(chunk: Buffer): SseFeedResult;
}

/**
 * A parser that calls `onMessage` with the data of each event of type `message` (or none) that is not empty; events of
 * other types, comments, ids and retry hints are of no use to the agent.
 *
 * @param eventBytesMax largest event, bytes of all its lines
 */
export function createSseParser(eventBytesMax: number, onMessage: (data: Buffer) => void): SseParser {
  let lineParts: Buffer[] = [];
  let data: Buffer[] = [];
  let eventBytes = 0;
  let isMessage = true;
  let isFirstLine = true;
  let skipsLineFeed = false;

  const dispatch = () => {
    const text = data.length === 1 ? (data[0] as Buffer) : Buffer.concat(joinWithLineFeed(data));
    const isWanted = isMessage && text.length > 0;
    data = [];
    isMessage = true;
    eventBytes = 0;
    if (isWanted) onMessage(text);
  };
  const endLine = (tail: Buffer) => {
    let line = lineParts.length === 0 ? tail : Buffer.concat([...lineParts, tail]);
    lineParts = [];
    if (isFirstLine && line.subarray(0, 3).equals(BOM)) line = line.subarray(3);
    isFirstLine = false;
    if (line.length === 0) return dispatch();
    const { name, value } = splitField(line);
    if (name === "data") data.push(value);
    else if (name === "event") isMessage = value.length === 0 || value.toString("utf8") === "message";
  };
  const feed = (chunk: Buffer): SseFeedResult => {
    let at = 0;
    if (skipsLineFeed && chunk.length > 0) {
      if (chunk[0] === LF) at = 1;
      skipsLineFeed = false;
    }
    let lf = chunk.indexOf(LF, at);
    let cr = chunk.indexOf(CR, at);
    while (lf !== -1 || cr !== -1) {
      const isCr = cr !== -1 && (lf === -1 || cr < lf);
      const end = isCr ? cr : lf;
      eventBytes += end - at;
      if (eventBytes > eventBytesMax) return "too-large";
      endLine(chunk.subarray(at, end));
      at = end + 1;
      if (isCr && chunk[at] === LF) at += 1;
      else if (isCr && at === chunk.length) skipsLineFeed = true;
      if (lf !== -1 && lf < at) lf = chunk.indexOf(LF, at);
      if (cr !== -1 && cr < at) cr = chunk.indexOf(CR, at);
    }
    if (at < chunk.length) {
      lineParts.push(chunk.subarray(at));
      eventBytes += chunk.length - at;
    }
    return eventBytes > eventBytesMax ? "too-large" : "ok";
  };
  return { feed };
}

function splitField(line: Buffer): { name: string; value: Buffer } {
  const colon = line.indexOf(COLON);
  if (colon === -1) return { name: line.toString("latin1"), value: line.subarray(line.length) };
  const start = line[colon + 1] === SPACE ? colon + 2 : colon + 1;
  return { name: line.toString("latin1", 0, colon), value: line.subarray(start) };
}

function joinWithLineFeed(lines: readonly Buffer[]): Buffer[] {
  return lines.flatMap((line, index) => (index === 0 ? [line] : [JOINT, line]));
}
