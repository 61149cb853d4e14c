// A message as bytes: a JSON head, then the payload as it is.
//
// Spec: docs/protocol/peer-link.md, "Messages".
// I1  A head is a JSON object whose `t` is a text; anything else breaks the link's rules.

import { invariant } from "@moor/runtime";
import { allocateFrame, FRAME } from "./frame.ts";
import type { PeerMessage } from "./peer-network.ts";
import { MESSAGE_HEAD_BYTES_MAX, MESSAGE_PAYLOAD_BYTES_MAX } from "./transport-limits.ts";

/** Bytes of a `whole` frame's fixed field, the length of the head. */
const WHOLE_FIELD_BYTES = 4;
/** Bytes of an `open` frame's body: number of the message, length of its head, length of its payload. */
export const OPEN_BODY_BYTES = 12;

const NOTHING = new Uint8Array(0);

/** A message ready to be sent: in one frame, or as the bytes of its parts. */
export type EncodedMessage =
  | { readonly kind: "whole"; readonly frame: Buffer }
  | { readonly kind: "large"; readonly head: Buffer; readonly payload: Uint8Array };

/** Encodes, in one frame up to `wholeBytesMax`; throws when a limit is broken, which is a bug of the sender. */
export function encodeMessage(message: PeerMessage, wholeBytesMax: number): EncodedMessage {
  const text = JSON.stringify(message.head);
  const headBytes = Buffer.byteLength(text);
  const payload = message.payload ?? NOTHING;
  invariant(headBytes <= MESSAGE_HEAD_BYTES_MAX, "a peer message's head is within its limit");
  invariant(payload.byteLength <= MESSAGE_PAYLOAD_BYTES_MAX, "a peer message's payload is within its limit");
  if (headBytes + payload.byteLength > wholeBytesMax) {
    return { kind: "large", head: Buffer.from(text), payload };
  }
  const { frame, body } = allocateFrame(FRAME.whole, WHOLE_FIELD_BYTES + headBytes + payload.byteLength);
  body.writeUInt32BE(headBytes, 0);
  body.write(text, WHOLE_FIELD_BYTES);
  body.set(payload, WHOLE_FIELD_BYTES + headBytes);
  return { kind: "whole", frame };
}

/** The message in a `whole` frame, its payload copied; undefined when it breaks the rules. */
export function decodeWhole(body: Buffer, wholeBytesMax: number): PeerMessage | undefined {
  if (body.length < WHOLE_FIELD_BYTES) return undefined;
  const payloadAt = WHOLE_FIELD_BYTES + body.readUInt32BE(0);
  if (payloadAt > body.length || body.length - WHOLE_FIELD_BYTES > wholeBytesMax) return undefined;
  const head = parseHead(body.subarray(WHOLE_FIELD_BYTES, payloadAt));
  if (head === undefined) return undefined;
  return payloadAt === body.length ? { head } : { head, payload: copyOf(body.subarray(payloadAt)) };
}

/** The message whose bytes are all there; undefined when it breaks the rules. The payload is a view. */
export function decodeLarge(bytes: Buffer, headBytes: number): PeerMessage | undefined {
  const head = parseHead(bytes.subarray(0, headBytes));
  if (head === undefined) return undefined;
  return headBytes === bytes.length ? { head } : { head, payload: bytes.subarray(headBytes) };
}

function parseHead(bytes: Buffer): Record<string, unknown> | undefined {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const head = value as Record<string, unknown>;
  return typeof head["t"] === "string" ? head : undefined;
}

/** Kept payloads must not hold on to the network's buffer, which may be many times their size. */
function copyOf(bytes: Uint8Array): Uint8Array {
  const copy = Buffer.allocUnsafe(bytes.byteLength);
  copy.set(bytes);
  return copy;
}
