// The upgrade of a connection to a link: refused as plain HTTP, or handed to the table as a WebSocket.
//
// Spec: L1, L21, L24, L25, L27. The cheap checks come first; nothing is read of a client before its 101 but its head.
// I1  A client that is not served is told so before the upgrade: host (421), limits and leaving (503), no WebSocket (400).
// I2  The library sets no timer for an open link, sends nothing by itself, agrees on nothing and keeps no list of links.

import type { IncomingMessage } from "node:http";
import type { BlockList } from "node:net";
import type { Duplex } from "node:stream";
import { LINK_FRAME_BYTES_MAX, LINK_PATH, ProtocolError, type ErrorCode } from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import { WebSocketServer } from "ws";
import type { UpgradeHandler } from "../../http/http-listener.ts";
import { refuseUpgrade } from "../../http/raw-reply.ts";
import { RETRY_AFTER_S } from "../../server-limits.ts";
import { clientAddress } from "../client-address.ts";
import { CLOSE_WAIT_MS } from "./link-limits.ts";
import type { LinkRole } from "./link-metrics.ts";
import { LinkWebSocket } from "./link-socket.ts";
import type { LinkTable } from "./link-table.ts";

/** Pieces a frame may come in, and frames a message: far more than any client makes of 68 KiB. Counts. */
const PIECES_MAX = 4_096;
const FRAGMENTS_MAX = 256;

/** Its types lag behind the library: some of these are not in them. */
const LIBRARY_OPTIONS = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: LINK_FRAME_BYTES_MAX,
  maxBufferedChunks: PIECES_MAX,
  maxFragments: FRAGMENTS_MAX,
  autoPong: false,
  // The session destroys the socket by then; this is in case it does not.
  closeTimeout: 2 * CLOSE_WAIT_MS,
  WebSocket: LinkWebSocket,
};

export interface LinkListenerOptions {
  readonly table: LinkTable;
  /** Whether only this machine reaches the listener. Asked once it is bound. */
  readonly isLoopbackListener: () => boolean;
  /** Proxies whose word on the client's address is taken. */
  readonly proxies: BlockList;
  readonly runtime: Runtime;
}

/** Why an upgrade is refused. */
interface UpgradeRefusal {
  readonly code: ErrorCode;
  readonly message?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Upgrades connections to links of `table`. */
export function createLinkListener(options: LinkListenerOptions): UpgradeHandler {
  const { table, runtime } = options;
  const server = new WebSocketServer(LIBRARY_OPTIONS);
  return {
    accepts: isLinkUpgrade,
    handle: (request, socket, head) => {
      // node:http lets go of a socket that it hands over: an error of one would end this process.
      socket.on("error", ignoreError);
      const judged = judge(options, request);
      if ("code" in judged) return refuse(table, socket, judged, runtime);
      // The library would agree on the first of them, and refuse a field it cannot read in words of its own.
      delete request.headers["sec-websocket-protocol"];
      server.handleUpgrade(request, socket, head, (link) => {
        socket.off("error", ignoreError);
        link.attach(table.open({ ...judged, socket: link }));
      });
    },
    close: () => table.destroyAll(),
  };
}

/** Whether a request asks for a link. */
export function isLinkUpgrade(request: IncomingMessage): boolean {
  return roleOf(request) !== undefined && isWebSocket(request);
}

/** Whose link it becomes, or why none. */
function judge(
  { table, isLoopbackListener, proxies }: LinkListenerOptions,
  request: IncomingMessage,
): UpgradeRefusal | Omit<Parameters<LinkTable["open"]>[0], "socket"> {
  const role = roleOf(request);
  if (role === undefined || !isWebSocket(request))
    return { code: "invalid_request", message: "no upgrade here" };
  const [host, ...otherHosts] = headerLines(request, "host");
  if (host === undefined || otherHosts.length > 0)
    return { code: "invalid_request", message: "one Host header" };
  const dialled = table.context.hosts.find(host, isLoopbackListener());
  if (dialled === undefined) return { code: "wrong_shard", message: "nothing here is known by that Host" };
  if (table.isRefusing) return { code: "node_draining" };
  if (!table.context.signer.isReady) return { code: "link_plane_unavailable" };
  const problem = handshakeProblem(request);
  if (problem !== undefined) return problem;
  const forwarded = headerLines(request, "x-forwarded-for");
  const address = clientAddress(request.socket.remoteAddress, forwarded, proxies);
  if (!table.handshaking.hasRoomFor(address)) return { code: "overloaded" };
  return { role, dialled, address };
}

function roleOf({ url }: IncomingMessage): LinkRole | undefined {
  const path = url?.split("?", 1)[0];
  if (path === LINK_PATH.box) return "box";
  return path === LINK_PATH.app ? "app" : undefined;
}

function isWebSocket(request: IncomingMessage): boolean {
  return request.method === "GET" && headerLines(request, "upgrade").join().toLowerCase() === "websocket";
}

/** What `ws` would refuse in words of its own. RFC 6455, 4.2.1. */
function handshakeProblem(request: IncomingMessage): UpgradeRefusal | undefined {
  const [key = "", ...otherKeys] = headerLines(request, "sec-websocket-key");
  if (!/^[+/0-9A-Za-z]{22}==$/.test(key) || otherKeys.length > 0)
    return { code: "invalid_request", message: "Sec-WebSocket-Key is missing or wrong" };
  if (headerLines(request, "sec-websocket-version").join() === "13") return undefined;
  return {
    code: "invalid_request",
    message: "Sec-WebSocket-Version is not 13",
    headers: { "Sec-WebSocket-Version": "13" },
  };
}

function refuse(
  table: LinkTable,
  socket: Duplex,
  { code, message, headers }: UpgradeRefusal,
  runtime: Runtime,
): void {
  table.context.metrics.handshakes.inc("refused");
  table.context.watch.handshakeFailed();
  const error = new ProtocolError(code, {
    ...(message === undefined ? {} : { message }),
    ...(code === "wrong_shard" || code === "invalid_request" ? {} : { retryAfterS: RETRY_AFTER_S }),
  });
  refuseUpgrade(socket, error, runtime, headers);
}

/** A field's separate lines. `name` in lower case. */
function headerLines({ rawHeaders }: IncomingMessage, name: string): string[] {
  return rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name);
}

function ignoreError(): void {}
