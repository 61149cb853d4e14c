// Peer links over TCP: plain on loopback, TLS 1.3 with certificates on both sides everywhere else.
//
// Spec: docs/protocol/peer-link.md, "Transport".
// I1  Nothing leaves this machine, and nothing from elsewhere is accepted, without mutual TLS.
// I2  A certificate counts only if the authority of this residency signed it and it names a node.

import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { connect as connectTls, createServer as createTlsServer, TLSSocket } from "node:tls";
import { ConfigError, type Logger, type Runtime } from "@moor/runtime";
import { isLoopbackHost } from "@moor/protocol";
import { bindServer } from "../../bind-server.ts";
import { parseCertificateIdentity } from "./certificate-identity.ts";
import { encodeFrame, FRAME } from "./frame.ts";
import { parseInternalUrl } from "./internal-url.ts";
import type { LinkEnd } from "./link-end.ts";
import { RefusalLog } from "./refusal-log.ts";
import { TcpWire } from "./tcp-wire.ts";
import type { TlsFiles, TlsMaterial } from "./tls-files.ts";
import { CONNECT_MS_MAX, WRITE_BYTES_MAX } from "./transport-limits.ts";
import type { Dial, PeerTransport, Wire } from "./wire.ts";

export interface TcpTransportOptions {
  /** Absent: plain, and loopback only. */
  readonly tls?: TlsFiles;
  readonly runtime: Runtime;
  readonly logger: Logger;
  /** Setting to name when the address cannot be had or used. Default `internal`. */
  readonly option?: string;
}

const SOCKET_OPTIONS = { noDelay: true, highWaterMark: WRITE_BYTES_MAX } as const;

/** Makes the transport of a node. */
export function createTcpTransport(options: TcpTransportOptions): PeerTransport {
  return {
    dial: (url, opened, failed) => new TcpDial(options, opened, failed).start(url),
    listen: (host, port, accepted) => listen(options, host, port, accepted),
  };
}

class TcpDial implements Dial {
  readonly #options: TcpTransportOptions;
  readonly #opened: (wire: Wire) => void;
  readonly #failed: (reason: string) => void;
  #socket: Socket | undefined;
  #isDone = false;

  constructor(options: TcpTransportOptions, opened: (wire: Wire) => void, failed: (reason: string) => void) {
    this.#options = options;
    this.#opened = opened;
    this.#failed = failed;
  }

  start(url: string): this {
    const { tls, runtime } = this.#options;
    const address = parseInternalUrl(url);
    if (address === undefined) return this.#failSoon("bad-url");
    if (tls === undefined && !isLoopbackHost(address.host)) return this.#failSoon("needs-tls");
    const socket = tls === undefined ? connect({ ...address, ...SOCKET_OPTIONS }) : dialTls(tls, address);
    this.#socket = socket;
    const timer = runtime.schedule(CONNECT_MS_MAX, () => this.#fail("connect-late"));
    socket.once("close", () => runtime.cancel(timer));
    socket.on("error", (error: NodeJS.ErrnoException) => this.#fail(error.code ?? "failed"));
    socket.once(tls === undefined ? "connect" : "secureConnect", () => {
      runtime.cancel(timer);
      this.#succeed(socket);
    });
    return this;
  }

  cancel(): void {
    this.#isDone = true;
    this.#socket?.destroy();
  }

  #succeed(socket: Socket): void {
    if (this.#isDone) return;
    const wire = toWire(socket, this.#options.runtime);
    if (wire === undefined) return this.#fail("certificate-names-no-node");
    this.#isDone = true;
    this.#opened(wire);
  }

  #fail(reason: string): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#socket?.destroy();
    this.#failed(reason);
  }

  #failSoon(reason: string): this {
    setImmediate(() => this.#fail(reason));
    return this;
  }
}

function dialTls(tls: TlsFiles, address: { host: string; port: number }): TLSSocket {
  return connectTls({
    ...address,
    ...SOCKET_OPTIONS,
    secureContext: tls.current().context,
    minVersion: "TLSv1.3",
    // The name to check is the node's, not the host's: LinkCore compares it with the hello.
    checkServerIdentity: () => undefined,
  });
}

/** The wire on an open socket; undefined when its certificate names no node. */
function toWire(socket: Socket, runtime: Runtime): Wire | undefined {
  if (!(socket instanceof TLSSocket)) return new TcpWire(socket, undefined, runtime);
  const identity = parseCertificateIdentity(socket.getPeerX509Certificate()?.subjectAltName);
  return identity === undefined ? undefined : new TcpWire(socket, identity, runtime);
}

async function listen(
  options: TcpTransportOptions,
  host: string,
  port: number,
  accepted: (wire: Wire) => void,
): Promise<{ readonly port: number; close(): Promise<void> }> {
  const { tls, option = "internal" } = options;
  if (tls === undefined && !isLoopbackHost(host)) {
    throw new ConfigError(`${option}.host`, host, `a loopback address, or certificates in ${option}.tls`);
  }
  const take = (socket: Socket) => {
    const wire = toWire(socket, options.runtime);
    if (wire === undefined) return void socket.destroy();
    accepted(wire);
  };
  const server =
    tls === undefined ? createServer(SOCKET_OPTIONS, take) : createMutualTlsServer(tls, options, take);
  await bindServer(server, { host, port, option: `${option}.port` }, (reason) =>
    options.logger.warn("peer-listener-failed", { reason }),
  );
  return {
    port: (server.address() as AddressInfo).port,
    close: () => new Promise<void>((resolve) => void server.close(() => resolve())),
  };
}

function createMutualTlsServer(
  tls: TlsFiles,
  { runtime, logger }: TcpTransportOptions,
  take: (socket: TLSSocket) => void,
): Server {
  const refusals = new RefusalLog(logger);
  let inUse = tls.current();
  const server = createTlsServer(
    {
      ...pemOf(inUse),
      ...SOCKET_OPTIONS,
      requestCert: true,
      // Judged below: Node's own refusal would say nothing of why.
      rejectUnauthorized: false,
      handshakeTimeout: CONNECT_MS_MAX,
    },
    (socket) => {
      if (socket.authorized) take(socket);
      else refuseCertificate(socket, runtime, refusals);
    },
  );
  server.prependListener("connection", () => {
    const newest = tls.current();
    if (newest === inUse) return;
    inUse = newest;
    server.setSecureContext(pemOf(newest));
  });
  server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
    logger.debug("peer-tls-refused", { remote: socket.remoteAddress, reason: error.code ?? "failed" });
  });
  return server;
}

/** Says so on both sides: Node sends no TLS alert for this, so the other side would only see a connection that ended. */
function refuseCertificate(socket: TLSSocket, runtime: Runtime, refusals: RefusalLog): void {
  const wire = new TcpWire(socket, undefined, runtime);
  const cause = String(socket.authorizationError);
  refusals.note({ peer: "", remote: wire.remote, by: "self", reason: "certificate", cause });
  wire.write([encodeFrame(FRAME.close, Buffer.from("certificate-refused" satisfies LinkEnd))]);
  wire.close();
}

function pemOf({ ca, cert, key }: TlsMaterial) {
  return { ca, cert, key, minVersion: "TLSv1.3" } as const;
}
