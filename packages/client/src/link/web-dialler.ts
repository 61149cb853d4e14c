// Links over the platform's own WebSocket: browsers and workers.
//
// Spec: L9, L15. A browser follows no redirect of an upgrade, checks certificates itself and tells nobody why a dial failed.
// I1  Before onOpen every ending is `connect`: nothing more is known.

import type { LinkUrl } from "./link-endpoint.ts";
import type { LinkDialler, LinkSocket, SocketEnd, SocketSink } from "./link-socket.ts";

/** The part of the DOM's WebSocket that is used. */
interface DomWebSocket {
  readonly bufferedAmount: number;
  readonly readyState: number;
  binaryType: string;
  addEventListener<Name extends keyof DomWebSocketEvents>(
    name: Name,
    run: (event: DomWebSocketEvents[Name]) => void,
  ): void;
  send(text: string): void;
  close(code?: number): void;
}

interface DomWebSocketEvents {
  readonly open: object;
  readonly message: { readonly data: unknown };
  readonly close: { readonly code: number; readonly reason: string };
}

type DomWebSocketConstructor = new (url: string) => DomWebSocket;

const OPEN = 1;

/** A dialler on the global WebSocket. */
export function createWebDialler(): LinkDialler {
  return { dial: (url, sink) => new WebLinkSocket(url, sink) };
}

class WebLinkSocket implements LinkSocket {
  #socket: DomWebSocket | undefined;
  #sink: SocketSink | undefined;
  #isOpen = false;

  constructor({ origin, path }: LinkUrl, sink: SocketSink) {
    this.#sink = sink;
    const { WebSocket } = globalThis as unknown as { readonly WebSocket: DomWebSocketConstructor };
    try {
      this.#listen(new WebSocket(origin + path));
    } catch {
      // A page may not use this URL at all: plain `ws` from a secure page, or its own policy.
      queueMicrotask(() => this.#end({ kind: "fault", trouble: "connect" }));
    }
  }

  get bufferedBytes(): number {
    return this.#socket?.bufferedAmount ?? 0;
  }

  send(text: string): void {
    if (this.#socket?.readyState === OPEN) this.#socket.send(text);
  }

  close(code: number): void {
    this.#socket?.close(code);
  }

  destroy(): void {
    this.#sink = undefined;
    this.#socket?.close();
  }

  #listen(socket: DomWebSocket): void {
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.addEventListener("open", () => {
      this.#isOpen = true;
      this.#sink?.onOpen();
    });
    socket.addEventListener("message", ({ data }) => {
      this.#sink?.onMessage(typeof data === "string" ? data : undefined);
    });
    socket.addEventListener("close", ({ code, reason }) => {
      this.#end(this.#isOpen ? { kind: "closed", code, reason } : { kind: "fault", trouble: "connect" });
    });
  }

  #end(end: SocketEnd): void {
    const sink = this.#sink;
    this.#sink = undefined;
    sink?.onEnd(end);
  }
}
