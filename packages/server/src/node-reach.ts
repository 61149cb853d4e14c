// How far a node's entry and shards reach: its own process, or the other nodes too.

import type { ShardId } from "./directory/directory.ts";
import type { AnswerRelay } from "./entry/answer-relay.ts";
import type { Entry } from "./entry/entry.ts";
import type { HomeShardPort, LinkEntry, LinkEntryPort } from "./peer/link-ports.ts";
import type { EntryId, EntryPort, ShardPort } from "./peer/peer-link.ts";
import type { RawHead } from "./peer/peer-messages.ts";
import type { Reply } from "./peer/peer-requests.ts";
import type { HomeTable } from "./shard/home/home-table.ts";
import type { Shard } from "./shard/shard.ts";

export interface NodeReach extends AnswerRelay {
  shardPort(shard: ShardId): ShardPort | undefined;
  entryPort(entry: EntryId): EntryPort | undefined;
  /** The way to the homes of a shard; `undefined` while its node is not in reach. */
  homeShardPort(shard: ShardId): HomeShardPort | undefined;
  /** The way to what an entry holds of links, also while it is out of reach; `undefined` once it is gone for good. */
  linkEntryPort(entry: EntryId): LinkEntryPort | undefined;
  /** Asks another node; `undefined` when it does not answer within `waitMs`. */
  ask(nodeId: string, head: RawHead, waitMs?: number): Promise<Reply>;
  broadcast(head: RawHead): void;
  /** Shards are run by other nodes than before. */
  shardsMoved(shards: ReadonlySet<ShardId>): void;
  close(): void;
}

/** The parts of a node without peers. */
export interface OwnParts {
  readonly self: EntryId;
  readonly entry: () => Entry;
  readonly links: () => LinkEntry;
  readonly shards: ReadonlyMap<ShardId, Shard>;
  readonly homes: ReadonlyMap<ShardId, HomeTable>;
}

/** The reach of a node without peers. */
export function ownReach({ self, entry, links, shards, homes }: OwnParts): NodeReach {
  return {
    shardPort: (shard) => shards.get(shard),
    entryPort: (id) => (id === self ? entry().port : undefined),
    homeShardPort: (shard) => homes.get(shard),
    linkEntryPort: (id) => (id === self ? links().port : undefined),
    // A call of another incarnation ended with it.
    deliver: () => Promise.resolve("not-pending"),
    ask: () => Promise.resolve(undefined),
    broadcast: () => {},
    shardsMoved: (moved) => {
      entry().shardsChanged(moved);
      links().shardsChanged(moved);
    },
    close: () => {},
  };
}
