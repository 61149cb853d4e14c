// One connection to another node, from its first byte to its last: handshake, messages both ways, liveness.
//
// Spec: docs/protocol/peer-link.md. Does no I/O of its own: bytes go through a Wire, time comes from the Runtime.
// I1  Phases go one way: greeting → introduced → up → closed. `closed` is told exactly once, and nothing after it.
// I2  Whatever the other side sends, this side at worst closes the link.
// I3  It never says who it is to a side that it has not found acceptable, except to the node it dialled itself.

import type { Logger, Runtime, TimerHandle } from "@moor/runtime";
import { encodeFrame, FRAME, FrameDecoder } from "./frame.ts";
import { IncomingMessages } from "./incoming-messages.ts";
import { judgeHello, encodeHello, type LinkHello, parseHello } from "./link-hello.ts";
import { LINK_ENDS, type LinkEnd, type LinkEnding } from "./link-end.ts";
import { LinkLiveness } from "./link-liveness.ts";
import { OutgoingQueue } from "./outgoing-queue.ts";
import type { Peer, PeerMessage } from "./peer-network.ts";
import {
  FRAME_BODY_BYTES_MAX,
  HANDSHAKE_MS_MAX,
  frameBodyBytesMax,
  HELLO_BYTES_MAX,
  wholeBytesMax,
  WRITE_BYTES_MAX,
} from "./transport-limits.ts";
import type { Wire } from "./wire.ts";

/** What a link tells the pair it belongs to. */
export interface LinkHost {
  /** An accepted connection said who it is, acceptably: `answer` it, later, or close it. */
  claimed(link: LinkCore): void;
  /** Both sides know each other. The side that decides (see PeerPair) calls `confirm` or closes it. */
  introduced(link: LinkCore): void;
  /** The deciding side confirmed: the link is up. */
  confirmed(link: LinkCore): void;
  message(link: LinkCore, message: PeerMessage): void;
  /** The link has ended; `link.ending` says how. */
  closed(link: LinkCore): void;
}

export interface LinkOptions {
  readonly wire: Wire;
  /** The node that was dialled; undefined on the side that accepted. */
  readonly dialledNodeId: string | undefined;
  readonly own: LinkHello;
  readonly host: LinkHost;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

type Phase = "greeting" | "introduced" | "up" | "closed";

/** One link. As a `Peer` it is what the rest of the node holds. */
export class LinkCore implements Peer {
  readonly #options: LinkOptions;
  readonly #decoder: FrameDecoder;
  readonly #incoming = new IncomingMessages();
  readonly #outgoing = new OutgoingQueue();
  readonly #liveness: LinkLiveness;
  readonly #handshakeTimer: TimerHandle;
  #phase: Phase = "greeting";
  #theirs: LinkHello | undefined;
  #version = 0;
  #hasSaidHello = false;
  #isFlushPlanned = false;
  #ending: LinkEnding | undefined;

  constructor(options: LinkOptions) {
    const { runtime, wire, dialledNodeId } = options;
    this.#options = options;
    this.#decoder = new FrameDecoder(
      (type, body) => this.#takeFrame(type, body),
      HELLO_BYTES_MAX,
      FRAME_BODY_BYTES_MAX,
    );
    this.#liveness = new LinkLiveness(runtime, {
      ping: () => wire.write([encodeFrame(FRAME.ping)]),
      dead: () => this.close("silence"),
    });
    this.#handshakeTimer = runtime.schedule(HANDSHAKE_MS_MAX, () => this.close("handshake-late"));
    wire.start({
      receive: (bytes) => this.#receive(bytes),
      writable: () => this.#flush(),
      closed: (cause) => this.#end("peer", "remote-closed", cause),
    });
    if (dialledNodeId !== undefined) this.#sayHello();
  }

  get nodeId(): string {
    return this.#theirs?.nodeId ?? this.#options.dialledNodeId ?? "";
  }

  get incarnation(): string {
    return this.#theirs?.incarnation ?? "";
  }

  get version(): number {
    return this.#version;
  }

  get isUp(): boolean {
    return this.#phase === "up";
  }

  /** How it ended; undefined while it has not. */
  get ending(): LinkEnding | undefined {
    return this.#ending;
  }

  get queuedBytes(): number {
    return this.#outgoing.queuedBytes;
  }

  /** Address of the other side, for logs. */
  get remote(): string {
    return this.#options.wire.remote;
  }

  /** Accepts a claimed connection: says who this side is. */
  answer(): void {
    if (this.#phase !== "greeting" || this.#hasSaidHello) return;
    this.#sayHello();
    this.#phase = "introduced";
    this.#options.host.introduced(this);
  }

  /** The deciding side makes the link up. */
  confirm(): void {
    if (this.#phase !== "introduced") return;
    this.#options.wire.write([encodeFrame(FRAME.confirm)]);
    this.#goUp();
  }

  send(message: PeerMessage): boolean {
    if (this.#phase !== "up" || !this.#outgoing.push(message)) return false;
    this.#planFlush();
    return true;
  }

  /** Ends the link from this side and tells the other why. What waits to be sent is dropped, unless this node leaves. */
  close(end: LinkEnd): void {
    if (this.#phase === "closed") return;
    if (end === "leaving") this.#flush("everything");
    this.#options.wire.write([encodeFrame(FRAME.close, Buffer.from(end))]);
    this.#end("self", end);
  }

  #sayHello(): void {
    this.#hasSaidHello = true;
    this.#options.wire.write([encodeFrame(FRAME.hello, encodeHello(this.#options.own))]);
  }

  #goUp(): void {
    const { runtime } = this.#options;
    runtime.cancel(this.#handshakeTimer);
    this.#phase = "up";
    this.#incoming.allowWhole(wholeBytesMax(this.#version));
    this.#outgoing.allowWhole(wholeBytesMax(this.#version));
    this.#decoder.allow(frameBodyBytesMax(this.#version));
    this.#liveness.start();
  }

  #end(by: LinkEnding["by"], reason: LinkEnd, cause?: string): void {
    if (this.#phase === "closed") return;
    this.#ending = { by, reason, cause, wasUp: this.#phase === "up" };
    this.#phase = "closed";
    this.#options.runtime.cancel(this.#handshakeTimer);
    this.#liveness.stop();
    this.#options.wire.close();
    this.#options.host.closed(this);
  }

  #receive(bytes: Uint8Array): void {
    if (this.#phase === "closed") return;
    this.#liveness.heard();
    const isSound = this.#decoder.receive(bytes);
    if (!isSound) this.close("protocol");
  }

  /** False: the link is closed, or this frame breaks its rules. */
  #takeFrame(type: number, body: Buffer): boolean {
    switch (type) {
      case FRAME.hello:
        return this.#takeHello(body);
      case FRAME.confirm:
        return this.#takeConfirm();
      case FRAME.close:
        return this.#takeClose(body);
      case FRAME.ping:
        return this.#phase === "up";
      case FRAME.whole:
        return this.#phase === "up" && this.#takeArrival(this.#incoming.whole(body));
      case FRAME.open:
        return this.#phase === "up" && this.#takeArrival(this.#incoming.open(body));
      case FRAME.part:
        return this.#phase === "up" && this.#takeArrival(this.#incoming.part(body));
      default:
        return false;
    }
  }

  #takeHello(body: Buffer): boolean {
    const { own, wire, dialledNodeId, host } = this.#options;
    const theirs = parseHello(body);
    if (theirs === undefined || this.#theirs !== undefined || this.#phase !== "greeting") return false;
    const verdict = judgeHello(own, theirs, { expectedNodeId: dialledNodeId, identity: wire.identity });
    if (typeof verdict === "string") {
      this.close(verdict);
      return false;
    }
    this.#theirs = theirs;
    this.#version = verdict.version;
    if (dialledNodeId === undefined) {
      host.claimed(this);
    } else {
      this.#phase = "introduced";
      host.introduced(this);
    }
    return !this.#isClosed();
  }

  #takeConfirm(): boolean {
    const isTheirs = this.nodeId < this.#options.own.nodeId;
    if (this.#phase !== "introduced" || !isTheirs) return false;
    this.#goUp();
    this.#options.host.confirmed(this);
    return !this.#isClosed();
  }

  #takeClose(body: Buffer): boolean {
    const text = body.toString("latin1");
    this.#end("peer", LINK_ENDS.find((end) => end === text) ?? "remote-closed");
    return false;
  }

  #takeArrival(arrival: PeerMessage | "incomplete" | "broken"): boolean {
    if (arrival === "broken") return false;
    if (arrival === "incomplete") return true;
    try {
      this.#options.host.message(this, arrival);
    } catch (error) {
      this.#reportHandler(error, String(arrival.head["t"]));
      this.close("handler-failed");
    }
    return !this.#isClosed();
  }

  /** A handler that throws is a bug; what it left half done is mended by what a lost link sets off. */
  #reportHandler(error: unknown, type: string): void {
    this.#options.logger.error("peer-handler-failed", {
      peer: this.nodeId,
      type: type.slice(0, 64),
      reason: error instanceof Error ? error.message : "not an Error",
      stack: error instanceof Error ? error.stack : undefined,
    });
  }

  /** Asked after a call out, which may have closed the link. */
  #isClosed(): boolean {
    return this.#phase === "closed";
  }

  #planFlush(): void {
    if (this.#isFlushPlanned) return;
    this.#isFlushPlanned = true;
    this.#options.wire.soon(() => {
      this.#isFlushPlanned = false;
      this.#flush();
    });
  }

  /** Writes while the network takes more, or until nothing waits. */
  #flush(upTo: "what fits" | "everything" = "what fits"): void {
    const { wire } = this.#options;
    const mayWrite = () => this.#phase === "up" && (upTo === "everything" || wire.isWritable);
    while (mayWrite()) {
      const chunks = this.#outgoing.take(WRITE_BYTES_MAX);
      if (chunks.length === 0) return;
      wire.write(chunks);
    }
  }
}
