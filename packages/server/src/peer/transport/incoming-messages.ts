// Frames of messages become messages: whole ones at once, large ones when their last part is there.
//
// Spec: docs/protocol/peer-link.md, "Messages".
// I1  What is kept for unfinished messages is at most LARGE_OPEN_BYTES_MAX in LARGE_OPEN_MAX messages: a peer that opens
//     more breaks the rules.
// I2  A message is given out complete or not at all.

import { decodeLarge, decodeWhole, OPEN_BODY_BYTES } from "./message-codec.ts";
import type { PeerMessage } from "./peer-network.ts";
import {
  LARGE_OPEN_BYTES_MAX,
  LARGE_OPEN_MAX,
  MESSAGE_HEAD_BYTES_MAX,
  MESSAGE_PAYLOAD_BYTES_MAX,
  MESSAGE_WHOLE_BYTES_MAX,
  PART_BYTES_MAX,
} from "./transport-limits.ts";

const NUMBER_BYTES = 4;

interface PartialMessage {
  readonly bytes: Buffer;
  readonly headBytes: number;
  filledBytes: number;
}

/** What a frame led to: a message, nothing yet, or a broken rule. */
export type Arrival = PeerMessage | "incomplete" | "broken";

/** The receiving side of a link. */
export class IncomingMessages {
  #wholeBytesMax = MESSAGE_WHOLE_BYTES_MAX;
  readonly #partials = new Map<number, PartialMessage>();
  #openBytes = 0;

  /** The largest message in one frame from now on, by the link's version. */
  allowWhole(bytesMax: number): void {
    this.#wholeBytesMax = bytesMax;
  }

  /** Takes the body of a `whole` frame. */
  whole(body: Buffer): Arrival {
    return decodeWhole(body, this.#wholeBytesMax) ?? "broken";
  }

  /** Takes the body of an `open` frame. */
  open(body: Buffer): Arrival {
    if (body.length !== OPEN_BODY_BYTES) return "broken";
    const number = body.readUInt32BE(0);
    const headBytes = body.readUInt32BE(4);
    const payloadBytes = body.readUInt32BE(8);
    const totalBytes = headBytes + payloadBytes;
    if (headBytes > MESSAGE_HEAD_BYTES_MAX || payloadBytes > MESSAGE_PAYLOAD_BYTES_MAX) return "broken";
    if (totalBytes <= this.#wholeBytesMax || this.#partials.has(number)) return "broken";
    if (this.#partials.size >= LARGE_OPEN_MAX || this.#openBytes + totalBytes > LARGE_OPEN_BYTES_MAX) {
      return "broken";
    }
    this.#partials.set(number, { bytes: Buffer.allocUnsafeSlow(totalBytes), headBytes, filledBytes: 0 });
    this.#openBytes += totalBytes;
    return "incomplete";
  }

  /** Takes the body of a `part` frame. */
  part(body: Buffer): Arrival {
    const partBytes = body.length - NUMBER_BYTES;
    if (partBytes < 1 || partBytes > PART_BYTES_MAX) return "broken";
    const number = body.readUInt32BE(0);
    const partial = this.#partials.get(number);
    if (partial === undefined || partial.filledBytes + partBytes > partial.bytes.length) return "broken";
    body.copy(partial.bytes, partial.filledBytes, NUMBER_BYTES);
    partial.filledBytes += partBytes;
    if (partial.filledBytes < partial.bytes.length) return "incomplete";
    this.#partials.delete(number);
    this.#openBytes -= partial.bytes.length;
    return decodeLarge(partial.bytes, partial.headBytes) ?? "broken";
  }
}
