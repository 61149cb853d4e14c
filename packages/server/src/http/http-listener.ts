// A node:http server that hands exchanges to one handler: limits, malformed requests, binding, closing.

import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { encodeErrorEnvelope, ProtocolError } from "@moor/protocol";
import { ConfigError, type Logger, type Runtime } from "@moor/runtime";
import {
  HEADER_BYTES_MAX,
  KEEP_ALIVE_MS,
  LISTEN_BACKLOG,
  REQUEST_HEAD_MS,
  REQUEST_MS,
} from "../server-limits.ts";
import type { HttpExchange } from "./http-exchange.ts";
import { createNodeExchange } from "./node-exchange.ts";
import { replyError } from "./reply-error.ts";

export interface HttpListenerOptions {
  readonly host: string;
  /** 0 = any free one. */
  readonly port: number;
  /** Setting to name when the port cannot be had, e.g. `--port`. */
  readonly portOption: string;
  readonly runtime: Runtime;
  readonly logger: Logger;
  readonly isLeaving: () => boolean;
  readonly handle: (exchange: HttpExchange) => void | Promise<void>;
}

export interface HttpListener {
  /** Port that is bound. */
  readonly port: number;
  /** Stops accepting; idle connections end at once, busy ones when their answer is complete. */
  stopAccepting(): void;
  /** Resolves once every connection is closed; cuts those still open. */
  close(): Promise<void>;
}

/** Binds and serves. Throws ConfigError when the address is taken or not allowed. */
export async function openHttpListener(options: HttpListenerOptions): Promise<HttpListener> {
  const isLoopbackListener = isLoopbackHost(options.host);
  const server = createServer(
    {
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: REQUEST_HEAD_MS,
      requestTimeout: REQUEST_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      noDelay: true,
    },
    (request, response) => {
      const exchange = createNodeExchange(request, response, { ...options, isLoopbackListener });
      void run(options, exchange);
    },
  );
  server.on("clientError", (_error, socket) => answerMalformed(socket as Socket));
  await listen(server, options);
  return {
    port: (server.address() as AddressInfo).port,
    stopAccepting: () => {
      server.close();
      server.closeIdleConnections();
    },
    close: () =>
      new Promise((resolve) => {
        if (!server.listening) {
          server.closeAllConnections();
          return resolve();
        }
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A host name or address that only this machine can reach. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, "");
  return (
    name === "localhost" || name.endsWith(".localhost") || name === "::1" || /^127(\.\d{1,3}){3}$/.test(name)
  );
}

/** A handler that throws is a bug: the peer gets `internal_error`, the log says which event. */
async function run(options: HttpListenerOptions, exchange: HttpExchange): Promise<void> {
  try {
    await options.handle(exchange);
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error("not an Error");
    options.logger.error("request-failed", {
      requestId: exchange.requestId,
      reason: error.message,
      stack: error.stack,
    });
    if (!exchange.isGone) replyError(exchange, new ProtocolError("internal_error"));
  }
}

function answerMalformed(socket: Socket): void {
  if (!socket.writable) return void socket.destroy();
  const body = encodeErrorEnvelope(
    new ProtocolError("invalid_request", { message: "malformed HTTP request" }),
  );
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

function listen(server: Server, options: HttpListenerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) => {
      const got = `${options.host}:${options.port} (${error.code ?? "unknown error"})`;
      const expected =
        error.code === "EADDRINUSE"
          ? "a port nobody else listens on, or 0 for any free one"
          : "an address to bind";
      reject(new ConfigError(options.portOption, got, expected));
    };
    server.once("error", onError);
    server.listen({ host: options.host, port: options.port, backlog: LISTEN_BACKLOG }, () => {
      server.off("error", onError);
      resolve();
    });
  });
}
