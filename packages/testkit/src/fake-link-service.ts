// A service of links whose every answer a test decides: real sockets, one port and one certificate for base and shards.
//
// Spec: L1–L3, L9–L11, L27–L34 (what clients do about each of them).
// I1  Every dial and every request waits until the test has said what becomes of it. I2  It has no timers of its own.
// I3  No TLS session is resumed: every dial sees a certificate.

import { constants, createHash, generateKeyPairSync, type KeyObject } from "node:crypto";
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createSecureContext } from "node:tls";
import { encodeBase64url, serviceKeyId } from "@moor/protocol";
import { WebSocketServer } from "ws";
import { FakeLink } from "./fake-link.ts";
import { Inbox } from "./inbox.ts";
import { claimPort } from "./ports.ts";
import { makeLinkCertificates, type CertificateKind, type LinkCertificates } from "./link-certificates.ts";

/** A key the service signs with. */
export interface FakeServiceKey {
  /** First 16 characters of base64url(SHA-256(raw key)). */
  readonly id: string;
  /** Raw, base64url. */
  readonly publicKey: string;
  readonly privateKey: KeyObject;
}

/** Someone who wants a link. */
export interface FakeDial {
  /** Host header without port. */
  readonly host: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  /** Answers 101. */
  upgrade(): FakeLink;
  /** Answers something else, with these field lines. */
  answer(status: number, headers?: Readonly<Record<string, string>>, body?: string): void;
  /** Breaks the connection. */
  reset(): void;
}

/** A TLS handshake that has begun. */
export interface FakeTlsHello {
  /** The name the client asks for. */
  readonly host: string;
  /** Goes on with this certificate. */
  proceed(kind?: CertificateKind): void;
  /** Breaks the connection. */
  reset(): void;
}

/** A one-shot. */
export interface FakeRequest {
  readonly host: string;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
  /** Answers; a field with several values is several lines. */
  answer(status: number, headers?: Readonly<Record<string, string | readonly string[]>>, body?: string): void;
  /** Breaks the connection. */
  reset(): void;
}

/** What a service is started with. */
export interface FakeLinkServiceOptions {
  /** Host of the endpoint. Default `moor.localhost`. */
  readonly base?: string;
  /** Names in its certificate. Default: the base, and a wildcard under it. */
  readonly names?: readonly string[];
  /** Whether it speaks TLS. Default true. */
  readonly isSecure?: boolean;
  /** Whether every TLS handshake with a name waits until the test has said what becomes of it. Default false. */
  readonly isTlsHeld?: boolean;
}

/** A running service. */
export interface FakeLinkService {
  readonly base: string;
  readonly port: number;
  /** `wss://BASE:PORT`, or `ws`. */
  readonly endpoint: string;
  /** Of the good certificates; undefined without TLS. */
  readonly certificates: LinkCertificates | undefined;
  /** What clients are configured with. */
  readonly key: FakeServiceKey;
  /** Dials in order, each once. */
  readonly dials: Inbox<FakeDial>;
  /** TLS handshakes in order, each once, if they are held. */
  readonly tlsHellos: Inbox<FakeTlsHello>;
  /** One-shots in order, each once. */
  readonly requests: Inbox<FakeRequest>;
  /** Hosts of all dials so far. */
  readonly dialled: readonly string[];
  /** TLS handshakes that clients ended. */
  readonly tlsFailureCount: number;
  /** Shows another certificate at this host from now on. */
  setCertificate(host: string, kind: CertificateKind): void;
  /** Listens no more, keeps what is connected. */
  refuse(): Promise<void>;
  /** Listens on the same port again. */
  listen(): Promise<void>;
  close(): Promise<void>;
}

/** A new Ed25519 key. */
export function makeServiceKey(): FakeServiceKey {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const raw = publicKey.export({ type: "spki", format: "der" }).subarray(-32);
  const id = serviceKeyId(createHash("sha256").update(raw).digest());
  return { id, publicKey: encodeBase64url(raw), privateKey };
}

/** Starts a service on a free loopback port. */
export async function startFakeLinkService(options: FakeLinkServiceOptions = {}): Promise<FakeLinkService> {
  const { base = "moor.localhost", isSecure = true } = options;
  const state = new ServiceState(base, options);
  const port = await claimPort();
  await state.listen(port);
  return {
    base,
    port,
    endpoint: `${isSecure ? "wss" : "ws"}://${base}:${port}`,
    certificates: state.certificates,
    key: state.key,
    dials: state.dials,
    tlsHellos: state.tlsHellos,
    requests: state.requests,
    dialled: state.dialled,
    get tlsFailureCount() {
      return state.tlsFailureCount;
    },
    setCertificate: (host, kind) => void state.kinds.set(host, kind),
    refuse: () => state.refuse(),
    listen: () => state.listen(port),
    close: () => state.close(),
  };
}

class ServiceState {
  readonly key = makeServiceKey();
  readonly dials = new Inbox<FakeDial>("a dial");
  readonly tlsHellos = new Inbox<FakeTlsHello>("a TLS handshake");
  readonly requests = new Inbox<FakeRequest>("a one-shot");
  readonly dialled: string[] = [];
  readonly kinds = new Map<string, CertificateKind>();
  readonly certificates: LinkCertificates | undefined;
  tlsFailureCount = 0;
  readonly #webSockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  readonly #isTlsHeld: boolean;

  constructor(base: string, options: FakeLinkServiceOptions) {
    const { isSecure = true, isTlsHeld = false, names = [base, `*.${base}`] } = options;
    this.certificates = isSecure ? makeLinkCertificates(names) : undefined;
    this.#isTlsHeld = isTlsHeld;
  }

  async listen(port: number): Promise<void> {
    const server = this.#createServer();
    this.#server = server;
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.#sockets.delete(socket));
    });
    server.on("tlsClientError", () => (this.tlsFailureCount += 1));
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.#onUpgrade(request, socket, head);
    });
    server.on("request", (request: IncomingMessage, answer: ServerResponse) => {
      void this.#onRequest(request, answer);
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", resolve);
    });
  }

  refuse(): Promise<void> {
    const server = this.#server;
    // The connections that are open stay: only the port is given back, which `close` does at once.
    server?.close();
    return Promise.resolve();
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server?.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #createServer(): Server {
    const { certificates } = this;
    if (certificates === undefined) return createHttpServer();
    return createHttpsServer({
      ...certificates.get("good"),
      secureOptions: constants.SSL_OP_NO_TICKET,
      SNICallback: (host, done) => {
        const proceed = (kind: CertificateKind = this.kinds.get(host) ?? "good") =>
          done(
            null,
            createSecureContext({ ...certificates.get(kind), secureOptions: constants.SSL_OP_NO_TICKET }),
          );
        if (!this.#isTlsHeld) return proceed();
        this.tlsHellos.put({ host, proceed, reset: () => done(new Error("reset by the test")) });
      },
    });
  }

  #onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => {});
    const host = hostOf(request);
    this.dialled.push(host);
    this.dials.put({
      host,
      path: request.url ?? "",
      headers: request.headers,
      upgrade: () => {
        const link = new FakeLink(host, this.key);
        this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => link.attach(webSocket, socket));
        return link;
      },
      answer: (status, headers = {}, body = "") => {
        const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
        const length = `Content-Length: ${Buffer.byteLength(body)}\r\n`;
        socket.end(`HTTP/1.1 ${status} Fake\r\n${lines.join("")}${length}Connection: close\r\n\r\n${body}`);
      },
      reset: () => socket.destroy(),
    });
  }

  async #onRequest(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    this.requests.put({
      host: hostOf(request),
      method: request.method ?? "",
      path: request.url ?? "",
      headers: request.headers,
      body: Buffer.concat(chunks).toString("utf8"),
      answer: (status, headers = {}, body = "") => {
        for (const [name, value] of Object.entries(headers)) answer.setHeader(name, value);
        answer.writeHead(status).end(body);
      },
      reset: () => request.socket.destroy(),
    });
  }
}

function hostOf(request: IncomingMessage): string {
  return (request.headers.host ?? "").replace(/:\d+$/, "");
}
