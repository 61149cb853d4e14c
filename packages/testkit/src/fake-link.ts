// The service's end of one link, in a test's hands.
//
// Spec: L10, L11, L27–L32.
// I1  Nothing is answered by itself, but for pings where a test asked for it.

import { createPublicKey, sign, verify } from "node:crypto";
import type { Duplex } from "node:stream";
import {
  decodeBase64url,
  encodeBase64url,
  encodeLinkFrame,
  linkHelloOkBytes,
  linkProofBytes,
  type AppFrame,
  type AppHelloFrame,
  type BoxFrame,
  type BoxHelloFrame,
  type LinkFrame,
} from "@moor/protocol";
import type { WebSocket } from "ws";
import type { FakeServiceKey } from "./fake-link-service.ts";
import { Inbox } from "./inbox.ts";

/** A frame as a client sent it. */
export type ClientFrame = BoxFrame | AppFrame;

/** What a hello_ok says; all of it has sound defaults. */
export interface HelloOkWords {
  readonly host?: string;
  readonly home?: string;
  readonly generation?: string;
  readonly ping_ms?: number;
  readonly spread_ms?: number;
  readonly next_key?: string;
  /** Signs with this key. */
  readonly by?: FakeServiceKey;
  /** Names this key, whoever signs. */
  readonly key?: string;
  /** Signs for a hello with this nonce. */
  readonly clientNonce?: string;
  /** One bit of the signature is wrong. */
  readonly isForged?: boolean;
}

/** How a client ended a link: its close code, 1006 for a connection that broke. */
export interface ClientClose {
  readonly code: number;
}

const SERVICE_NONCE = encodeBase64url(new Uint8Array(32).fill(7));
const SPKI_PREFIX = Buffer.from("302a300506032b6570032100", "hex");
let generation = 0;

/** One link. */
export class FakeLink {
  /** Host dialled. */
  readonly host: string;
  /** Frames in order, each once. */
  readonly frames = new Inbox<ClientFrame>("a frame");
  readonly #key: FakeServiceKey;
  readonly #closed = Promise.withResolvers<ClientClose>();
  readonly #ready = Promise.withResolvers<WebSocket>();
  #stream: Duplex | undefined;
  #hello: BoxHelloFrame | AppHelloFrame | undefined;

  constructor(host: string, key: FakeServiceKey) {
    this.host = host;
    this.#key = key;
  }

  /** Takes the socket once it is upgraded. */
  attach(webSocket: WebSocket, stream: Duplex): void {
    this.#stream = stream;
    webSocket.on("error", () => {});
    webSocket.on("message", (data) =>
      this.frames.put(JSON.parse((data as Buffer).toString("utf8")) as ClientFrame),
    );
    webSocket.on("close", (code) => this.#closed.resolve({ code }));
    this.#ready.resolve(webSocket);
  }

  /** Resolves when the link has ended, whoever ended it. */
  get closed(): Promise<ClientClose> {
    return this.#closed.promise;
  }

  /** The next frame, which must be of this kind; pings before it are answered. */
  async expect<Kind extends ClientFrame["t"]>(
    kind: Kind,
  ): Promise<Extract<ClientFrame, { readonly t: Kind }>> {
    for (;;) {
      const frame = await this.frames.take();
      if (frame.t === kind) return frame as Extract<ClientFrame, { readonly t: Kind }>;
      if (frame.t !== "ping") throw new Error(`a ${kind} frame was expected, a ${frame.t} came`);
      await this.send({ t: "pong" });
    }
  }

  /** The client's hello. */
  async hello(): Promise<BoxHelloFrame | AppHelloFrame> {
    this.#hello ??= await this.expect("hello");
    return this.#hello;
  }

  /** Sends a frame, or any text. */
  async send(frame: LinkFrame | string): Promise<void> {
    const webSocket = await this.#ready.promise;
    webSocket.send(typeof frame === "string" ? frame : encodeLinkFrame(frame));
  }

  async sendBinary(bytes: Uint8Array): Promise<void> {
    (await this.#ready.promise).send(bytes);
  }

  /** Challenges a box; whether its proof is this public key's (raw, base64url). */
  async challenge(publicKey: string): Promise<boolean> {
    const { home, nonce } = await this.hello();
    await this.send(`{"t":"challenge","nonce":"${SERVICE_NONCE}"}`);
    const { sig } = await this.expect("proof");
    const message = linkProofBytes({
      host: this.host,
      home,
      clientNonce: nonce,
      serviceNonce: SERVICE_NONCE,
    });
    const spki = Buffer.concat([SPKI_PREFIX, decodeBase64url(publicKey) ?? Buffer.alloc(0)]);
    const key = createPublicKey({ key: spki, format: "der", type: "spki" });
    return verify(null, message, key, decodeBase64url(sig) ?? Buffer.alloc(0));
  }

  /** The text of a hello_ok for this dial. */
  async helloOkText(words: HelloOkWords = {}): Promise<string> {
    const hello = await this.hello();
    const { by = this.#key, isForged = false, key = by.id, clientNonce = hello.nonce, ...said } = words;
    generation += 1;
    const parts = { host: this.host, home: hello.home as string, generation: String(generation), ...said };
    const { host, home, next_key: nextKey } = parts;
    const signed = { host, home, clientNonce, generation: parts.generation, nextKey };
    const signature = sign(null, linkHelloOkBytes(signed), by.privateKey);
    if (isForged) signature[40] = (signature[40] ?? 0) ^ 1;
    const sig = encodeBase64url(signature);
    return JSON.stringify({ t: "hello_ok", ...parts, key, sig });
  }

  /** Takes the client in: hello_ok, without a challenge. */
  async welcome(words: HelloOkWords = {}): Promise<void> {
    await this.send(await this.helloOkText(words));
  }

  /** Closes with a code and reason. */
  async close(code: number, reason = ""): Promise<void> {
    (await this.#ready.promise).close(code, reason);
  }

  /** Breaks the connection, without a close frame. */
  drop(): void {
    this.#stream?.destroy();
  }
}
