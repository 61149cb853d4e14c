// Limits of peer links. Those marked "wire" are part of docs/protocol/peer-link.md: both sides hold to them.

/** Versions of the link protocol this build speaks, newest first: its own and the one before. Wire. */
export const LINK_VERSIONS: readonly number[] = [2, 1];

/** The version from which on nodes know the messages about links of boxes and apps. Wire. */
export const LINK_PLANE_VERSION = 2;

/**
 * Largest message sent in one frame, head and payload together, on a link of the newest version; a larger one travels in
 * parts. Bytes, 72 KiB: the largest `data` of a home's link (64 KiB) and its head, so that those keep their order. Wire.
 */
export const MESSAGE_WHOLE_BYTES_MAX = 72 * 1024;

/** As MESSAGE_WHOLE_BYTES_MAX, on a link of version 1. Bytes, 64 KiB. Wire. */
const MESSAGE_WHOLE_BYTES_MAX_V1 = 64 * 1024;

/** Largest message sent in one frame on a link of `version`. Bytes. */
export function wholeBytesMax(version: number): number {
  return version < 2 ? MESSAGE_WHOLE_BYTES_MAX_V1 : MESSAGE_WHOLE_BYTES_MAX;
}

/** Most message bytes in one part: what a small message waits for at most behind a large one. Bytes, 64 KiB. Wire. */
export const PART_BYTES_MAX = 64 * 1024;

/** Largest head of a message as JSON. Bytes, 1 MiB: lists of some ten thousand ids. Wire. */
export const MESSAGE_HEAD_BYTES_MAX = 1024 * 1024;

/** Largest payload of a message. Bytes, 24 MiB: the largest answer of an agent (16 MiB) and half as much again. Wire. */
export const MESSAGE_PAYLOAD_BYTES_MAX = 24 * 1024 * 1024;

/**
 * Bytes of large messages that one side may have begun and not ended, which is what the other must hold to put them
 * together. Bytes, 32 MiB: the largest message and room beside it. Wire.
 */
export const LARGE_OPEN_BYTES_MAX = 32 * 1024 * 1024;

/** Large messages that one side sends by turns. Count, 4: one long body does not hold up all others. Wire. */
export const LARGE_OPEN_MAX = 4;

/** Room for the fixed fields of a frame beside a whole message or a part. Bytes. Wire. */
const FRAME_FIELDS_BYTES_MAX = 64;

/** Largest body of a frame on a link of any version. Bytes. Wire. */
export const FRAME_BODY_BYTES_MAX = MESSAGE_WHOLE_BYTES_MAX + FRAME_FIELDS_BYTES_MAX;

/** Largest body of a frame on a link of `version`. Bytes. */
export function frameBodyBytesMax(version: number): number {
  return wholeBytesMax(version) + FRAME_FIELDS_BYTES_MAX;
}

/** Largest body of a frame before the handshake is done. Bytes, 4 KiB. Wire. */
export const HELLO_BYTES_MAX = 4 * 1024;

/** Bytes that may wait in one link's queue before `send` says false. Bytes, 64 MiB: two seconds of a slow network. */
export const QUEUED_BYTES_MAX = 64 * 1024 * 1024;

/** Bytes given to the network at once. Bytes, 256 KiB: few enough that a small message is never far behind. */
export const WRITE_BYTES_MAX = 256 * 1024;

/** How often a link looks whether it heard anything. Milliseconds. */
export const LIVENESS_TICK_MS = 1_000;

/** Looks between two pings: one every 2 s. Count. Wire. */
export const TICKS_PER_PING = 2;

/** Silence after which a link is dead: three pings lost. Milliseconds. Wire. */
export const SILENCE_MS_MAX = 6_000;

/**
 * Looks in a row that must have heard nothing, besides the time: a process that itself stood still first reads what
 * came in meanwhile. Count.
 */
export const SILENT_TICKS_MIN = 3;

/** Time from the connection's start until the link must be up. Milliseconds. */
export const HANDSHAKE_MS_MAX = 5_000;

/** Time a connection may take to open, TLS included. Milliseconds. */
export const CONNECT_MS_MAX = 3_000;

/** How long a second link of the same two processes waits for the first one's end before it replaces it. Milliseconds. */
export const DUPLICATE_WAIT_MS = 1_000;

/** First and longest wait before dialling again. Milliseconds; the half of it is random. */
export const REDIAL_MS_MIN = 100;
export const REDIAL_MS_MAX = 2_000;

/** A link that lived this long forgets earlier failures. Milliseconds. */
export const REDIAL_FORGET_MS = 10_000;

/** Connections accepted and not yet up, over all peers. Count: more are closed at once. */
export const ACCEPTED_PENDING_MAX = 256;

/** Time a closed connection has to deliver its last bytes. Milliseconds. */
export const CLOSE_LINGER_MS = 1_000;

/** How often certificate files are looked at, at most. Milliseconds. */
export const CERTIFICATE_LOOK_MS = 1_000;

/** Remaining life of a certificate below which a node warns when it reads it. Milliseconds, 14 days. */
export const CERTIFICATE_WARN_MS = 14 * 24 * 60 * 60 * 1_000;
