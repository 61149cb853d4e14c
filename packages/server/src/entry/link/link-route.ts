// What becomes of a client whose home lives on a shard: served here, sent to another host, or told to wait.
//
// Spec: L21; the one rule of hello, one-shots and live links of a moved home.   Pure.
// I1  Nobody is sent to the host dialled, to a shard that is not live, or by a `local` name.
// I2  A client that does not follow is served wherever it dialled: the entry relays (the owner may be another node's).

import type { HomeId } from "@moor/protocol";
import type { ShardRecord } from "../../directory/directory.ts";
import type { LinkContext } from "./link-context.ts";
import type { DialledHost } from "./link-hosts.ts";

/** `redirect`: 4421, or 421 for a one-shot. `wait`: 4503, or 503. */
export type LinkRoute =
  | { readonly kind: "serve" }
  | { readonly kind: "redirect"; readonly host: string }
  | { readonly kind: "wait" };

/**
 * @param owner the shard the home lives on; undefined when nobody knows it (any more)
 * @param ownerHost the link host of `owner`
 * @param isFollowing whether the client listed `shard`; one-shots always follow (L2)
 */
export function routeLink(
  owner: ShardRecord | undefined,
  ownerHost: string | undefined,
  dialled: DialledHost,
  isFollowing: boolean,
): LinkRoute {
  if (dialled.kind === "local" || !isFollowing || dialled.shard === owner?.id) return { kind: "serve" };
  if (owner?.state !== "live" || ownerHost === undefined || ownerHost === dialled.host)
    return { kind: "wait" };
  return { kind: "redirect", host: ownerHost };
}

/** Where a client of a home belongs, by what this node knows now. */
export function routeHome(
  { placements, hosts }: Pick<LinkContext, "placements" | "hosts">,
  home: HomeId,
  dialled: DialledHost,
  isFollowing: boolean,
): LinkRoute {
  const placement = placements.best(home);
  const owner = placement === undefined ? undefined : placements.shard(placement.shard);
  return routeLink(owner, owner === undefined ? undefined : hosts.hostOf(owner), dialled, isFollowing);
}
