// What every part of an entry is given: knowledge, ports and settings. No globals.

import type { Logger, Runtime } from "@moor/runtime";
import type { ShardId } from "../directory/directory.ts";
import type { Metrics } from "../operator/metrics.ts";
import type { EntryId, EntryPort, ShardPort } from "../peer/peer-link.ts";
import type { Timeline } from "../moves/timeline.ts";
import type { CommandTokens } from "../tokens/command-token.ts";
import type { TokenSealer } from "../tokens/token-sealer.ts";
import type { AnswerRelay } from "./answer-relay.ts";
import type { ByteBudget } from "./byte-budget.ts";
import type { PlacementKnowledge } from "./placement-knowledge.ts";
import type { TenantDirectory } from "./tenant-directory.ts";

/** Settings of an entry that an operator chooses. */
export interface EntrySettings {
  /** Origins whose pages may call connectors; `*` = every origin. Empty: no CORS headers. Spec T9. */
  readonly corsOrigins: readonly string[];
  /** Serve tunnels with access `open` on listeners that other machines reach. Default false. Spec T10. */
  readonly isOpenAccessForced: boolean;
}

export interface EntryContext {
  readonly entry: EntryId;
  readonly runtime: Runtime;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tenants: TenantDirectory;
  readonly placements: PlacementKnowledge;
  /** The way to a shard, or `undefined` while its node cannot be reached. */
  readonly shardPort: (shard: ShardId) => ShardPort | undefined;
  /** The way to another entry, or `undefined` while it cannot be reached. */
  readonly entryPort: (entry: EntryId) => EntryPort | undefined;
  /** Takes answers that reached this entry to the entry that holds their call. */
  readonly answers: AnswerRelay;
  readonly commandTokens: CommandTokens;
  readonly pollingTokens: TokenSealer;
  readonly sessionTokens: TokenSealer;
  /** Whether capable polls are corrected: bootstrap entries only, by the residency's switch. Spec R4, R25. */
  readonly isCorrecting: () => boolean;
  readonly bodies: ByteBudget;
  readonly timeline: Timeline;
  readonly settings: EntrySettings;
  /** Whether this node is leaving. */
  readonly isLeaving: () => boolean;
}
