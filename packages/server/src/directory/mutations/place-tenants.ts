// Giving tenants a shard and a revision.
//
// Spec: R22, R23.
// I1  Every placement that is written gets a revision of its own, and the key that seals now.

import { textAt } from "../columns.ts";
import type { Ledger } from "../ledger.ts";
import { insertRows } from "../multi-row.ts";
import { all, type Steps } from "../mutation-steps.ts";
import { query } from "../statements.ts";
import { WRITE } from "../write-statements.ts";

/** Format of polling tokens that new placements are sealed in. */
export const TOKEN_FORMAT = 1;

/** A tenant and the shard it is to be on. */
export interface Assignment {
  readonly tenant: string;
  readonly shard: string;
  /** Why, as the placement keeps it: `created`, `moved`, …. */
  readonly reason: string;
}

/** A placement that was written. */
export interface Assigned extends Assignment {
  readonly revision: number;
  readonly tokenKey: string;
}

/** Places tenants; notes a `placement` change for each. */
export function* placeTenants(
  assignments: readonly Assignment[],
  ledger: Ledger,
): Steps<readonly Assigned[]> {
  if (assignments.length === 0) return [];
  const tokenKey = textAt((yield query(WRITE.sealingTokenKey, []))[0], "id");
  const assigned = assignments.map((each) => ({ ...each, revision: ledger.takeRevision(), tokenKey }));
  yield* all(
    insertRows(
      "placements",
      ["tenant", "shard", "revision", "token_key", "token_format", "reason"],
      assigned.map((each) => [each.tenant, each.shard, each.revision, tokenKey, TOKEN_FORMAT, each.reason]),
      `on conflict (tenant) do update set shard = excluded.shard, revision = excluded.revision,
        token_key = excluded.token_key, token_format = excluded.token_format, reason = excluded.reason`,
    ),
  );
  for (const { tenant } of assigned) ledger.change("placement", tenant);
  return assigned;
}

/** Ids of the shards that take tenants. */
export function* liveShards(): Steps<readonly string[]> {
  return (yield query(WRITE.liveShards, [])).map((row) => textAt(row, "id"));
}
