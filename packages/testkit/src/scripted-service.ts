// A service whose every byte a test decides: raw answers, faults and silence, for clients on real sockets.
//
// Spec: R6, R14, R17, R18 (what a client does about heads, bodies and endings no HTTP library would produce).
// I1  Every request that reaches it is recorded, raw header lines in order, before it is answered.
// I2  It speaks TCP, not node:http: nothing adds, joins or repairs a line.

import { createServer, type Server, type Socket } from "node:net";
import { claimPort } from "./ports.ts";
import { RawRequestReader, type ScriptedRequest } from "./raw-request.ts";
import { within } from "./within.ts";

export type { ScriptedRequest } from "./raw-request.ts";

/** What the service does with one request. */
export type ScriptedAnswer =
  /** A well-formed answer with a Content-Length; `headers` are written as they stand. */
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly headers?: readonly (readonly [name: string, value: string])[];
      readonly body?: string | Uint8Array;
    }
  /** Exactly these bytes, then the connection is closed, unless `keepOpen`. */
  | { readonly kind: "raw"; readonly bytes: string | Uint8Array; readonly keepOpen?: boolean }
  /** These bytes (default none), then a TCP reset. */
  | { readonly kind: "reset"; readonly bytes?: string | Uint8Array }
  /** These bytes (default none), then silence until the client or the test goes away. */
  | { readonly kind: "hang"; readonly bytes?: string | Uint8Array };

/** Decides what happens to a request; may take its time. */
export type ScriptedHandler = (request: ScriptedRequest) => ScriptedAnswer | Promise<ScriptedAnswer>;

/** A running scripted service. */
export interface ScriptedService {
  /** `http://127.0.0.1:<port>`. */
  readonly origin: string;
  /** Every request so far, in order of arrival. */
  readonly requests: readonly ScriptedRequest[];
  /** Requests whose path ends in `/poll`. */
  readonly polls: readonly ScriptedRequest[];
  /** Requests whose path ends in `/response`. */
  readonly responses: readonly ScriptedRequest[];
  /** Connections accepted so far. */
  readonly connectionCount: number;
  /** Resolves once `predicate` holds for the requests so far. */
  untilSeen(what: string, predicate: (requests: readonly ScriptedRequest[]) => boolean): Promise<void>;
  /** Stops listening and keeps the connections there are: new ones are refused until `listenAgain`. */
  refuseConnections(): void;
  /** Whether it listens. */
  readonly isListening: boolean;
  /** Listens on the same port again. */
  listenAgain(): Promise<void>;
  close(): Promise<void>;
}

const OK: ScriptedAnswer = { kind: "answer", status: 200, body: '{"status":"ok"}' };

/** Answers of a service that has nothing to do: polls hang, responses are accepted. */
export function idleService(request: ScriptedRequest): ScriptedAnswer {
  return request.path.endsWith("/poll") ? { kind: "hang" } : OK;
}

/** Starts a service on a free loopback port. */
export async function startScriptedService(handler: ScriptedHandler): Promise<ScriptedService> {
  const requests: ScriptedRequest[] = [];
  const sockets = new Set<Socket>();
  let waiting: { predicate: (requests: readonly ScriptedRequest[]) => boolean; resolve: () => void }[] = [];
  let connectionCount = 0;
  const onConnection = (socket: Socket) => {
    connectionCount += 1;
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    const reader = new RawRequestReader((request) => {
      requests.push(request);
      const seen = waiting.filter(({ predicate }) => predicate(requests));
      waiting = waiting.filter((waiter) => !seen.includes(waiter));
      for (const { resolve } of seen) resolve();
      void Promise.resolve(handler(request)).then((answer) => play(socket, answer));
    });
    socket.on("data", (chunk) => reader.feed(chunk));
  };
  const port = await claimPort();
  let server = await listen(onConnection, port);
  const stop = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await within(closed, "the scripted service to close");
  };
  const withSuffix = (suffix: string) => requests.filter(({ path }) => path.endsWith(suffix));
  return {
    origin: `http://127.0.0.1:${port}`,
    requests,
    get polls() {
      return withSuffix("/poll");
    },
    get responses() {
      return withSuffix("/response");
    },
    get connectionCount() {
      return connectionCount;
    },
    untilSeen: (what, predicate) => {
      if (predicate(requests)) return Promise.resolve();
      const seen = new Promise<void>((resolve) => waiting.push({ predicate, resolve }));
      return within(seen, what, undefined, () =>
        requests.map(({ method, path }) => `${method} ${path}`).join("\n"),
      );
    },
    refuseConnections: () => void server.close(),
    get isListening() {
      return server.listening;
    },
    listenAgain: async () => {
      server = await listen(onConnection, port);
    },
    close: stop,
  };
}

function listen(onConnection: (socket: Socket) => void, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer({ noDelay: true }, onConnection);
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}

function play(socket: Socket, answer: ScriptedAnswer): void {
  switch (answer.kind) {
    case "answer":
      socket.write(encodeAnswer(answer));
      return;
    case "raw":
      if (answer.keepOpen === true) socket.write(answer.bytes);
      else socket.end(answer.bytes);
      return;
    case "reset":
      // Node sends RST only for a socket whose bytes are out.
      if (answer.bytes === undefined) socket.resetAndDestroy();
      else socket.write(answer.bytes, () => socket.resetAndDestroy());
      return;
    case "hang":
      if (answer.bytes !== undefined) socket.write(answer.bytes);
      return;
  }
}

/** The bytes of a well-formed answer: values as latin1, 204 and 304 without a body. */
export function encodeAnswer(answer: Extract<ScriptedAnswer, { kind: "answer" }>): Buffer {
  const { status, headers = [], body = "" } = answer;
  const bytes = Buffer.from(body as string);
  const isBodyless = status === 204 || status === 304;
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
  if (!isBodyless) lines.push(`Content-Length: ${bytes.length}\r\n`);
  const head = Buffer.from(`HTTP/1.1 ${status} Scripted\r\n${lines.join("")}\r\n`, "latin1");
  return isBodyless ? head : Buffer.concat([head, bytes]);
}
