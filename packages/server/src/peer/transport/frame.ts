// Frames: the pieces a link's byte stream is cut into. `length u32 | type u8 | body`, big-endian, length = 1 + body.
//
// Spec: docs/protocol/peer-link.md, "Frames".
// I1  A frame's length is checked before a byte of its body is kept: memory is bounded by the largest frame.
// I2  Each byte is copied at most once: frames that lie whole in what arrived are not copied at all.

/** Every type of frame. Numbers are the wire's and never change their meaning. */
export const FRAME = {
  hello: 1,
  confirm: 2,
  close: 3,
  ping: 4,
  whole: 5,
  open: 6,
  part: 7,
} as const;

/** Bytes of the length field. */
const LENGTH_BYTES = 4;
/** Bytes before a frame's body. */
export const FRAME_HEAD_BYTES = LENGTH_BYTES + 1;

/** A frame with room for a body of `bodyBytes`, head filled in, and its body as a view. */
export function allocateFrame(type: number, bodyBytes: number): { frame: Buffer; body: Buffer } {
  const frame = Buffer.allocUnsafe(FRAME_HEAD_BYTES + bodyBytes);
  frame.writeUInt32BE(1 + bodyBytes, 0);
  frame[LENGTH_BYTES] = type;
  return { frame, body: frame.subarray(FRAME_HEAD_BYTES) };
}

/** A frame with a copy of `body`. */
export function encodeFrame(type: number, body: Uint8Array = new Uint8Array(0)): Buffer {
  const made = allocateFrame(type, body.byteLength);
  made.body.set(body);
  return made.frame;
}

/** Receives one frame; the body is good until it returns. False: stop, the rest is not wanted. */
export type FrameSink = (type: number, body: Buffer) => boolean;

/** Cuts a byte stream into frames, wherever its chunks are cut. */
export class FrameDecoder {
  readonly #sink: FrameSink;
  #bodyBytesMax: number;
  /** The beginning of a frame whose end has not arrived. */
  readonly #partial: Buffer;
  #partialBytes = 0;

  /** @param bodyBytesMax largest body until `allow` is called, at most `capacity`, the largest ever */
  constructor(sink: FrameSink, bodyBytesMax: number, capacity: number) {
    this.#sink = sink;
    this.#bodyBytesMax = bodyBytesMax;
    this.#partial = Buffer.allocUnsafeSlow(FRAME_HEAD_BYTES + capacity);
  }

  /** From the next frame on, bodies may have up to this many bytes. */
  allow(bodyBytesMax: number): void {
    this.#bodyBytesMax = bodyBytesMax;
  }

  /** Takes what arrived; gives every frame that is whole. False: the stream breaks the rules, or the sink said stop. */
  receive(bytes: Uint8Array): boolean {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = 0;
    while (this.#partialBytes > 0 && at < chunk.length) {
      const missing = this.#missingBytes();
      const taken = Math.min(missing, chunk.length - at);
      chunk.copy(this.#partial, this.#partialBytes, at, at + taken);
      this.#partialBytes += taken;
      at += taken;
      if (this.#partialBytes < LENGTH_BYTES) continue;
      const bodyBytes = this.#bodyBytesAt(this.#partial, 0);
      if (bodyBytes === undefined) return false;
      if (this.#partialBytes < FRAME_HEAD_BYTES + bodyBytes) continue;
      this.#partialBytes = 0;
      if (!this.#give(this.#partial, 0, bodyBytes)) return false;
    }
    return this.#receiveWhole(chunk, at);
  }

  #receiveWhole(chunk: Buffer, start: number): boolean {
    let at = start;
    while (chunk.length - at >= LENGTH_BYTES) {
      const bodyBytes = this.#bodyBytesAt(chunk, at);
      if (bodyBytes === undefined) return false;
      if (chunk.length - at < FRAME_HEAD_BYTES + bodyBytes) break;
      if (!this.#give(chunk, at, bodyBytes)) return false;
      at += FRAME_HEAD_BYTES + bodyBytes;
    }
    if (at < chunk.length) this.#partialBytes = chunk.copy(this.#partial, 0, at);
    return true;
  }

  /** Bytes to copy next: up to the length field's end, then up to the frame's. */
  #missingBytes(): number {
    if (this.#partialBytes < LENGTH_BYTES) return LENGTH_BYTES - this.#partialBytes;
    return LENGTH_BYTES + this.#partial.readUInt32BE(0) - this.#partialBytes;
  }

  /** Length of the body of the frame at `at`, or undefined when it breaks the rules. */
  #bodyBytesAt(buffer: Buffer, at: number): number | undefined {
    const length = buffer.readUInt32BE(at);
    return length < 1 || length - 1 > this.#bodyBytesMax ? undefined : length - 1;
  }

  #give(buffer: Buffer, at: number, bodyBytes: number): boolean {
    const type = buffer[at + LENGTH_BYTES] ?? 0;
    return this.#sink(type, buffer.subarray(at + FRAME_HEAD_BYTES, at + FRAME_HEAD_BYTES + bodyBytes));
  }
}
