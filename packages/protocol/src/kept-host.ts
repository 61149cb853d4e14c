// K, the shard host a client keeps: where it comes from, what drops it, and what the record is told.
// Spec: L11–L14.   Pure.
//
// I1  K is never the base itself, and always passes shardHostOk.

import type { LinkEffect, LinkWarning } from "./link-event.ts";
import type { LinkRecord } from "./link-record.ts";
import type { LinkFollower } from "./link-state.ts";
import { shardHostOk } from "./shard-host.ts";

/** K as a record has it: counts for the home it is of, and if this client may dial its host. Spec L13. */
export function judgeRecord(
  state: LinkFollower,
  record: LinkRecord | undefined,
): { readonly kept: string | undefined; readonly warnings: readonly LinkEffect[] } {
  const refuse = (code: LinkWarning) => ({
    kept: undefined,
    warnings: [{ kind: "warn", code } as const],
  });
  if (record?.host === undefined || !state.isFollowing) return { kept: undefined, warnings: [] };
  if (record.home !== state.home) return refuse("record-of-other-home");
  if (!shardHostOk(record.host, state.base)) return refuse("record-host-refused");
  return { kept: keptFor(state, record.host), warnings: [] };
}

/** K for a host: none if it is the base. Spec L11–L13. */
export function keptFor(state: LinkFollower, host: string): string | undefined {
  return host === state.base ? undefined : host;
}

/** Without K, hops and failures; the attempt stays. Spec L11, L14. */
export function withoutKept(state: LinkFollower): LinkFollower {
  return { ...state, kept: undefined, hops: 0, failures: undefined };
}

/** What to do where K is dropped or forgotten: say so, and write the record. Spec L12. */
export function dropRecord(
  state: LinkFollower,
  code: "host-forgotten" | "redirect-repeated",
): readonly LinkEffect[] {
  return [{ kind: "warn", code }, ...persist(state.home, undefined)];
}

/** Orders the record to hold a host or none, for a client that belongs to a home. Spec L12. */
export function persist(home: string | undefined, host: string | undefined): readonly LinkEffect[] {
  return home === undefined ? [] : [{ kind: "persist", home, host }];
}
