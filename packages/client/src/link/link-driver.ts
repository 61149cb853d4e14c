// Drives a LinkFollower on real sockets and timers: what it orders is done here, what happens here is told to it.
//
// Spec: L10–L18, L32.
// I1  One session or one wait at a time, as the follower orders. I2  What a session that was given up still says is not heard.
// I3  After `stop` has resolved nothing is left: no timer, no socket, no write under way. I4  A sink may stop or rehome the
//     link from within what it hears: it hears warnings and states when all else that was ordered is done.

import {
  CAPABILITY_SHARD,
  createLinkFollower,
  linkState,
  stepLinkFollower,
  WAKE_LATE_MS,
  type HelloOkFrame,
  type HomeId,
  type LinkEffect,
  type LinkEvent,
  type LinkFollower,
  type LinkFrame,
  type LinkWarning,
  type ServiceFrame,
} from "@moor/protocol";
import type { Runtime, TimerHandle } from "@moor/runtime/portable";
import { ClientStateTeller, type ClientLinkState } from "./client-link-state.ts";
import type { VerifySignature } from "./ed25519.ts";
import { linkUrl, type LinkEndpoint } from "./link-endpoint.ts";
import { LinkSession, type LinkRole } from "./link-session.ts";
import type { LinkDialler } from "./link-socket.ts";
import { RecordKeeper, type RecordWarning } from "./record-keeper.ts";
import type { LinkRecordStore } from "./record-store.ts";
import type { ServiceKeys } from "./service-keys.ts";
import type { SessionEnd } from "./session-end.ts";
import type { WakeKind, WakeSource } from "./wake-source.ts";

/** Something that an operator may want to know of a link; never holds what a peer wrote. */
export type LinkClientWarning = LinkWarning | RecordWarning;

/** What a link runs on. */
export interface LinkPorts {
  readonly runtime: Runtime;
  readonly dialler: LinkDialler;
  readonly verify: VerifySignature;
  /** Default: nobody tells. */
  readonly wakeSource?: WakeSource | undefined;
}

/** What one link is. */
export interface LinkDriverOptions {
  readonly endpoint: LinkEndpoint;
  /** Route of its links. */
  readonly path: string;
  /** Capabilities it lists in hello; without `shard` it follows no redirect (L6). */
  readonly caps: readonly string[];
  readonly keys: ServiceKeys;
  readonly store: LinkRecordStore;
}

/** Hears a link. */
export interface LinkSink {
  onState(state: ClientLinkState): void;
  onOnline(helloOk: HelloOkFrame): void;
  onFrame(frame: ServiceFrame): void;
  /** The link that was online is no more. */
  onOffline(): void;
  onWarning(warning: LinkClientWarning): void;
}

/** One client's link over its life. */
export class LinkDriver {
  readonly #options: LinkDriverOptions;
  readonly #ports: LinkPorts;
  readonly #runtime: Runtime;
  readonly #sink: LinkSink;
  readonly #keeper: RecordKeeper;
  readonly #states: ClientStateTeller;
  #role: LinkRole;
  #follower: LinkFollower;
  #session: LinkSession | undefined;
  #generation = "";
  #timer: TimerHandle | undefined;
  #unwatch: (() => void) | undefined;
  #phase: "new" | "running" | "stopped" = "new";
  /** Sessions that were given up and are not gone yet. */
  readonly #leaving = new Set<Promise<void>>();

  constructor(options: LinkDriverOptions, role: LinkRole, ports: LinkPorts, sink: LinkSink) {
    const isFollowing = options.caps.includes(CAPABILITY_SHARD);
    this.#options = options;
    this.#ports = ports;
    this.#runtime = reportingLateTimers(ports.runtime, () => this.#woke("woke"));
    this.#sink = sink;
    this.#role = role;
    this.#keeper = new RecordKeeper(options.store, (warning) => sink.onWarning(warning));
    this.#states = new ClientStateTeller(ports.runtime, (state) => sink.onState(state));
    this.#follower = createLinkFollower({ base: options.endpoint.base, home: role.home, isFollowing });
  }

  /** Reads the record and dials. Once only. */
  async start(): Promise<void> {
    if (this.#phase !== "new") return;
    this.#phase = "running";
    const { home } = this.#role;
    const { record, learnedKeys } = await this.#keeper.load(home);
    if (this.#isStopped()) return;
    if (home === this.#role.home) this.#options.keys.recall(learnedKeys);
    this.#unwatch = this.#ports.wakeSource?.watch((kind) => this.#woke(kind));
    this.#step({ kind: "started", atMs: this.#nowMs(), record });
  }

  /** The host of the live link; undefined while there is none. */
  get liveHost(): string | undefined {
    return this.#follower.phase.kind === "online" ? this.#follower.phase.host : undefined;
  }

  /** Sends a frame; false if it was not taken. */
  send(frame: LinkFrame): boolean {
    return this.#session?.send(frame) ?? false;
  }

  /** Belongs to another home from now on, or to none (L18). */
  rehome(role: LinkRole | undefined): void {
    if (role !== undefined) {
      // What a home's hello_oks taught is believed of that home alone.
      if (role.home !== this.#role.home) this.#options.keys.recall([]);
      this.#role = role;
    }
    this.#step({ kind: "rehomed", atMs: this.#nowMs(), home: role?.home });
  }

  /** Ends the link and everything of it. */
  async stop(): Promise<void> {
    this.#phase = "stopped";
    this.#unwatch?.();
    this.#hangUp();
    this.#states.tell({ kind: "stopped" });
    await Promise.all(this.#leaving);
    await this.#keeper.idle();
  }

  #step(event: LinkEvent): void {
    if (this.#isStopped()) return;
    const { state, effects } = stepLinkFollower(this.#follower, event);
    this.#follower = state;
    for (const effect of effects) this.#do(effect);
    for (const effect of effects) if (effect.kind === "warn") this.#sink.onWarning(effect.code);
    if (!this.#isStopped()) this.#states.tell(linkState(this.#follower), this.#generation);
  }

  #do(effect: LinkEffect): void {
    switch (effect.kind) {
      case "dial":
        return this.#dial(effect.host);
      case "wait":
        this.#runtime.cancel(this.#timer);
        this.#timer = this.#runtime.schedule(effect.ms, () => {
          this.#step({ kind: "timer-fired", atMs: this.#nowMs() });
        });
        return;
      case "persist":
        return this.#keeper.keep(effect.home as HomeId, effect.host, this.#options.keys.learned);
      case "hang-up":
        return this.#hangUp();
      case "warn":
        return; // told last (I4)
    }
  }

  #dial(host: string): void {
    this.#runtime.cancel(this.#timer);
    const { endpoint, path, keys } = this.#options;
    const { dialler, verify } = this.#ports;
    const ports = { runtime: this.#runtime, dialler, verify, keys, role: this.#role };
    this.#session = new LinkSession(linkUrl(endpoint, host, path), ports, {
      onVerified: (helloOk) => this.#onVerified(helloOk),
      onFrame: (frame) => this.#sink.onFrame(frame),
      onEnd: (end) => this.#onSessionEnd(end),
    });
  }

  #onVerified(helloOk: HelloOkFrame): void {
    this.#options.keys.learn(helloOk);
    this.#generation = helloOk.generation;
    this.#step({ kind: "verified", atMs: this.#nowMs(), spreadMs: helloOk.spread_ms });
    this.#sink.onOnline(helloOk);
  }

  /** Of the present session: one that was given up says nothing. */
  #onSessionEnd(end: SessionEnd): void {
    const wasOnline = this.#follower.phase.kind === "online";
    this.#release();
    if (wasOnline) this.#sink.onOffline();
    this.#step({ ...end, atMs: this.#nowMs(), random: this.#runtime.random() });
  }

  #hangUp(): void {
    // Not asked of the follower, which is in its next phase already when it orders this.
    const wasOnline = this.#session?.isOnline === true;
    this.#runtime.cancel(this.#timer);
    this.#session?.abandon();
    this.#release();
    if (wasOnline) this.#sink.onOffline();
  }

  #release(): void {
    const gone = this.#session?.gone;
    this.#session = undefined;
    if (gone === undefined) return;
    this.#leaving.add(gone);
    void gone.then(() => this.#leaving.delete(gone));
  }

  #woke(kind: WakeKind): void {
    this.#session?.doubt();
    this.#step({ kind, atMs: this.#nowMs() });
  }

  #isStopped(): boolean {
    return this.#phase === "stopped";
  }

  #nowMs(): number {
    return this.#runtime.monotonicMs();
  }
}

/** A runtime whose timers tell, after they ran, that they were late as only a sleep makes them (L14). */
function reportingLateTimers(runtime: Runtime, onLate: () => void): Runtime {
  return {
    monotonicMs: () => runtime.monotonicMs(),
    wallMs: () => runtime.wallMs(),
    random: () => runtime.random(),
    randomBytes: (byteCount) => runtime.randomBytes(byteCount),
    cancel: (handle) => runtime.cancel(handle),
    schedule: (delayMs, run) => {
      const dueAtMs = runtime.monotonicMs() + Math.max(0, delayMs);
      return runtime.schedule(delayMs, () => {
        run();
        if (runtime.monotonicMs() - dueAtMs >= WAKE_LATE_MS) onLate();
      });
    },
  };
}
