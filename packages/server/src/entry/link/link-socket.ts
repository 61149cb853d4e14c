// A WebSocket of `ws` as a session uses it.
//
// Spec: L27; dependencies: `ws` 8. I1  No listener is a closure: thousands of these wait at once.

import { WebSocket } from "ws";
import type { LinkSession, LinkSocket } from "./link-session.ts";

/** `ws` spreads these into new options for each send: they are made once. */
const TEXT = { binary: false, compress: false };

export class LinkWebSocket extends WebSocket implements LinkSocket {
  session: LinkSession | undefined;

  /** Hands what arrives to `session` from now on. */
  attach(session: LinkSession): void {
    this.session = session;
    this.on("message", onMessage);
    this.on("ping", onPing);
    this.on("pong", onPong);
    this.on("error", onError);
    this.on("close", onClose);
  }

  sendText(text: string): boolean {
    // After the peer's own close frame the library drops what is sent.
    if (this.readyState !== WebSocket.OPEN) return false;
    this.send(text, TEXT);
    return true;
  }

  closeWith(code: number, reason: string): void {
    this.close(code, reason);
  }

  destroy(): void {
    this.terminate();
  }

  get waitingBytes(): number {
    return this.bufferedAmount;
  }
}

function onMessage(this: WebSocket, data: WebSocket.RawData, isBinary: boolean): void {
  // Without fragments in one array (binaryType "nodebuffer") a message is one Buffer.
  sessionOf(this)?.receive(data as Buffer, isBinary);
}

function onPing(this: WebSocket, data: Buffer): void {
  if (sessionOf(this)?.receiveControl(data.length) === true) this.pong(data);
}

function onPong(this: WebSocket, data: Buffer): void {
  sessionOf(this)?.receiveControl(data.length);
}

/** The library found what no WebSocket may send, and closes by itself (1007, 1009, 1002). */
function onError(this: WebSocket): void {
  sessionOf(this)?.refusedByLibrary();
}

function onClose(this: WebSocket): void {
  const session = sessionOf(this);
  (this as LinkWebSocket).session = undefined;
  session?.socketClosed();
}

function sessionOf(socket: WebSocket): LinkSession | undefined {
  return (socket as LinkWebSocket).session;
}
