// What every part of an entry is given: knowledge, ports and settings. No globals.

import type { TunnelId } from "@moor/protocol";
import type { Logger, Runtime } from "@moor/runtime";
import type { Replica, ShardId } from "../directory/directory.ts";
import type { Metrics } from "../operator/metrics.ts";
import type { EntryId, ShardPort } from "../peer/peer-link.ts";
import type { TokenSealer } from "../tokens/token-sealer.ts";
import type { ByteBudget } from "./byte-budget.ts";

/** Settings of an entry that an operator chooses. */
export interface EntrySettings {
  /** Origins whose pages may call connectors; `*` = every origin. Empty: no CORS headers. Spec T9. */
  readonly corsOrigins: readonly string[];
  /** Serve tunnels with access `open` on listeners that other machines reach. Default false. Spec T10. */
  readonly isOpenAccessForced: boolean;
}

export interface EntryContext {
  readonly entry: EntryId;
  readonly replica: Replica;
  readonly runtime: Runtime;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** The way to a shard, or `undefined` while its node cannot be reached. */
  readonly shardPort: (shard: ShardId) => ShardPort | undefined;
  readonly commandTokens: TokenSealer;
  readonly sessionTokens: TokenSealer;
  readonly bodies: ByteBudget;
  readonly settings: EntrySettings;
  /** Notes that an agent polled a tunnel for the first time. */
  readonly noteSeen: (tunnel: TunnelId) => void;
  /** Whether this node is leaving. */
  readonly isLeaving: () => boolean;
}
