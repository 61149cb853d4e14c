// How far a node's entry and shards reach: its own process, or the other nodes too.

import type { ShardId } from "./directory/directory.ts";
import type { AnswerRelay } from "./entry/answer-relay.ts";
import type { Entry } from "./entry/entry.ts";
import type { EntryId, EntryPort, ShardPort } from "./peer/peer-link.ts";
import type { RawHead } from "./peer/peer-messages.ts";
import type { Reply } from "./peer/peer-requests.ts";
import type { Shard } from "./shard/shard.ts";

export interface NodeReach extends AnswerRelay {
  shardPort(shard: ShardId): ShardPort | undefined;
  entryPort(entry: EntryId): EntryPort | undefined;
  /** Asks another node; `undefined` when it does not answer within `waitMs`. */
  ask(nodeId: string, head: RawHead, waitMs?: number): Promise<Reply>;
  broadcast(head: RawHead): void;
  /** Shards are run by other nodes than before. */
  shardsMoved(shards: ReadonlySet<ShardId>): void;
  close(): void;
}

/** The reach of a node without peers. */
export function ownReach(self: EntryId, entry: () => Entry, shards: ReadonlyMap<ShardId, Shard>): NodeReach {
  return {
    shardPort: (shard) => shards.get(shard),
    entryPort: (id) => (id === self ? entry().port : undefined),
    // A call of another incarnation ended with it.
    deliver: () => Promise.resolve("not-pending"),
    ask: () => Promise.resolve(undefined),
    broadcast: () => {},
    shardsMoved: (moved) => entry().shardsChanged(moved),
    close: () => {},
  };
}
