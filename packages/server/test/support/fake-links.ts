// Links of an entry as a drain sees them, on virtual time: they end a moment after their close, or never.

import type { Runtime } from "@moor/runtime";
import type { LinkDrainPort, LinkedClient } from "../../src/drains/link-drain-port.ts";

/** A close that was begun. */
export interface BegunClose {
  readonly client: LinkedClient;
  /** Monotonic milliseconds. */
  readonly atMs: number;
  readonly code: number;
  readonly reason: string;
}

export class FakeLinks implements LinkDrainPort {
  readonly closes: BegunClose[] = [];
  /** Clients whose link was destroyed, with the instant. */
  readonly destroyed: { readonly client: LinkedClient; readonly atMs: number }[] = [];
  /** When dials began to be refused. */
  refusedAtMs: number | undefined;
  readonly #runtime: Runtime;
  readonly #live = new Set<LinkedClient>();
  readonly #closing = new Map<LinkedClient, number>();
  readonly #endsAfterMs: (client: LinkedClient) => number;

  /** @param endsAfterMs how long a link lives on after its close was begun; Infinity = it never lets go */
  constructor(runtime: Runtime, count: number, endsAfterMs: (client: LinkedClient) => number = () => 20) {
    this.#runtime = runtime;
    this.#endsAfterMs = endsAfterMs;
    for (let at = 0; at < count; at += 1) this.add({ home: `h${at}`, role: "box" });
  }

  add(client: LinkedClient): void {
    this.#live.add(client);
  }

  links(): number {
    return this.#live.size + this.#closing.size;
  }

  clients(): Iterable<LinkedClient> {
    return this.#live;
  }

  refuseDials(): void {
    this.refusedAtMs ??= this.#runtime.monotonicMs();
  }

  closeSome(countMax: number, code: number, reason: string): number {
    let begun = 0;
    for (const client of this.#live) {
      if (begun === countMax) break;
      begun += 1;
      this.#begin(client, code, reason);
    }
    return begun;
  }

  destroyLate(ageMs: number): number {
    const atMs = this.#runtime.monotonicMs();
    const late = [...this.#closing].filter(([, beganAtMs]) => atMs - beganAtMs >= ageMs);
    for (const [client] of late) {
      this.#closing.delete(client);
      this.destroyed.push({ client, atMs });
    }
    return late.length;
  }

  #begin(client: LinkedClient, code: number, reason: string): void {
    const atMs = this.#runtime.monotonicMs();
    this.#live.delete(client);
    this.#closing.set(client, atMs);
    this.closes.push({ client, atMs, code, reason });
    const endsAfterMs = this.#endsAfterMs(client);
    if (endsAfterMs !== Infinity) {
      this.#runtime.schedule(endsAfterMs, () => void this.#closing.delete(client));
    }
  }
}
