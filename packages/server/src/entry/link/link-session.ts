// One link from its upgrade to its end: frames in and out, what it may send, signs of life, its close.
//
// Spec: L27, L32, L25; the handshake is link-handshake.ts, what a live link says goes to its owner (link-table.ts).
// I1  After a close is begun nothing is read or written; a socket that does not end by itself is destroyed.
// I2  An idle link is a few fields: no timer, no closure, no buffer of its own.
// I3  A link is left once: its owner hears of its end before its close is written, so that nothing is routed to it.

import {
  CLOSE_CODE,
  encodeLinkFrame,
  HELLO_OK_WAIT_MS,
  HELLO_WAIT_MS,
  LINK_SILENCE_FACTOR,
  parseLinkFrame,
  restartSpreadMs,
  type AppFrame,
  type AppInstance,
  type BoxFrame,
  type CommandId,
  type HomeId,
} from "@moor/protocol";
import type { HomeShardPort, LinkId, SubmissionId } from "../../peer/link-ports.ts";
import type { DueItem, DueWheel } from "./due-wheel.ts";
import type { LinkContext } from "./link-context.ts";
import type { LinkHandshake } from "./link-handshake.ts";
import type { DialledHost } from "./link-hosts.ts";
import {
  CLOSE_WAIT_MS,
  FRAME_COST_BYTES,
  HANDSHAKE_BYTES_MAX,
  LINK_LAG_BYTES_MAX,
  LINK_RATE,
  REGISTERING_MS,
} from "./link-limits.ts";
import type { HandshakeOutcome, LinkClose, LinkRole } from "./link-metrics.ts";
import { refilled } from "./rate-buckets.ts";

/** A WebSocket as a session uses it. */
export interface LinkSocket {
  /** Whether the text stands in the socket now; false when the peer has begun to close. */
  sendText(text: string): boolean;
  /** Begins the closing handshake; `reason` is at most 123 bytes. */
  closeWith(code: number, reason: string): void;
  destroy(): void;
  /** Bytes that wait in this process because the peer reads too slowly. */
  readonly waitingBytes: number;
}

/** A link that has its hello_ok, or waits for its owner's word on it. */
export interface VerifiedLink {
  readonly home: HomeId;
  /** Undefined for a box. */
  readonly app: AppInstance | undefined;
  /** Whether its client follows. Spec L6. */
  readonly isFollowing: boolean;
  /** The box key, or the id of the app's token. */
  readonly credential: string;
  /** Where it is registered; undefined while its owner is out of reach. */
  port: HomeShardPort | undefined;
  /** While its owner is out of reach: the way to where it was registered, for what must arrive once that is back. */
  awayPort: HomeShardPort | undefined;
  /** Revision of the placement it was registered by. */
  registeredBy: number;
  generation: number | undefined;
  /** Times in a row that a shard said it is not the owner. */
  hops: number;
  /** Commands of this app without an ending; undefined until there is one. */
  commands: Map<CommandId, SubmissionId> | undefined;
  onlineAtMs: number;
}

type Phase =
  | { readonly kind: "opened"; readonly openedAtMs: number }
  | { readonly kind: "handshaking"; readonly openedAtMs: number; readonly handshake: LinkHandshake }
  | { readonly kind: "online"; readonly link: VerifiedLink }
  | { readonly kind: "closing"; readonly sinceMs: number }
  | { readonly kind: "ended" };

/** What a session asks of the table it is in. */
export interface SessionOwner {
  readonly context: LinkContext;
  readonly wheel: DueWheel<DueItem>;
  begin(session: LinkSession, hello: HelloOf): LinkHandshake;
  /** hello_ok is written. */
  cameOnline(session: LinkSession, link: VerifiedLink): void;
  frameArrived(session: LinkSession, link: VerifiedLink, frame: BoxFrame | AppFrame): void;
  /** A live link ends. `backWithinMs`: its client was told to come back. */
  left(session: LinkSession, link: VerifiedLink, end: LinkClose, backWithinMs: number | undefined): void;
  handshakeEnded(session: LinkSession, outcome: HandshakeOutcome): void;
  /** Its socket is gone. */
  ended(session: LinkSession): void;
}

/** A hello as a session reads it. */
export type HelloOf = Extract<BoxFrame | AppFrame, { readonly t: "hello" }>;

const PING = encodeLinkFrame({ t: "ping" });
const PONG = encodeLinkFrame({ t: "pong" });

export interface SessionParts {
  readonly linkId: LinkId;
  readonly role: LinkRole;
  readonly dialled: DialledHost;
  /** Client address its limits are charged to. */
  readonly address: string;
  readonly socket: LinkSocket;
}

export class LinkSession implements DueItem {
  wheelTick = 0;
  readonly linkId: LinkId;
  readonly role: LinkRole;
  readonly dialled: DialledHost;
  /** Empty once the link is online. */
  address: string;
  readonly #owner: SessionOwner;
  readonly #socket: LinkSocket;
  #phase: Phase;
  #heardAtMs: number;
  #pingedAtMs: number;
  #allowanceBytes = HANDSHAKE_BYTES_MAX;

  constructor(owner: SessionOwner, parts: SessionParts) {
    this.#owner = owner;
    this.linkId = parts.linkId;
    this.role = parts.role;
    this.dialled = parts.dialled;
    this.address = parts.address;
    this.#socket = parts.socket;
    const nowMs = owner.context.runtime.monotonicMs();
    this.#phase = { kind: "opened", openedAtMs: nowMs };
    this.#heardAtMs = nowMs;
    this.#pingedAtMs = nowMs;
    owner.wheel.add(this, nowMs + HELLO_WAIT_MS);
  }

  /** The link, while it is online. */
  get link(): VerifiedLink | undefined {
    return this.#phase.kind === "online" ? this.#phase.link : undefined;
  }

  get handshake(): LinkHandshake | undefined {
    return this.#phase.kind === "handshaking" ? this.#phase.handshake : undefined;
  }

  /** Whether its close has begun, or its socket is gone. */
  get isClosing(): boolean {
    return this.#phase.kind === "closing" || this.#phase.kind === "ended";
  }

  /** When its close began; undefined while it has not. Monotonic milliseconds. */
  get closingSinceMs(): number | undefined {
    return this.#phase.kind === "closing" ? this.#phase.sinceMs : undefined;
  }

  /** A message arrived. */
  receive(bytes: Uint8Array, isBinary: boolean): void {
    if (this.isClosing || !this.#isCharged(bytes.length)) return;
    if (isBinary) return this.close(CLOSE_CODE.protocol, "binary");
    const parsed = parseLinkFrame(bytes, this.role);
    if (parsed.kind === "malformed") return this.close(CLOSE_CODE.protocol, parsed.reason);
    if (parsed.kind === "frame") this.#take(parsed.frame);
  }

  /** A control frame of the WebSocket arrived: a sign of life, at a cost. Whether to answer it. */
  receiveControl(byteCount: number): boolean {
    return !this.isClosing && this.#isCharged(byteCount) && this.#isRead();
  }

  /** Writes a frame; false when the link is not open, or its peer does not read (it is cut then). */
  send(text: string): boolean {
    return !this.isClosing && this.#isRead() && this.#socket.sendText(text);
  }

  /** The owner took the link, and hello_ok goes out. */
  goOnline(helloOk: string, link: VerifiedLink): void {
    const nowMs = this.#owner.context.runtime.monotonicMs();
    link.onlineAtMs = nowMs;
    this.#phase = { kind: "online", link };
    this.#allowanceBytes = LINK_RATE.capacity;
    this.#pingedAtMs = nowMs;
    this.#owner.handshakeEnded(this, "online");
    this.address = "";
    this.#socket.sendText(helloOk);
    this.#owner.wheel.add(this, nowMs + this.#owner.context.pingMs);
    this.#owner.cameOnline(this, link);
  }

  /** Has `wake` called when `atMs` (monotonic) has come. */
  lookAt(atMs: number): void {
    this.#owner.wheel.add(this, atMs);
  }

  /** Begins to close the link, once. */
  close(code: number, reason: string): void {
    if (this.isClosing) return;
    this.#leave(closeLabel(code), handshakeOutcome(code), backWithinMs(code, reason));
    const nowMs = this.#owner.context.runtime.monotonicMs();
    this.#phase = { kind: "closing", sinceMs: nowMs };
    this.#socket.closeWith(code, reason);
    this.#owner.wheel.add(this, nowMs + CLOSE_WAIT_MS);
  }

  /** Destroys the socket; `socketClosed` follows. */
  destroy(): void {
    this.#socket.destroy();
  }

  /** The library found what no WebSocket may send, and has begun to close by itself: as a 4400 (L27). */
  refusedByLibrary(): void {
    if (this.isClosing) return;
    this.#leave("4400", "protocol", undefined);
    const nowMs = this.#owner.context.runtime.monotonicMs();
    this.#phase = { kind: "closing", sinceMs: nowMs };
    this.#owner.wheel.add(this, nowMs + CLOSE_WAIT_MS);
  }

  /** The socket is gone. */
  socketClosed(): void {
    if (this.#phase.kind === "ended") return;
    this.#leave("client", "gone", undefined);
    this.#phase = { kind: "ended" };
    this.#owner.ended(this);
  }

  wake(nowMs: number): number | undefined {
    const phase = this.#phase;
    switch (phase.kind) {
      case "opened":
        if (nowMs < phase.openedAtMs + HELLO_WAIT_MS) return phase.openedAtMs + HELLO_WAIT_MS;
        return this.#closeLate("hello");
      case "handshaking":
        if (nowMs >= phase.openedAtMs + HELLO_OK_WAIT_MS) return phase.handshake.ranOut();
        return Math.min(phase.openedAtMs + HELLO_OK_WAIT_MS, phase.handshake.wake(nowMs));
      case "online":
        return this.#keepAlive(nowMs);
      case "closing":
        if (nowMs < phase.sinceMs + CLOSE_WAIT_MS) return phase.sinceMs + CLOSE_WAIT_MS;
        this.destroy();
        return undefined;
      case "ended":
        return undefined;
    }
  }

  #take(frame: BoxFrame | AppFrame): void {
    const phase = this.#phase;
    if (frame.t === "pong") return;
    if (frame.t === "ping") return void this.send(PONG);
    switch (phase.kind) {
      case "opened": {
        if (frame.t !== "hello") return this.close(CLOSE_CODE.protocol, "hello-expected");
        const handshake = this.#owner.begin(this, frame);
        this.#phase = { kind: "handshaking", openedAtMs: phase.openedAtMs, handshake };
        return handshake.start();
      }
      case "handshaking":
        if (frame.t === "proof") return phase.handshake.proofArrived(frame.sig);
        return this.close(CLOSE_CODE.protocol, "too-early");
      case "online":
        if (frame.t === "hello" || frame.t === "proof") return this.close(CLOSE_CODE.protocol, "too-late");
        return this.#owner.frameArrived(this, phase.link, frame);
      case "closing":
      case "ended":
        return;
    }
  }

  #keepAlive(nowMs: number): number | undefined {
    const { pingMs } = this.#owner.context;
    const silentAtMs = this.#heardAtMs + LINK_SILENCE_FACTOR * pingMs;
    if (nowMs >= silentAtMs) {
      this.#cut("silent", "gone");
      return undefined;
    }
    if (nowMs >= this.#pingedAtMs + pingMs) {
      this.#pingedAtMs = nowMs;
      this.send(PING);
      if (this.isClosing) return undefined;
    }
    return Math.min(this.#pingedAtMs + pingMs, silentAtMs);
  }

  #closeLate(reason: string): undefined {
    this.close(CLOSE_CODE.helloTimeout, reason);
  }

  /** Whether the peer may send this much now; if not, the link is closed. */
  #isCharged(byteCount: number): boolean {
    const nowMs = this.#owner.context.runtime.monotonicMs();
    const level =
      this.#phase.kind === "online"
        ? refilled(this.#allowanceBytes, nowMs - this.#heardAtMs, LINK_RATE)
        : this.#allowanceBytes;
    this.#heardAtMs = nowMs;
    this.#allowanceBytes = level - byteCount - FRAME_COST_BYTES;
    if (this.#allowanceBytes >= 0) return true;
    this.close(CLOSE_CODE.busy, "too-much");
    return false;
  }

  /** Whether the peer reads what it is sent; if not, the link is cut. */
  #isRead(): boolean {
    if (this.#socket.waitingBytes <= LINK_LAG_BYTES_MAX) return true;
    this.#cut("slow", "busy");
    return false;
  }

  #cut(end: LinkClose, outcome: HandshakeOutcome): void {
    this.#leave(end, outcome, undefined);
    this.#phase = { kind: "closing", sinceMs: this.#owner.context.runtime.monotonicMs() };
    this.destroy();
  }

  #leave(end: LinkClose, outcome: HandshakeOutcome, backMs: number | undefined): void {
    const phase = this.#phase;
    if (phase.kind === "opened") this.#owner.handshakeEnded(this, outcome);
    if (phase.kind === "handshaking") {
      this.#owner.handshakeEnded(this, outcome);
      phase.handshake.abandon();
    }
    if (phase.kind === "online") {
      this.#phase = { kind: "closing", sinceMs: this.#owner.context.runtime.monotonicMs() };
      this.#owner.left(this, phase.link, end, backMs);
    }
  }
}

const OUTCOMES: Readonly<Record<number, HandshakeOutcome>> = {
  [CLOSE_CODE.protocol]: "protocol",
  [CLOSE_CODE.auth]: "unauthorized",
  [CLOSE_CODE.helloTimeout]: "timeout",
  [CLOSE_CODE.replaced]: "replaced",
  [CLOSE_CODE.wrongShard]: "redirected",
  [CLOSE_CODE.busy]: "busy",
  [CLOSE_CODE.restart]: "wait",
};

function handshakeOutcome(code: number): HandshakeOutcome {
  return OUTCOMES[code] ?? "protocol";
}

/** Within how many milliseconds a client comes back that is told so: elsewhere at once, here within its spread. */
function backWithinMs(code: number, reason: string): number | undefined {
  if (code === CLOSE_CODE.wrongShard) return REGISTERING_MS;
  return code === CLOSE_CODE.restart ? restartSpreadMs(reason) : undefined;
}

function closeLabel(code: number): LinkClose {
  return String(code) as LinkClose;
}
