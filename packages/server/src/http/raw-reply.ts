// The envelope of T3 written by hand, where node:http has no response to write it with: bytes that are no HTTP, and
// connections that were to be upgraded.
//
// Spec: T3. I1  The connection ends with the answer.
// I2  A connection that is refused here is destroyed here: node:http does not look any more whether its peer reads, or goes.

import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { encodeErrorEnvelope, HEADER, type ProtocolError } from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import { mintId } from "../mint-id.ts";
import { READ_STALL_MS, REFUSED_BODY_DRAIN_MS } from "../server-limits.ts";

/** Answers a connection that is not upgraded with an error, and lets go of it once that is written, or READ_STALL_MS passed. */
export function refuseUpgrade(
  socket: Duplex,
  error: ProtocolError,
  runtime: Runtime,
  headers: Readonly<Record<string, string>> = {},
): void {
  socket.once("finish", () => socket.destroy());
  endWithin(READ_STALL_MS, socket, runtime);
  writeRawError(socket, error, mintId("req", runtime), headers);
}

/** Answers what is no HTTP, and lets go of the connection when its peer has had REFUSED_BODY_DRAIN_MS to read it. */
export function refuseMalformed(socket: Duplex, error: ProtocolError, runtime: Runtime): void {
  endWithin(REFUSED_BODY_DRAIN_MS, socket, runtime);
  writeRawError(socket, error, mintId("req", runtime), {});
}

/** Destroys a connection within so many milliseconds: at once when nothing can be written to it any more. */
function endWithin(ms: number, socket: Duplex, runtime: Runtime): void {
  if (!socket.writable) return void socket.destroy();
  const timer = runtime.schedule(ms, () => socket.destroy());
  socket.once("close", () => runtime.cancel(timer));
}

/** Writes an error and ends the connection, while it can be written to. */
function writeRawError(
  socket: Duplex,
  error: ProtocolError,
  requestId: string,
  headers: Readonly<Record<string, string>>,
): void {
  if (!socket.writable) return;
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
