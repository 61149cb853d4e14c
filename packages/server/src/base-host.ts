// The base host: what clients of the link plane are configured with, and what shards' own hosts are labels of.
//
// Spec: L4. The default shard is reached at the base host, every other shard at its own (link-routing.md).

import { parseBaseHost, shardHostOk, type BaseHost } from "@moor/protocol";

/** Base host where the configuration names none: `*.localhost` is this machine. */
export const BASE_HOST_DEFAULT = "moor.localhost" as BaseHost;

/**
 * The base host of a configuration: `shardDomain`, else the host of the public URL, else BASE_HOST_DEFAULT. Undefined for
 * one that no client could use (parseBaseHost).
 */
export function configBaseHost(config: {
  readonly shardDomain?: string | undefined;
  readonly public: { readonly url?: string | undefined };
}): BaseHost | undefined {
  const { shardDomain, public: listener } = config;
  const text = shardDomain ?? (listener.url === undefined ? BASE_HOST_DEFAULT : hostOf(listener.url));
  return text === undefined ? undefined : parseBaseHost(text);
}

/** Host of a shard beside the default one. With an address as base it is none that clients may be sent to. Spec L4. */
export function shardHost(shard: string, base: BaseHost): string {
  return `${shard}.${base}`;
}

/** Whether clients may be sent to a shard's own host, or the base is an address and they never are. */
export function isShardHostUsable(shard: string, base: BaseHost): boolean {
  const isAddress = /^(\[|[0-9.]+$)/.test(base);
  return isAddress || shardHostOk(shardHost(shard, base), base);
}

function hostOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}
