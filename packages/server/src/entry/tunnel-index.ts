// What an entry holds, found by tunnel: a placement change concerns one tunnel's calls and polls, not all.

import type { TunnelId } from "@moor/protocol";

export class TunnelIndex<Item> {
  readonly #byTunnel = new Map<TunnelId, Set<Item>>();

  add(tunnel: TunnelId, item: Item): void {
    const items = this.#byTunnel.get(tunnel);
    if (items === undefined) this.#byTunnel.set(tunnel, new Set([item]));
    else items.add(item);
  }

  remove(tunnel: TunnelId, item: Item): void {
    const items = this.#byTunnel.get(tunnel);
    if (items === undefined) return;
    items.delete(item);
    if (items.size === 0) this.#byTunnel.delete(tunnel);
  }

  /** The items of a tunnel now; what is added or removed meanwhile does not disturb the caller. */
  of(tunnel: TunnelId): readonly Item[] {
    return [...(this.#byTunnel.get(tunnel) ?? [])];
  }
}
