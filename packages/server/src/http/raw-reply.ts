// The envelope of T3 written by hand, where node:http has no response to write it with: bytes that are no HTTP, and
// connections that were to be upgraded.
//
// Spec: T3. I1  The connection ends with the answer.

import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { encodeErrorEnvelope, HEADER, type ProtocolError } from "@moor/protocol";

/** Writes an error and ends the connection; destroys it when nothing can be written any more. */
export function writeRawError(
  socket: Duplex,
  error: ProtocolError,
  requestId: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (!socket.writable) return void socket.destroy();
  const body = encodeErrorEnvelope(error);
  const lines = Object.entries({
    Connection: "close",
    "Content-Type": "application/json",
    "Cache-Control": "no-store",
    [HEADER.requestId]: requestId,
    ...(error.retryAfterS === undefined ? {} : { [HEADER.retryAfter]: String(Math.ceil(error.retryAfterS)) }),
    ...headers,
    "Content-Length": String(Buffer.byteLength(body)),
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  const status = `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? "Error"}\r\n`;
  socket.end(`${status}${lines.join("")}\r\n${body}`);
}
