// Where a dialled Host leads, and by which host clients reach a shard.
//
// Spec: L4, L21. One machine and one certificate may serve base and shards: only the Host says what was dialled.
// I1  The base host leads to the default shard, whose link host it is; any other live shard has a host of its own.
// I2  The host of a known shard that is not live leads where the base does: its clients are not stranded.
// I3  An unknown host is refused before anybody says hello: nothing would be signed for it.

import { isLoopbackHost } from "@moor/protocol";
import type { ShardId, ShardRecord } from "../../directory/directory.ts";

/** What a client dialled: the name without port, lower case. `local`: this machine, served and never redirected. */
export type DialledHost =
  | { readonly kind: "shard"; readonly host: string; readonly shard: ShardId }
  | { readonly kind: "local"; readonly host: string };

/** What hosts are read from. */
export interface HostSources {
  /** Host of the endpoint all clients are configured with. */
  readonly base: string;
  readonly shards: () => readonly ShardRecord[];
  /** The shard that the base host leads to; undefined while none was ever registered. */
  readonly defaultShard: () => ShardId | undefined;
}

export class LinkHosts {
  readonly #sources: HostSources;
  #byHost: ReadonlyMap<string, DialledHost> | undefined;

  constructor(sources: HostSources) {
    this.#sources = sources;
  }

  /** Shards or the default shard changed. */
  changed(): void {
    this.#byHost = undefined;
  }

  /**
   * What was dialled; undefined when nothing here is known by that name.
   *
   * @param header the Host header as sent
   * @param isLoopbackListener whether only this machine reaches the listener
   */
  find(header: string, isLoopbackListener: boolean): DialledHost | undefined {
    const name = nameOf(header);
    if (name === undefined) return undefined;
    this.#byHost ??= this.#read();
    const known = this.#byHost.get(name);
    if (known !== undefined) return known;
    return isLoopbackListener && isLocalName(name) ? { kind: "local", host: name } : undefined;
  }

  /** The host that clients of a shard's homes are told. */
  hostOf(shard: ShardRecord): string {
    return shard.id === this.#sources.defaultShard() ? this.#sources.base : shard.publicHost;
  }

  #read(): ReadonlyMap<string, DialledHost> {
    const { base, shards, defaultShard } = this.#sources;
    const first = defaultShard();
    const atBase = (host: string): DialledHost =>
      first === undefined ? { kind: "local", host } : { kind: "shard", host, shard: first };
    const hosts = new Map<string, DialledHost>();
    for (const { id, publicHost: host, state } of shards()) {
      hosts.set(host, state === "live" ? { kind: "shard", host, shard: id } : atBase(host));
    }
    // Last: no shard takes the base host from its owner.
    return hosts.set(base, atBase(base));
  }
}

/** The name in a Host header, without port, lower case; undefined for what is no single ASCII name or address. */
function nameOf(header: string): string | undefined {
  return /^(\[[0-9a-f:.]+\]|[0-9a-z._-]+)(?::\d{1,5})?$/.exec(header.toLowerCase())?.[1];
}

/** `localhost`, 127.0.0.0/8 and ::1; a name below `localhost` is a shard's or nobody's. */
function isLocalName(name: string): boolean {
  return isLoopbackHost(name) && !name.endsWith(".localhost");
}
