// What waits to be sent on one link, and in which order it leaves.
//
// Spec: docs/protocol/peer-link.md, "Order".
// I1  Whole messages leave in the order they came, before any part of a large one.
// I2  At most LARGE_OPEN_MAX large messages of together at most LARGE_OPEN_BYTES_MAX are begun and not ended; they take
//     turns, part by part, and begin in the order they came.
// I3  What is refused leaves no trace.

import { allocateFrame, FRAME, FRAME_HEAD_BYTES } from "./frame.ts";
import { encodeMessage, OPEN_BODY_BYTES, type EncodedMessage } from "./message-codec.ts";
import type { PeerMessage } from "./peer-network.ts";
import {
  LARGE_OPEN_BYTES_MAX,
  LARGE_OPEN_MAX,
  MESSAGE_WHOLE_BYTES_MAX,
  PART_BYTES_MAX,
  QUEUED_BYTES_MAX,
} from "./transport-limits.ts";

/** Frames up to this size are put together before they are given to the network. Bytes. */
const GATHERED_BYTES_MAX = 16 * 1024;
/** Bytes of the number that a part begins with. */
const NUMBER_BYTES = 4;

interface LargeMessage {
  readonly number: number;
  readonly head: Buffer;
  readonly payload: Uint8Array;
  readonly totalBytes: number;
  sentBytes: number;
}

/** The sending side of a link. */
export class OutgoingQueue {
  #wholes: Buffer[] = [];
  /** Frames of `#wholes` that are taken already. */
  #wholesTaken = 0;
  readonly #largeWaiting: LargeMessage[] = [];
  /** Begun; the first has the next turn. */
  readonly #largeOpen: LargeMessage[] = [];
  #largeOpenBytes = 0;
  #wholeBytesMax = MESSAGE_WHOLE_BYTES_MAX;
  #lastNumber = 0;
  #queuedBytes = 0;

  /** The largest message in one frame from now on, by the link's version. */
  allowWhole(bytesMax: number): void {
    this.#wholeBytesMax = bytesMax;
  }

  /** Bytes accepted and not yet taken. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Queues a message; false when QUEUED_BYTES_MAX would be passed. Throws for a message over the limits. */
  push(message: PeerMessage): boolean {
    const encoded = encodeMessage(message, this.#wholeBytesMax);
    const bytes = encoded.kind === "whole" ? encoded.frame.length : largeBytes(encoded);
    if (this.#queuedBytes + bytes > QUEUED_BYTES_MAX) return false;
    this.#queuedBytes += bytes;
    if (encoded.kind === "whole") this.#wholes.push(encoded.frame);
    else this.#largeWaiting.push(this.#number(encoded));
    return true;
  }

  /** The next chunks to write: about `bytesMax` bytes, in whole frames. Empty when nothing waits. */
  take(bytesMax: number): Uint8Array[] {
    const chunks: Uint8Array[] = [];
    let takenBytes = this.#takeWholes(bytesMax, chunks);
    while (takenBytes < bytesMax) {
      this.#openLarge(chunks);
      const large = this.#largeOpen.shift();
      if (large === undefined) break;
      takenBytes += this.#takePart(large, chunks);
    }
    return chunks;
  }

  #number(encoded: Extract<EncodedMessage, { kind: "large" }>): LargeMessage {
    this.#lastNumber = (this.#lastNumber + 1) % 2 ** 32;
    const { head, payload } = encoded;
    return { number: this.#lastNumber, head, payload, totalBytes: largeBytes(encoded), sentBytes: 0 };
  }

  #takeWholes(bytesMax: number, chunks: Uint8Array[]): number {
    const start = this.#wholesTaken;
    let end = start;
    let takenBytes = 0;
    for (
      let next = this.#wholes[end];
      next !== undefined && takenBytes < bytesMax;
      next = this.#wholes[end]
    ) {
      takenBytes += next.length;
      end += 1;
    }
    if (end === start) return 0;
    gather(this.#wholes.slice(start, end), chunks);
    this.#wholesTaken = end;
    if (2 * end >= this.#wholes.length) this.#forgetTaken();
    this.#queuedBytes -= takenBytes;
    return takenBytes;
  }

  /** Called when half of the list is taken, so that a frame is moved once on average. */
  #forgetTaken(): void {
    this.#wholes = this.#wholes.slice(this.#wholesTaken);
    this.#wholesTaken = 0;
  }

  /** Begins as many waiting large messages as the limits allow (I2). */
  #openLarge(chunks: Uint8Array[]): void {
    for (let next = this.#largeWaiting[0]; next !== undefined; next = this.#largeWaiting[0]) {
      if (this.#largeOpen.length >= LARGE_OPEN_MAX) return;
      if (this.#largeOpenBytes + next.totalBytes > LARGE_OPEN_BYTES_MAX) return;
      this.#largeWaiting.shift();
      this.#largeOpen.push(next);
      this.#largeOpenBytes += next.totalBytes;
      const { frame, body } = allocateFrame(FRAME.open, OPEN_BODY_BYTES);
      body.writeUInt32BE(next.number, 0);
      body.writeUInt32BE(next.head.length, 4);
      body.writeUInt32BE(next.payload.byteLength, 8);
      chunks.push(frame);
    }
  }

  #takePart(large: LargeMessage, chunks: Uint8Array[]): number {
    const start = large.sentBytes;
    const end = Math.min(start + PART_BYTES_MAX, large.totalBytes);
    const partHead = Buffer.allocUnsafe(FRAME_HEAD_BYTES + NUMBER_BYTES);
    partHead.writeUInt32BE(1 + NUMBER_BYTES + end - start, 0);
    partHead[4] = FRAME.part;
    partHead.writeUInt32BE(large.number, FRAME_HEAD_BYTES);
    chunks.push(partHead);
    const headBytes = large.head.length;
    if (start < headBytes) chunks.push(large.head.subarray(start, Math.min(end, headBytes)));
    if (end > headBytes) {
      chunks.push(large.payload.subarray(Math.max(0, start - headBytes), end - headBytes));
    }
    large.sentBytes = end;
    this.#queuedBytes -= end - start;
    if (end === large.totalBytes) this.#largeOpenBytes -= large.totalBytes;
    else this.#largeOpen.push(large);
    return end - start;
  }
}

function largeBytes(encoded: Extract<EncodedMessage, { kind: "large" }>): number {
  return encoded.head.length + encoded.payload.byteLength;
}

/** Puts small frames that follow each other into one chunk: the network's cost is per chunk. */
function gather(frames: readonly Buffer[], chunks: Uint8Array[]): void {
  let run: Buffer[] = [];
  const endRun = () => {
    const [only] = run;
    if (only !== undefined) chunks.push(run.length === 1 ? only : Buffer.concat(run));
    run = [];
  };
  for (const frame of frames) {
    if (frame.length <= GATHERED_BYTES_MAX) {
      run.push(frame);
      continue;
    }
    endRun();
    chunks.push(frame);
  }
  endRun();
}
