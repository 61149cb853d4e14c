// A network on virtual time: connections between named hosts, with delays, bandwidth limits, cuts and silence.
//
// I1  Bytes of one direction of one connection arrive in order; different connections may overtake each other.
// I2  Between a silent pair of hosts nothing arrives, ends of connections included: what was open looks open to both
//     sides. Once they speak again, what was sent arrives after all, as by TCP's repetition.

import type { VirtualRuntime } from "@moor/testkit";
import { parseInternalUrl } from "../../src/peer/transport/internal-url.ts";
import type { Dial, PeerTransport, Wire, WireHandler } from "../../src/peer/transport/wire.ts";
import type { CertificateIdentity } from "../../src/peer/transport/certificate-identity.ts";

export interface SimulatedNetworkOptions {
  /** One way, milliseconds; a random one up to `jitterMs` is added per connection. Default 1. */
  readonly delayMs?: number;
  readonly jitterMs?: number;
  /** Bytes one direction takes before the writer must wait. Default: no limit. */
  readonly inFlightBytesMax?: number;
}

/** The hosts and what lies between them. */
export class SimulatedNetwork {
  readonly runtime: VirtualRuntime;
  readonly #options: SimulatedNetworkOptions;
  readonly #listeners = new Map<string, (wire: Wire) => void>();
  readonly #identities = new Map<string, CertificateIdentity | undefined>();
  readonly #silent = new Set<string>();
  /** Every connection ever opened, with its two ends. */
  readonly connections: (readonly [SimulatedWire, SimulatedWire])[] = [];
  delayMs: number;

  constructor(runtime: VirtualRuntime, options: SimulatedNetworkOptions = {}) {
    this.runtime = runtime;
    this.#options = options;
    this.delayMs = options.delayMs ?? 1;
  }

  /** The transport of host `from`; `identity` is what its certificate says, if the network is one with certificates. */
  transport(from: string, identity?: CertificateIdentity): PeerTransport {
    return {
      dial: (url, opened, failed) => this.#dial(from, identity, url, opened, failed),
      listen: (host, port, accepted) => {
        this.#listeners.set(host, (wire) => accepted(wire));
        this.#identities.set(host, identity);
        return Promise.resolve({
          port,
          close: () => {
            this.#listeners.delete(host);
            return Promise.resolve();
          },
        });
      },
    };
  }
  /** Connections open at both ends between two hosts. */
  openBetween(a: string, b: string): number {
    return this.#between(a, b).filter(([near, far]) => !near.isClosed && !far.isClosed).length;
  }

  /** Ends every connection between two hosts, as a reset does. */
  cut(a: string, b: string): void {
    for (const pair of this.#between(a, b)) for (const wire of pair) wire.fail();
  }

  /** From now on nothing passes between two hosts, or everything again. */
  setSilent(a: string, b: string, isSilent: boolean): void {
    for (const key of [`${a} ${b}`, `${b} ${a}`]) {
      if (isSilent) this.#silent.add(key);
      else this.#silent.delete(key);
    }
    if (isSilent) return;
    for (const pair of this.#between(a, b)) for (const wire of pair) wire.releaseHeld();
  }

  /** Ends the connections between two hosts at `a` alone: `b` has not heard of it. */
  loseAt(a: string, b: string): void {
    for (const pair of this.#between(a, b)) for (const wire of pair) if (wire.host === a) wire.fail();
  }

  /** The process on `host` is gone: its listener and connections with it; others hear of it unless it is silent. */
  crash(host: string): void {
    this.#listeners.delete(host);
    for (const [near, far] of this.connections) {
      if (near.host !== host && far.host !== host) continue;
      for (const wire of [near, far]) {
        if (wire.host === host) wire.vanish();
        else if (!this.isSilent(host, wire.host)) wire.fail();
      }
    }
  }

  isSilent(from: string, to: string): boolean {
    return this.#silent.has(`${from} ${to}`);
  }

  #between(a: string, b: string) {
    return this.connections.filter(
      ([near, far]) => (near.host === a && far.host === b) || (near.host === b && far.host === a),
    );
  }

  #dial(
    from: string,
    identity: CertificateIdentity | undefined,
    url: string,
    opened: (wire: Wire) => void,
    failed: (reason: string) => void,
  ): Dial {
    const to = parseInternalUrl(url)?.host ?? "";
    let isCancelled = false;
    const delayMs = this.delayMs + this.runtime.random() * (this.#options.jitterMs ?? 0);
    this.runtime.schedule(2 * delayMs, () => {
      if (isCancelled) return;
      const accepted = this.#listeners.get(to);
      if (accepted === undefined || this.isSilent(from, to)) return failed("ECONNREFUSED");
      const limit = this.#options.inFlightBytesMax ?? Number.POSITIVE_INFINITY;
      const near = new SimulatedWire(this, from, this.#identities.get(to), delayMs, limit);
      const far = new SimulatedWire(this, to, identity, delayMs, limit);
      near.other = far;
      far.other = near;
      this.connections.push([near, far]);
      accepted(far);
      opened(near);
    });
    return { cancel: () => void (isCancelled = true) };
  }
}

/** One end of a simulated connection. */
export class SimulatedWire implements Wire {
  readonly host: string;
  readonly identity: CertificateIdentity | undefined;
  readonly remote = "simulated:1";
  other!: SimulatedWire;
  isClosed = false;
  readonly #network: SimulatedNetwork;
  readonly #delayMs: number;
  readonly #inFlightBytesMax: number;
  #inFlightBytes = 0;
  #wasFull = false;
  /** What would have arrived at the other end. */
  readonly #held: (() => void)[] = [];
  #handler: WireHandler | undefined;

  constructor(
    network: SimulatedNetwork,
    host: string,
    identity: CertificateIdentity | undefined,
    delayMs: number,
    inFlightBytesMax: number,
  ) {
    this.#network = network;
    this.host = host;
    this.identity = identity;
    this.#delayMs = delayMs;
    this.#inFlightBytesMax = inFlightBytesMax;
  }

  get isWritable(): boolean {
    return this.#inFlightBytes < this.#inFlightBytesMax;
  }

  start(handler: WireHandler): void {
    this.#handler = handler;
  }

  write(chunks: readonly Uint8Array[]): void {
    if (this.isClosed) return;
    const bytes = Buffer.concat(chunks);
    this.#inFlightBytes += bytes.length;
    this.#wasFull ||= !this.isWritable;
    this.#network.runtime.schedule(this.#delayMs, () => {
      this.#inFlightBytes -= bytes.length;
      this.#pass(() => this.other.arrive(bytes));
      if (!this.#wasFull || !this.isWritable || this.isClosed) return;
      this.#wasFull = false;
      this.#handler?.writable();
    });
  }

  /** Delivers bytes to this end. */
  arrive(bytes: Uint8Array): void {
    if (!this.isClosed) this.#handler?.receive(bytes);
  }

  soon(run: () => void): void {
    this.#network.runtime.schedule(0, run);
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#network.runtime.schedule(this.#delayMs, () => {
      this.#handler?.closed();
      this.#pass(() => this.other.fail());
    });
  }

  /** The hosts speak again. */
  releaseHeld(): void {
    for (const deliver of this.#held.splice(0)) deliver();
  }

  #pass(deliver: () => void): void {
    if (this.#network.isSilent(this.host, this.other.host)) this.#held.push(deliver);
    else deliver();
  }

  /** The connection breaks at this end. */
  fail(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#network.runtime.schedule(0, () => this.#handler?.closed());
  }

  /** This end is gone, without anybody being told. */
  vanish(): void {
    this.isClosed = true;
    this.#handler = undefined;
  }
}
