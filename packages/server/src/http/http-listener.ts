// A node:http server that hands exchanges to one handler: limits, malformed requests, binding, closing.
//
// Spec: T3. I1  Every refusal that node:http would word itself is the envelope of T3.
// I2  Bytes that are no HTTP never get an answer in the place of an exchange's own: a call that may run is not told 400.

import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { createServer as createTlsServer } from "node:https";
import { Server as NetServer, type AddressInfo, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { isLoopbackHost, ProtocolError } from "@moor/protocol";
import type { Logger, Runtime, TimerHandle } from "@moor/runtime";
import {
  ACCEPT_TURNS_MAX,
  CLOSE_FLUSH_MS,
  CLOSE_LOOK_INTERVAL_MS,
  HEADER_BYTES_MAX,
  KEEP_ALIVE_MS,
  READ_STALL_MS,
  REQUEST_HEAD_MS,
  REQUEST_MS,
  TLS_HANDSHAKE_MS,
} from "../server-limits.ts";
import type { TlsFiles } from "../node-options.ts";
import type { HttpExchange, ReplyHeaders } from "./http-exchange.ts";
import { followCertificate, readListenerCertificate } from "./listener-tls.ts";
import { bindServer, type Binding } from "../bind-server.ts";
import { mintId } from "../mint-id.ts";
import { NodeExchange } from "./node-exchange.ts";
import { refuseMalformed } from "./raw-reply.ts";
import { replyError } from "./reply-error.ts";

/** Takes over connections whose clients ask to speak something else on them. */
export interface UpgradeHandler {
  /** Whether a request is its to take; others are answered as if they had not asked. */
  accepts(request: IncomingMessage): boolean;
  handle(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Ends what is left of the connections it took. */
  close(): void;
}

export interface HttpListenerOptions {
  readonly host: string;
  /** 0 = any free one. */
  readonly port: number;
  /** Certificate and key, PEM files, read anew when they change. Absent: plain HTTP. */
  readonly tls?: TlsFiles;
  /** Setting to name when the port cannot be had, e.g. `--port`. */
  readonly portOption: string;
  /** Let another process of this user that says so too listen at the same port. Default false. */
  readonly isPortShared?: boolean;
  /** Number of an inherited socket that listens already, instead of host and port. */
  readonly fd?: number;
  /** Path of a Unix socket to listen at, instead of host and port. */
  readonly unixPath?: string;
  readonly runtime: Runtime;
  readonly logger: Logger;
  readonly isLeaving: () => boolean;
  readonly handle: (exchange: HttpExchange) => void | Promise<void>;
  /** What the answer to a request whose handler failed carries beside the envelope. Default: nothing. */
  readonly errorHeaders?: (exchange: HttpExchange) => ReplyHeaders;
  /** Default: no connection is taken over. */
  readonly upgrades?: UpgradeHandler;
  /** How long an answer may wait for its peer to read on. Milliseconds, default READ_STALL_MS. */
  readonly readStallMs?: number;
  /** How long a peer has for its TLS handshake. Milliseconds, default TLS_HANDSHAKE_MS. */
  readonly tlsHandshakeMs?: number;
}

export interface HttpListener {
  /** Address that is bound: an inherited socket's own. Empty for a Unix socket. */
  readonly address: string;
  /** Port that is bound. */
  readonly port: number;
  /**
   * Takes no more connections; those there are served on. A connection that this process has not accepted yet is reset,
   * unless another process holds the same socket or the system passes it on (Linux: net.ipv4.tcp_migrate_req), so the
   * queue is emptied first.
   */
  stopAccepting(): Promise<void>;
  /** Stops accepting, lets answers under way reach their peers for up to CLOSE_FLUSH_MS, then cuts. */
  close(): Promise<void>;
}

/** Binds and serves. Throws ConfigError when the address is taken or not allowed. */
export async function openHttpListener(options: HttpListenerOptions): Promise<HttpListener> {
  const { runtime, isLeaving, upgrades, readStallMs = READ_STALL_MS } = options;
  const context = { runtime, isLeaving, isLoopbackListener: false, readStallMs };
  const newest = new WeakMap<Duplex, NodeExchange>();
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    const exchange = new NodeExchange(request, response, context);
    newest.set(request.socket, exchange);
    void run(options, exchange);
  };
  const serverOptions = {
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: REQUEST_HEAD_MS,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    noDelay: true,
    // Without a Host header node:http would answer by itself, without the envelope of T3.
    requireHostHeader: false,
    shouldUpgradeCallback: (request: IncomingMessage) => upgrades?.accepts(request) ?? false,
  };
  const { server, follow } = createListenerServer(options, serverOptions, serve);
  // Beyond a number of lines node:http would drop the rest unseen; HEADER_BYTES_MAX bounds them.
  server.maxHeadersCount = 0;
  // An expectation nobody knows is no reason to refuse (RFC 9110, 10.1.1).
  server.on("checkExpectation", serve);
  if (upgrades !== undefined) {
    server.on("upgrade", (request, socket, head) => {
      try {
        upgrades.handle(request, socket, head);
      } catch (thrown) {
        reportBug(options, mintId("req", runtime), thrown);
        socket.destroy();
      }
    });
  }
  const connections = trackConnections(server);
  server.on("clientError", (_error, socket) => answerMalformed(socket, newest.get(socket), runtime));
  await bindServer(server, bindingOf(options), (reason) => {
    options.logger.warn("listener-failed", { reason });
  });
  const stop = follow();
  const { address, port } = boundAddress(server);
  context.isLoopbackListener = isLoopbackHost(address === "" ? options.host : address);
  return {
    address,
    port,
    stopAccepting: () => stopAccepting(server),
    close: () => {
      stop();
      upgrades?.close();
      return closeServer(server, connections, runtime);
    },
  };
}

function boundAddress(server: Server): Pick<AddressInfo, "address" | "port"> {
  const bound = server.address();
  return typeof bound === "object" && bound !== null ? bound : { address: "", port: 0 };
}

function bindingOf({
  host,
  port,
  portOption: option,
  isPortShared = false,
  fd,
  unixPath,
}: HttpListenerOptions): Binding {
  const inherited = fd === undefined ? {} : { fd };
  return { host, port, option, isPortShared, ...inherited, ...(unixPath === undefined ? {} : { unixPath }) };
}

/**
 * Closes the listening socket right after a turn of the event loop that took nobody in: each turn accepts all that wait.
 * node:http would end the connections that are idle at this moment too.
 */
async function stopAccepting(server: Server): Promise<void> {
  let accepted = 0;
  const count = () => (accepted += 1);
  server.on("connection", count);
  for (let turn = 0; turn < ACCEPT_TURNS_MAX; turn += 1) {
    const before = accepted;
    await new Promise(setImmediate);
    if (turn > 0 && accepted === before) break;
  }
  server.off("connection", count);
  NetServer.prototype.close.call(server);
}

/** The server, and how to follow its certificate once it is bound: that gives how to stop. */
function createListenerServer(
  options: HttpListenerOptions,
  serverOptions: ServerOptions,
  serve: (request: IncomingMessage, response: ServerResponse) => void,
): { readonly server: Server; readonly follow: () => () => void } {
  const { tls, tlsHandshakeMs = TLS_HANDSHAKE_MS } = options;
  if (tls === undefined) return { server: createServer(serverOptions, serve), follow: () => () => {} };
  const pair = readListenerCertificate(tls, "public.tls");
  const tlsOptions = { ...pair, ALPNProtocols: ["http/1.1"], handshakeTimeout: tlsHandshakeMs };
  const server = createTlsServer({ ...serverOptions, ...tlsOptions }, serve);
  return { server, follow: () => followCertificate(server, tls, options) };
}

/** The connections there are, those too of which node:http does not know (any more): in a TLS handshake, or refused. */
function trackConnections(server: Server): ReadonlySet<Socket> {
  const connections = new Set<Socket>();
  // One listener for all: thousands of them wait at once.
  function forget(this: Socket): void {
    connections.delete(this);
  }
  server.on("connection", (socket: Socket) => {
    connections.add(socket);
    socket.once("close", forget);
  });
  return connections;
}

/** Answers that are still being written reach their peers; connections that fall idle meanwhile end. */
function closeServer(server: Server, connections: ReadonlySet<Socket>, runtime: Runtime): Promise<void> {
  return new Promise((resolve) => {
    let look: TimerHandle | undefined;
    const cut = runtime.schedule(CLOSE_FLUSH_MS, () => {
      for (const connection of connections) connection.destroy();
    });
    const closeIdle = () => {
      server.closeIdleConnections();
      look = runtime.schedule(CLOSE_LOOK_INTERVAL_MS, closeIdle);
    };
    server.close(() => {
      runtime.cancel(cut);
      runtime.cancel(look);
      resolve();
    });
    closeIdle();
  });
}

/** A handler that throws is a bug: the peer gets `internal_error`, the log says which event. */
async function run(options: HttpListenerOptions, exchange: NodeExchange): Promise<void> {
  try {
    await options.handle(exchange);
  } catch (thrown) {
    reportBug(options, exchange.requestId, thrown);
    if (exchange.isAnswerBegun) exchange.destroy();
    else replyError(exchange, new ProtocolError("internal_error"), options.errorHeaders?.(exchange));
  }
}

function reportBug({ logger }: HttpListenerOptions, requestId: string, thrown: unknown): void {
  const error = thrown instanceof Error ? thrown : new Error("not an Error");
  logger.error("request-failed", { requestId, reason: error.message, stack: error.stack });
}

/**
 * Bytes that are no HTTP, or that stopped coming; a TLS handshake too, which nobody else ends. A body that turns bad is
 * refused through its own exchange; behind an exchange that waits for its answer only the connection can end (I2); else the
 * envelope is written by hand.
 */
function answerMalformed(socket: Duplex, exchange: NodeExchange | undefined, runtime: Runtime): void {
  const error = new ProtocolError("invalid_request", { message: "malformed HTTP request" });
  if (exchange !== undefined && !exchange.isAnswerWritten) {
    if (exchange.isAnswerBegun || !exchange.isBodyPending) socket.destroy();
    else replyError(exchange, error);
    return;
  }
  refuseMalformed(socket, error, runtime);
}
