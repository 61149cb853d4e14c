// What links learn from a replica: keys, tokens, and where a home that nobody knows would live.

import type { HomeId } from "@moor/protocol";
import { verifies, VirtualRuntime } from "@moor/testkit";
import { expect, test } from "vitest";
import type { ShardId, ShardRecord } from "../src/directory/directory.ts";
import {
  deriveUnknownHomeKey,
  replicaHomePlacements,
  replicaIdentities,
} from "../src/entry/link/replica-links.ts";
import { createPlacementKnowledge, replicaPlacements } from "../src/entry/placement-knowledge.ts";
import { FakeReplica } from "./support/fake-replica.ts";

function shards(states: Readonly<Record<string, ShardRecord["state"]>>): ShardRecord[] {
  return Object.entries(states).map(([id, state]) => ({
    id: id as ShardId,
    node: "n1",
    publicHost: `${id}.moor.localhost`,
    state,
    leaseCounter: 0,
  }));
}

function knowledge(states: Readonly<Record<string, ShardRecord["state"]>>, secret = 1) {
  const replica = new FakeReplica(new VirtualRuntime(1));
  replica.shardRecords = shards(states);
  const placements = createPlacementKnowledge(replicaPlacements(replica));
  const key = deriveUnknownHomeKey(new Uint8Array(32).fill(secret), "global");
  return { replica, homes: replicaHomePlacements(replica, placements, key) };
}

const unknown = Array.from({ length: 300 }, (_, at) => `nobody-${at}` as HomeId);

verifies(
  "L28",
  "a home nobody knows lives where a keyed hash points: at every node alike, on shards that are not down",
  () => {
    const states = { s1: "live", s2: "live", s3: "draining", s4: "down" } as const;
    const [one, other, foreign] = [knowledge(states), knowledge(states), knowledge(states, 2)];
    const placed = unknown.map((home) => one.homes.best(home)?.shard);
    expect(placed).toEqual(unknown.map((home) => other.homes.best(home)?.shard));
    expect(placed).not.toEqual(unknown.map((home) => foreign.homes.best(home)?.shard));
    expect(new Set(placed)).toEqual(new Set(["s1", "s2", "s3"]));
    // A shard that goes moves the homes it had, and no others: as with real ones.
    const fewer = knowledge({ s1: "live", s2: "live" });
    unknown.forEach((home, at) => {
      if (placed[at] !== "s3") expect(fewer.homes.best(home)?.shard).toBe(placed[at]);
    });
    expect(knowledge({ s1: "down" }).homes.best(unknown[0] as HomeId)).toBeUndefined();
  },
);

test("what is said of a home nobody knows is not kept", () => {
  const { replica, homes } = knowledge({ s1: "live", s2: "live" });
  const placement = { shard: "s2" as ShardId, revision: 9 };
  expect(homes.learn("nobody" as HomeId, placement)).toBe(false);
  const { id } = replica.addHome();
  expect(homes.learn(id, placement)).toBe(true);
  expect(homes.best(id)).toEqual(placement);
});

verifies("L7", "a token opens its own home in its own kind, until it is revoked", () => {
  const { replica } = knowledge({ s1: "live" });
  const identities = replicaIdentities(replica);
  const [home, other] = [replica.addHome(), replica.addHome()];
  const { id, text } = replica.addHomeToken("app", home.id);
  expect(identities.token(text, "app")).toEqual({ home: home.id, keyId: id });
  expect(identities.token(text, "extension")).toBeUndefined();
  expect(identities.token(text.replace(home.id, other.id), "app")).toBeUndefined();
  expect(identities.token(text.slice(home.id.length + 1), "app")).toBeUndefined();
  replica.revokeKey(id);
  expect(identities.token(text, "app")).toBeUndefined();
});

test("a box key is told as it is now; a home without a box has none, and an unknown home is unknown", () => {
  const { replica } = knowledge({ s1: "live" });
  const identities = replicaIdentities(replica);
  const { id } = replica.addHome({ boxKey: null });
  expect(identities.boxKey(id)).toBeNull();
  replica.updateHome(id, { boxKey: "k".repeat(43) });
  expect(identities.boxKey(id)).toBe("k".repeat(43));
  expect(identities.boxKey("nobody" as HomeId)).toBeUndefined();
});
