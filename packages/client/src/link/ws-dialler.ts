// Links over the `ws` library, in Node.
//
// Spec: L9 (host, SNI and certificate name; 3xx and non-101 end the dial), L15, L27.
// I1  Certificates are always verified, whatever the environment says, against the host of the URL. I2  Nothing is
//     followed, proxied or tried again. I3  A message over the limit is never assembled.

import type { LookupFunction } from "node:net";
import { LINK_FRAME_BYTES_MAX, type LinkTrouble } from "@moor/protocol";
import { WebSocket, type ClientOptions, type RawData } from "ws";
import { AGENT_VERSION } from "../agent-version.ts";
import type { LinkUrl } from "./link-endpoint.ts";
import type { LinkDialler, LinkSocket, SocketEnd, SocketSink } from "./link-socket.ts";
import { lookupLoopbackFirst } from "./loopback-lookup.ts";
import { socketFault } from "./socket-fault.ts";

/** How Node reaches hosts, where that is not as usual. */
export interface NodeDialOptions {
  /** PEM certificates to trust instead of Node's own list. */
  readonly ca?: string;
  /** Where names lead. Default: names under `.localhost` to this machine, others where the resolver says. */
  readonly lookup?: LookupFunction;
}

/** How long one address of several is tried before the next. Milliseconds: over the 3 s after which TCP asks a second time.
 *  Node's own 250 fails dials over slow lines, and those that a restarting service's full queue keeps waiting, wherever
 *  the next address cannot be reached at all. */
export const ADDRESS_WAIT_MS = 3_500;

/** A dialler on real sockets. */
export function createWsDialler({ ca, lookup }: NodeDialOptions = {}): LinkDialler {
  const options = {
    followRedirects: false,
    perMessageDeflate: false,
    maxPayload: LINK_FRAME_BYTES_MAX,
    rejectUnauthorized: true,
    lookup: lookup ?? lookupLoopbackFirst,
    autoSelectFamilyAttemptTimeout: ADDRESS_WAIT_MS,
    headers: { "User-Agent": `moor-link/${AGENT_VERSION}` },
    ...(ca !== undefined && { ca }),
  } as ClientOptions;
  return {
    dial: (url, sink) => new WsLinkSocket(url, options, sink),
  };
}

class WsLinkSocket implements LinkSocket {
  readonly #socket: WebSocket;
  #sink: SocketSink | undefined;
  /** What the connection broke of, for the close that ws tells after it. */
  #fault: SocketEnd | undefined;
  #isOpen = false;

  constructor(url: LinkUrl, options: ClientOptions, sink: SocketSink) {
    this.#sink = sink;
    const socket = new WebSocket(url.origin + url.path, options);
    this.#socket = socket;
    socket.on("open", () => {
      this.#isOpen = true;
      this.#sink?.onOpen();
    });
    socket.on("message", (data, isBinary) => this.#sink?.onMessage(isBinary ? undefined : textOf(data)));
    socket.on("unexpected-response", (_request, answer) => {
      this.#end({ kind: "no-upgrade", status: answer.statusCode ?? 0 });
      socket.terminate();
    });
    socket.on("error", (error) => (this.#fault ??= { kind: "fault", trouble: this.#troubleOf(error) }));
    socket.on("close", (code, reason) => this.#end(this.#closed(code, reason)));
  }

  get bufferedBytes(): number {
    return this.#socket.bufferedAmount;
  }

  send(text: string): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(text, ignore);
  }

  close(code: number): void {
    this.#socket.close(code);
  }

  destroy(): void {
    this.#sink = undefined;
    this.#socket.terminate();
  }

  #troubleOf(error: Error): LinkTrouble {
    // Before the 101 an error without a code is ws's own: the answer was an upgrade in name only.
    return !this.#isOpen && !("code" in error) ? "not-a-link" : socketFault(error);
  }

  /** A close frame says more than what broke afterwards; 1006 is a connection that broke without one. */
  #closed(code: number, reason: Buffer): SocketEnd {
    if (this.#fault !== undefined && (code === 1006 || !this.#isOpen)) return this.#fault;
    return { kind: "closed", code, reason: reason.toString("utf8") };
  }

  #end(end: SocketEnd): void {
    const sink = this.#sink;
    this.#sink = undefined;
    sink?.onEnd(end);
  }
}

/** ws gives text messages as one Buffer of valid UTF-8. */
function textOf(data: RawData): string {
  return (data as Buffer).toString("utf8");
}

/** A message that could not be written is told by the close. */
function ignore(): void {}
