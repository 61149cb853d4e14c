// A node's view of the directory that lags behind the truth by a set time, or not at all until it is let go on.

import type { Change, HomeRecord, KeyRecord, TunnelRecord } from "../../src/directory/directory.ts";
import type { VirtualRuntime } from "@moor/testkit";
import { FakeReplica } from "./fake-replica.ts";

export class LaggingReplica extends FakeReplica {
  /** How far behind the truth this view is. Milliseconds. */
  lagMs = 0;
  readonly #truth: FakeReplica;
  readonly #view = new Map<string, TunnelRecord>();
  readonly #homes = new Map<string, HomeRecord>();
  readonly #revoked = new Set<string>();
  readonly #viewListeners = new Set<(change: Change) => void>();
  #stop: () => void;
  #held: (() => void)[] | undefined;

  constructor(runtime: VirtualRuntime, truth: FakeReplica) {
    super(runtime);
    this.#truth = truth;
    this.shardRecords = truth.shardRecords;
    this.nodeRecords = truth.nodeRecords;
    this.#stop = truth.onChange((change) => {
      runtime.schedule(this.lagMs, () => {
        if (this.#held === undefined) this.#apply(change);
        else this.#held.push(() => this.#apply(change));
      });
    });
  }

  /** Cuts the feed, or lets everything held come in. */
  setCut(isCut: boolean): void {
    const held = this.#held ?? [];
    this.#held = isCut ? held : undefined;
    if (!isCut) for (const apply of held) apply();
  }

  override tunnel(id: string): TunnelRecord | undefined {
    return this.#view.get(id);
  }

  override placement(tenant: string) {
    return (this.#view.get(tenant) ?? this.#homes.get(tenant))?.placement;
  }

  override home(id: string): HomeRecord | undefined {
    return this.#homes.get(id);
  }

  override homeApps(home: string) {
    return this.#truth.homeApps(home);
  }

  override serviceKeys() {
    return this.#truth.serviceKeys();
  }

  override defaultShard() {
    return this.#truth.defaultShard();
  }

  override keyByHash(hash: Uint8Array): KeyRecord | undefined {
    const key = this.#truth.keyByHashEvenRevoked(hash);
    return key === undefined || this.#revoked.has(key.id) ? undefined : { ...key, isRevoked: false };
  }

  override key(id: string): KeyRecord | undefined {
    const key = this.#truth.key(id);
    return key === undefined ? undefined : { ...key, isRevoked: this.#revoked.has(id) };
  }

  override sealingKeys() {
    return this.#truth.sealingKeys();
  }

  override correctionsOn(): boolean {
    return this.#truth.correctionsOn();
  }

  override onChange(listener: (change: Change) => void): () => void {
    this.#viewListeners.add(listener);
    return () => this.#viewListeners.delete(listener);
  }

  /** The node of this view is gone. */
  close(): void {
    this.#stop();
  }

  /** A node that starts reads everything at once. */
  readAll(): void {
    for (const tunnel of this.#truth.allTunnels()) this.#view.set(tunnel.id, tunnel);
    for (const home of this.#truth.allHomes()) this.#homes.set(home.id, home);
  }

  #apply(change: Change): void {
    const [tunnel, home] = [this.#truth.tunnel(change.id), this.#truth.home(change.id)];
    if (change.kind === "home" || change.kind === "placement") {
      if (home === undefined) this.#homes.delete(change.id);
      else this.#homes.set(change.id, home);
    }
    if (change.kind === "tunnel" || change.kind === "placement") {
      if (tunnel === undefined) this.#view.delete(change.id);
      else this.#view.set(change.id, tunnel);
    }
    if (change.kind === "key" && this.#truth.key(change.id)?.isRevoked === true) this.#revoked.add(change.id);
    for (const listener of this.#viewListeners) listener(change);
  }
}
