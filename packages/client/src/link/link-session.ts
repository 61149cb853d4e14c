// One dial, from its first byte to its end: handshake, verification, frames.
//
// Spec: L9, L10, L15, L27–L30, L32.
// I1  Before a hello_ok has verified only hello and, once, proof are sent (L10), and no frame is passed on.
// I2  What arrives while a signature is checked waits for the verdict, closes too (L10).
// I3  onEnd is called once, last. I4  A malformed hello_ok or challenge ends the dial before any signature is made or checked.

import {
  CLOSE_CODE,
  DIAL_WAIT_MS,
  encodeBase64url,
  encodeLinkFrame,
  HELLO_OK_WAIT_MS,
  linkProofBytes,
  parseLinkFrame,
  parseNonce,
  parseSignature,
  type AppHelloFrame,
  type Base64url32,
  type BoxHelloFrame,
  type HelloOkFrame,
  type HomeId,
  type LinkFrame,
  type LinkTrouble,
  type ServiceFrame,
} from "@moor/protocol";
import { invariant, type Runtime, type TimerHandle } from "@moor/runtime/portable";
import type { VerifySignature } from "./ed25519.ts";
import { judgeHelloOk } from "./hello-ok.ts";
import type { LinkUrl } from "./link-endpoint.ts";
import { LinkPulse } from "./link-pulse.ts";
import type { LinkDialler, LinkSocket, SocketEnd } from "./link-socket.ts";
import type { ServiceKeys } from "./service-keys.ts";
import { dialEnd, linkEnd, type SessionEnd } from "./session-end.ts";

/** What a session says for its client. */
export interface LinkRole {
  readonly home: HomeId;
  hello(nonce: Base64url32): BoxHelloFrame | AppHelloFrame;
  /** An Ed25519 signature of a box's identity; absent for apps, which are not challenged. */
  readonly sign?: (message: Uint8Array) => Uint8Array;
}

/** Hears a session. */
export interface SessionSink {
  onVerified(helloOk: HelloOkFrame): void;
  /** Every further frame but ping and pong. */
  onFrame(frame: ServiceFrame): void;
  onEnd(end: SessionEnd): void;
}

/** What sessions work with. */
export interface SessionPorts {
  readonly runtime: Runtime;
  readonly dialler: LinkDialler;
  readonly verify: VerifySignature;
  readonly keys: ServiceKeys;
  readonly role: LinkRole;
}

/** Bytes that may wait in a live link's socket before it takes no more. 1 MiB: 15 frames of full size. */
const SEND_BUFFER_BYTES_MAX = 1024 * 1024;
/** The same for answers to commands, which nobody could tell from commands without one. 32 MiB: twice what the service asks at once. */
const ANSWER_BUFFER_BYTES_MAX = 32 * 1024 * 1024;
/** Messages that may wait for a verdict. */
const HELD_MESSAGES_MAX = 64;
/** Time the peer gets to answer a close, milliseconds. */
const CLOSE_WAIT_MS = 2_000;
const CLOSE_NORMAL = 1000;
const NONCE_BYTES = 32;

type Phase =
  | { readonly kind: "dialing"; readonly timer: TimerHandle }
  | {
      readonly kind: "greeting";
      readonly timer: TimerHandle;
      readonly nonce: Base64url32;
      hasProved: boolean;
    }
  | { readonly kind: "verifying"; readonly timer: TimerHandle; readonly held: Held[] }
  | { readonly kind: "online"; readonly pulse: LinkPulse }
  | { readonly kind: "ended"; readonly timer: TimerHandle | undefined };

type Held =
  | { readonly kind: "message"; readonly text: string | undefined }
  | { readonly kind: "end"; readonly end: SocketEnd };

/** One dial. */
export class LinkSession {
  readonly #ports: SessionPorts;
  readonly #host: string;
  readonly #sink: SessionSink;
  readonly #socket: LinkSocket;
  readonly #gone = Promise.withResolvers<void>();
  #phase: Phase;

  constructor(url: LinkUrl, ports: SessionPorts, sink: SessionSink) {
    this.#ports = ports;
    this.#host = url.host;
    this.#sink = sink;
    this.#phase = { kind: "dialing", timer: this.#failAfter(DIAL_WAIT_MS, "no-answer") };
    this.#socket = ports.dialler.dial(url, {
      onOpen: () => this.#greet(),
      onMessage: (text) => this.#onMessage(text),
      onEnd: (end) => this.#onSocketEnd(end),
    });
  }

  /** Resolves when nothing of it is left: no timer, no socket. */
  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  /** Whether its hello_ok has verified and it has not ended. */
  get isOnline(): boolean {
    return this.#phase.kind === "online";
  }

  /** Sends a frame. False if the link is not online, or has too much to send already. */
  send(frame: LinkFrame): boolean {
    const isAnswer = frame.t === "result" || frame.t === "outcome";
    const bytesMax = isAnswer ? ANSWER_BUFFER_BYTES_MAX : SEND_BUFFER_BYTES_MAX;
    if (!this.isOnline || this.#socket.bufferedBytes > bytesMax) return false;
    this.#socket.send(encodeLinkFrame(frame));
    return true;
  }

  /** The machine slept or changed networks: a live link is asked whether it is alive. */
  doubt(): void {
    if (this.#phase.kind === "online") this.#phase.pulse.doubt();
  }

  /** Ends it without a word to the sink. */
  abandon(): void {
    this.#leave(CLOSE_NORMAL);
  }

  #greet(): void {
    const nonce = parseNonce(encodeBase64url(this.#ports.runtime.randomBytes(NONCE_BYTES)));
    invariant(nonce !== undefined, "32 bytes are a nonce");
    this.#ports.runtime.cancel(timerOf(this.#phase));
    const timer = this.#failAfter(HELLO_OK_WAIT_MS, "no-hello-ok");
    this.#phase = { kind: "greeting", timer, nonce, hasProved: false };
    this.#socket.send(encodeLinkFrame(this.#ports.role.hello(nonce)));
  }

  #onMessage(text: string | undefined): void {
    const phase = this.#phase;
    switch (phase.kind) {
      case "dialing":
      case "ended":
        return;
      case "greeting":
        return this.#onGreeting(phase, text);
      case "verifying":
        if (phase.held.length >= HELD_MESSAGES_MAX) return this.#fail("bad-frame", CLOSE_CODE.protocol);
        phase.held.push({ kind: "message", text });
        return;
      case "online":
        return this.#onLive(phase.pulse, text);
    }
  }

  #onGreeting(phase: Extract<Phase, { kind: "greeting" }>, text: string | undefined): void {
    const frame = this.#parse(text);
    if (frame?.t === "challenge") return this.#prove(phase, frame.nonce);
    if (frame?.t !== "hello_ok") return; // not believed, not answered (L10)
    const { keys, role, verify } = this.#ports;
    const verdict = judgeHelloOk(frame, {
      host: this.#host,
      home: role.home,
      clientNonce: phase.nonce,
      keys,
    });
    if (verdict.kind === "refused") return this.#fail(verdict.trouble, CLOSE_NORMAL);
    const verifying: Phase = { kind: "verifying", timer: phase.timer, held: [] };
    this.#phase = verifying;
    const isValid = verify(verdict.key, verdict.message, verdict.signature);
    const judge = (isSound: boolean) => {
      if (this.#phase === verifying) this.#judged(isSound, frame, verifying.held);
    };
    if (typeof isValid === "boolean") return judge(isValid);
    isValid.then(judge, () => judge(false));
  }

  /** L28: the proof, once. */
  #prove(phase: Extract<Phase, { kind: "greeting" }>, serviceNonce: string): void {
    const { home, sign } = this.#ports.role;
    if (sign === undefined || phase.hasProved) return;
    phase.hasProved = true;
    const message = linkProofBytes({ host: this.#host, home, clientNonce: phase.nonce, serviceNonce });
    const sig = parseSignature(encodeBase64url(sign(message)));
    invariant(sig !== undefined, "a signature has 64 bytes");
    this.#socket.send(encodeLinkFrame({ t: "proof", sig }));
  }

  #judged(isValid: boolean, helloOk: HelloOkFrame, held: readonly Held[]): void {
    if (!isValid) return this.#fail("bad-signature", CLOSE_NORMAL);
    const { runtime } = this.#ports;
    runtime.cancel(timerOf(this.#phase));
    const pulse = new LinkPulse(
      {
        runtime,
        sendPing: () => this.#socket.send(encodeLinkFrame({ t: "ping" })),
        onSilent: () => this.#dropSilent(),
      },
      helloOk.ping_ms,
    );
    this.#phase = { kind: "online", pulse };
    this.#sink.onVerified(helloOk);
    for (const item of held) {
      if (item.kind === "message") this.#onMessage(item.text);
      else this.#onSocketEnd(item.end);
    }
  }

  #onLive(pulse: LinkPulse, text: string | undefined): void {
    pulse.heard();
    const frame = this.#parse(text);
    if (frame === undefined || frame.t === "pong") return;
    if (frame.t === "ping") this.#socket.send(encodeLinkFrame({ t: "pong" }));
    else this.#sink.onFrame(frame);
  }

  /** Undefined for a kind that is not known, and for what ended the session. */
  #parse(text: string | undefined): ServiceFrame | undefined {
    const parsed = text === undefined ? undefined : parseLinkFrame(text, "service");
    if (parsed === undefined || parsed.kind === "malformed") {
      this.#fail("bad-frame", CLOSE_CODE.protocol);
      return undefined;
    }
    return parsed.kind === "frame" ? parsed.frame : undefined;
  }

  #onSocketEnd(end: SocketEnd): void {
    const phase = this.#phase;
    switch (phase.kind) {
      case "verifying":
        phase.held.push({ kind: "end", end });
        return;
      case "dialing":
      case "greeting":
        return this.#end(dialEnd(end));
      case "online":
        return this.#end(linkEnd(end));
      case "ended":
        return this.#vanish();
    }
  }

  /** Ends for a reason of this client's own. */
  #fail(trouble: LinkTrouble, closeCode: number): void {
    const isOnline = this.#phase.kind === "online";
    this.#leave(closeCode);
    this.#sink.onEnd(
      isOnline ? { kind: "lost", by: "client", cause: trouble } : { kind: "dial-failed", cause: trouble },
    );
  }

  #dropSilent(): void {
    this.#vanish();
    this.#socket.destroy();
    this.#sink.onEnd({ kind: "lost", by: "client", cause: "silent" });
  }

  #end(end: SessionEnd): void {
    this.#vanish();
    this.#sink.onEnd(end);
  }

  /** Closes the socket, and drops it when the peer does not answer in time. */
  #leave(closeCode: number): void {
    const phase = this.#phase;
    if (phase.kind === "ended") return;
    this.#clear();
    if (phase.kind === "dialing") {
      this.#socket.destroy();
      return this.#vanish();
    }
    const timer = this.#ports.runtime.schedule(CLOSE_WAIT_MS, () => {
      this.#socket.destroy();
      this.#vanish();
    });
    this.#phase = { kind: "ended", timer };
    this.#socket.close(closeCode);
    // The end came already, and was held for a verdict that nobody waits for now.
    if (phase.kind === "verifying" && phase.held.some(({ kind }) => kind === "end")) this.#vanish();
  }

  #vanish(): void {
    this.#clear();
    this.#phase = { kind: "ended", timer: undefined };
    this.#gone.resolve();
  }

  #clear(): void {
    if (this.#phase.kind === "online") this.#phase.pulse.stop();
    this.#ports.runtime.cancel(timerOf(this.#phase));
  }

  #failAfter(delayMs: number, trouble: LinkTrouble): TimerHandle {
    return this.#ports.runtime.schedule(delayMs, () => this.#fail(trouble, CLOSE_NORMAL));
  }
}

function timerOf(phase: Phase): TimerHandle | undefined {
  return phase.kind === "online" ? undefined : phase.timer;
}
