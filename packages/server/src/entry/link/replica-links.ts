// What links need to know, from a node's replica: who is who, and where homes live.
//
// Spec: L7, L21, L28.
// I1  A home nobody knows counts as placed where a keyed hash points: at every node of the residency the same shard, as if
//     it were one of those that were moved there (L28).

import { createHmac, hkdfSync } from "node:crypto";
import type { HomeId } from "@moor/protocol";
import type { Replica, ShardId, ShardRecord } from "../../directory/directory.ts";
import { parseHomeToken } from "../../directory/keys.ts";
import type { KnownPlacement } from "../../peer/peer-link.ts";
import type { PlacementKnowledge } from "../placement-knowledge.ts";
import type { HomePlacements, LinkIdentities } from "./link-context.ts";

const HASH_KEY_BYTES = 32;

/** Boxes and tokens as the replica shows them. */
export function replicaIdentities(replica: Pick<Replica, "seq" | "home" | "keyByHash">): LinkIdentities {
  return {
    get seq() {
      return replica.seq;
    },
    boxKey: (home) => replica.home(home)?.boxKey,
    token: (text, kind) => {
      const token = parseHomeToken(text);
      if (token?.kind !== kind) return undefined;
      const key = replica.keyByHash(token.hash);
      // Home and kind are in what was hashed.
      return key === undefined ? undefined : { home: token.home, keyId: key.id };
    },
  };
}

/** Placements as this node knows them. */
export function replicaHomePlacements(
  replica: Pick<Replica, "shard" | "shards" | "home">,
  placements: PlacementKnowledge,
  unknownHomeKey: Uint8Array,
): HomePlacements {
  return {
    best: (home) => placements.best(home) ?? guessedPlacement(home, replica.shards(), unknownHomeKey),
    learn: (home, placement) => replica.home(home) !== undefined && placements.learn(home, placement),
    shard: (id) => replica.shard(id),
  };
}

/** The key of I1, from what every node of a residency has and nobody else. */
export function deriveUnknownHomeKey(nodeSecret: Uint8Array, residency: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", nodeSecret, residency, "moor-unknown-home-v1", HASH_KEY_BYTES));
}

/** Rendezvous: a shard that comes or goes moves only the homes it gains or loses, as with real ones. */
function guessedPlacement(
  home: HomeId,
  shards: readonly ShardRecord[],
  key: Uint8Array,
): KnownPlacement | undefined {
  let best: { readonly shard: ShardId; readonly weight: string } | undefined;
  for (const { id, state } of shards) {
    if (state === "down") continue;
    const weight = createHmac("sha256", key).update(`${home}\0${id}`).digest("hex");
    if (best === undefined || weight > best.weight) best = { shard: id, weight };
  }
  return best === undefined ? undefined : { shard: best.shard, revision: 0 };
}
