// The shard that new homes are placed on and that the base host leads to.
//
// Spec: L22. Design: "Links".
// I1  It is the first shard ever registered until an order names another; only a shard that its node dropped hands it on.

import { textAt } from "../columns.ts";
import type { Ledger } from "../ledger.ts";
import { done, refused, type MutationFunction, type MutationSteps, type Steps } from "../mutation-steps.ts";
import { query } from "../statements.ts";
import { WRITE } from "../write-statements.ts";
import { liveShards } from "./place-tenants.ts";

/** The default shard to be set. */
export interface SetDefaultShard {
  readonly kind: "set-default-shard";
  readonly shard: string;
}

export const setDefaultShard: MutationFunction<SetDefaultShard> = function* (
  { shard },
  ledger,
): MutationSteps {
  const [found] = yield query(WRITE.shard, [shard]);
  if (found === undefined) return refused("shard_not_found", `there is no shard ${shard}`);
  if (found["state"] !== "live") return refused("conflict", `shard ${shard} is not live`);
  yield* writeDefaultShard(shard, ledger);
  return done();
};

/** The default shard that homes may be placed on, live or not: undefined where none is known, or its node dropped it. */
export function* usableDefaultShard(): Steps<string | undefined> {
  const [found] = yield query(WRITE.defaultShard, []);
  if (found === undefined || found["state"] === null) return undefined;
  const isDropped = found["state"] === "down" && found["node"] === "";
  return isDropped ? undefined : textAt(found, "id");
}

/**
 * Names a default shard where there is none to use: the first that registers (I1).
 *
 * @param registered shards of the node that registers
 */
export function* electDefaultShard(registered: readonly string[], ledger: Ledger): Steps<void> {
  if ((yield* usableDefaultShard()) !== undefined) return;
  const elected = registered[0] ?? (yield* liveShards())[0];
  if (elected !== undefined) yield* writeDefaultShard(elected, ledger);
}

function* writeDefaultShard(shard: string, ledger: Ledger): Steps<void> {
  const changed = yield query(WRITE.setDefaultShard, [shard]);
  if (changed.length > 0) ledger.change("residency", ledger.head?.name ?? "");
}
