// What the homes of a shard are given: time, the ways back to entries, and what they share.

import type { Logger, Runtime } from "@moor/runtime";
import type { ByteBudget } from "../../entry/byte-budget.ts";
import type { Timeline } from "../../moves/timeline.ts";
import type { Metrics } from "../../operator/metrics.ts";
import type { HomeShardPort, LinkEntryPort } from "../../peer/link-ports.ts";
import type { EntryId } from "../../peer/peer-link.ts";
import type { Generations } from "./generations.ts";

/**
 * Looks up the way to the entry of a link or a command; `undefined` once it is gone for good. An entry that is only out
 * of reach has one: what must be said is said when it is back.
 */
export type LinkEntryLookup = (entry: EntryId) => LinkEntryPort | undefined;

export interface HomeContext {
  readonly entries: LinkEntryLookup;
  /** The shard, as entries answer it. */
  readonly port: HomeShardPort;
  readonly generations: Generations;
  /** Bytes of commands, results and snapshots, over all homes of the node. */
  readonly budget: ByteBudget;
  readonly metrics: Pick<Metrics, "commandsEnded" | "linkReplacements">;
  readonly timeline: Timeline;
  readonly runtime: Runtime;
  readonly logger: Logger;
}
