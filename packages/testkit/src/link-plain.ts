// A link client as small as the wire allows, written from the protocol's text and not from the client library: it
// dials, says hello, proves itself, checks the signature of hello_ok, and hands on every frame. It follows nothing and
// never redials: that is its user's to decide.
//
// Spec: L27–L30, L32. I1  What it says in hello is what it was given: it can be an old, a wrong or a hostile client.

import { createPrivateKey, createPublicKey, randomBytes, sign, verify, type KeyObject } from "node:crypto";
import type { LookupFunction } from "node:net";
import { WebSocket } from "ws";

/** Where and as whom a plain client dials. */
export interface PlainDial {
  /** Origin with or without a path prefix: `ws://moor.localhost:8080`. Names under `.localhost` lead to loopback. */
  readonly endpoint: string;
  readonly home: string;
  /** Default none: a client that does not follow. Spec L6. */
  readonly caps?: readonly string[];
  /** Raw service keys, base64url. Default: hello_ok is believed unchecked. */
  readonly serviceKeys?: readonly string[];
  /** Loopback address to dial from, e.g. `127.0.0.7`. Default: the system's choice. */
  readonly localAddress?: string;
  /** PEM of the authority that signed the service's certificate. */
  readonly ca?: string;
  /** Fields that replace those of an honest hello; undefined takes one away. */
  readonly hello?: Readonly<Record<string, unknown>>;
  /** Called when the upgrade is done, before hello: when dials are counted. */
  readonly onOpen?: () => void;
}

/** A box: who it is, and the private key it proves it with. */
export interface PlainBoxDial extends PlainDial {
  /** Ed25519 private key; a wrong one makes a wrong proof. */
  readonly key: KeyObject;
}

/** An app: its token and its instance id. */
export interface PlainAppDial extends PlainDial {
  readonly token: string;
  readonly app: string;
}

/** What a verified hello_ok says. Spec L28. */
export interface PlainHelloOk {
  readonly host: string;
  readonly generation: string;
  readonly pingMs: number;
  readonly spreadMs: number | undefined;
}

/** How a link ended. */
export interface PlainClose {
  readonly code: number;
  readonly reason: string;
}

/** A frame as it arrived; `data` is parsed JSON, for ledgers. */
export type PlainFrame = Readonly<Record<string, unknown>> & { readonly t: string };

/** A link after hello_ok. */
export interface PlainLink {
  readonly helloOk: PlainHelloOk;
  readonly closed: Promise<PlainClose>;
  /** Sends one frame. */
  send(frame: Readonly<Record<string, unknown>>): void;
  /** Calls `take` for every frame from now on; pings are answered before. */
  onFrame(take: (frame: PlainFrame) => void): void;
  /** Closes with 1000. */
  close(): void;
  /** Ends the connection without a close frame, as a power cut. */
  destroy(): void;
}

/** How a dial ended. */
export type PlainDialEnding =
  | { readonly kind: "online"; readonly link: PlainLink }
  /** Closed after the upgrade and before hello_ok. */
  | ({ readonly kind: "closed" } & PlainClose)
  /** The upgrade was answered with another status than 101. */
  | { readonly kind: "refused"; readonly status: number }
  /** No answer, or a hello_ok that fails. `fault`: an error's code. */
  | { readonly kind: "failed"; readonly fault: string };

/** Longest wait from the dial to the 101, and from there to hello_ok. Milliseconds. Spec L15. */
const STEP_WAIT_MS = 15_000;

/** Dials as a box. Never rejects. */
export function dialPlainBox(dial: PlainBoxDial): Promise<PlainDialEnding> {
  return new PlainHandshake(dial, "/v1/box", {}, dial.key).ending;
}

/** Dials as an app. Never rejects. */
export function dialPlainApp(dial: PlainAppDial): Promise<PlainDialEnding> {
  return new PlainHandshake(dial, "/v1/app", { token: dial.token, app: dial.app }, undefined).ending;
}

/** The private key of `seed`, 32 bytes in base64url, as node:crypto wants it. */
export function boxKeyOf(seed: string): KeyObject {
  const der = Buffer.concat([
    Buffer.from("302e020100300506032b657004220420", "hex"),
    Buffer.from(seed, "base64url"),
  ]);
  return createPrivateKey({ key: der, format: "der", type: "pkcs8" });
}

/** The raw public half, base64url, of a private or public Ed25519 key. */
export function rawPublicKeyOf(key: KeyObject): string {
  const publicKey = key.type === "public" ? key : createPublicKey(key);
  return publicKey.export({ format: "jwk" }).x ?? "";
}

/** Names under `.localhost` are loopback (RFC 6761); the system's resolver does not say so everywhere. */
export const lookupLoopback: LookupFunction = (_hostname, options, callback) => {
  const address = { address: "127.0.0.1", family: 4 };
  if (options.all === true) callback(null, [address]);
  else callback(null, address.address, address.family);
};

class PlainHandshake {
  readonly ending: Promise<PlainDialEnding>;
  readonly #dial: PlainDial;
  readonly #host: string;
  readonly #key: KeyObject | undefined;
  readonly #nonce = randomBytes(32).toString("base64url");
  readonly #socket: WebSocket;
  #end: (ending: PlainDialEnding) => void = () => {};
  #take: ((frame: PlainFrame) => void) | undefined;
  #isOnline = false;
  #fault = "";
  #noteClosed: (close: PlainClose) => void = () => {};

  constructor(dial: PlainDial, path: string, fields: Record<string, unknown>, key: KeyObject | undefined) {
    const url = new URL(dial.endpoint.replace(/\/$/, "") + path);
    this.#dial = dial;
    this.#host = url.hostname.replaceAll(/[[\]]/g, "");
    this.#key = key;
    this.ending = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#socket = new WebSocket(url, {
      perMessageDeflate: false,
      handshakeTimeout: STEP_WAIT_MS,
      ...(this.#host.endsWith("localhost") ? { lookup: lookupLoopback } : {}),
      ...(dial.localAddress === undefined ? {} : { localAddress: dial.localAddress }),
      ...(dial.ca === undefined ? {} : { ca: dial.ca }),
    });
    this.#listen({ t: "hello", v: 1, home: dial.home, caps: dial.caps ?? [], nonce: this.#nonce, ...fields });
  }

  #listen(hello: Record<string, unknown>): void {
    const socket = this.#socket;
    socket.on("open", () => {
      this.#dial.onOpen?.();
      socket.send(JSON.stringify({ ...hello, ...this.#dial.hello }));
    });
    socket.on("message", (data: Buffer) => this.#receive(data));
    socket.on("unexpected-response", (request, response) => {
      request.destroy();
      this.#end({ kind: "refused", status: response.statusCode ?? 0 });
    });
    socket.on("error", (error: Error & { readonly code?: string }) => {
      this.#fault = error.code ?? error.name;
    });
    socket.on("close", (code, reason) => {
      const close = { code, reason: reason.toString() };
      if (this.#isOnline) return this.#noteClosed(close);
      this.#end(this.#fault === "" ? { kind: "closed", ...close } : { kind: "failed", fault: this.#fault });
    });
  }

  #receive(data: Buffer): void {
    const frame = JSON.parse(data.toString()) as PlainFrame;
    if (frame.t === "ping") this.#socket.send('{"t":"pong"}');
    if (this.#isOnline) return this.#take?.(frame);
    if (frame.t === "challenge") this.#prove(String(frame["nonce"]));
    if (frame.t === "hello_ok") this.#welcome(frame);
  }

  #prove(serviceNonce: string): void {
    if (this.#key === undefined) return;
    const lines = ["moor-link-proof-v1", this.#host, this.#dial.home, this.#nonce, serviceNonce];
    const sig = sign(null, Buffer.from(lines.join("\n")), this.#key).toString("base64url");
    this.#socket.send(JSON.stringify({ t: "proof", sig }));
  }

  #welcome(frame: PlainFrame): void {
    const { serviceKeys } = this.#dial;
    if (serviceKeys !== undefined && !this.#isSigned(frame, serviceKeys)) {
      this.#fault = "hello_ok_unverified";
      return this.#socket.terminate();
    }
    this.#isOnline = true;
    const closed = new Promise<PlainClose>((resolve) => {
      this.#noteClosed = resolve;
    });
    const spreadMs = frame["spread_ms"];
    const link: PlainLink = {
      helloOk: {
        host: String(frame["host"]),
        generation: String(frame["generation"]),
        pingMs: Number(frame["ping_ms"]),
        spreadMs: typeof spreadMs === "number" ? spreadMs : undefined,
      },
      closed,
      send: (out) => this.#socket.send(JSON.stringify(out)),
      onFrame: (take) => {
        this.#take = take;
      },
      close: () => this.#socket.close(1000),
      destroy: () => this.#socket.terminate(),
    };
    this.#end({ kind: "online", link });
  }

  #isSigned(frame: PlainFrame, serviceKeys: readonly string[]): boolean {
    const { host, generation, sig, next_key: nextKey } = frame;
    const lines = ["moor-link-hello-ok-v1", this.#host, this.#dial.home, this.#nonce, generation];
    const bytes = Buffer.from([...lines, ...(nextKey === undefined ? [] : [nextKey])].join("\n"));
    const signature = Buffer.from(String(sig), "base64url");
    return host === this.#host && serviceKeys.some((raw) => verify(null, bytes, keyOf(raw), signature));
  }
}

const publicKeys = new Map<string, KeyObject>();

function keyOf(raw: string): KeyObject {
  const known = publicKeys.get(raw);
  if (known !== undefined) return known;
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: raw }, format: "jwk" });
  publicKeys.set(raw, key);
  return key;
}
