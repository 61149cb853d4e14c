// What the link part of an entry is given: knowledge, keys, ports and settings. No globals.

import type { KeyObject } from "node:crypto";
import type { HomeId } from "@moor/protocol";
import type { Logger, Runtime } from "@moor/runtime";
import type { ShardId, ShardRecord } from "../../directory/directory.ts";
import type { LinkWatch } from "../../drains/link-drain-port.ts";
import type { HomeShardPort } from "../../peer/link-ports.ts";
import type { EntryId, KnownPlacement } from "../../peer/peer-link.ts";
import type { HomeSightings } from "../home-sightings.ts";
import type { HelloSigner } from "./hello-signer.ts";
import type { LinkHosts } from "./link-hosts.ts";
import type { LinkMetrics } from "./link-metrics.ts";

/** What a token of a home is for. Spec L7. */
export type TokenKind = "app" | "extension";

/** A token that works. */
export interface KnownToken {
  readonly home: HomeId;
  /** Its id in the directory; not secret. */
  readonly keyId: string;
}

/** Who is who among boxes and apps: from the replica. */
export interface LinkIdentities {
  /** Number of the newest change of the directory that these show. */
  readonly seq: number;
  /** The raw key of a home's box, base64url; null before a box is enrolled; undefined for a home nobody knows. */
  boxKey(home: HomeId): string | null | undefined;
  /** The home and id of a token's text; undefined for a text that is none, of no home, or revoked (L7). */
  token(text: string, kind: TokenKind): KnownToken | undefined;
}

/** Where homes live. */
export interface HomePlacements {
  /** The newest placement known; for a home nobody knows, where a keyed hash points (L28). */
  best(home: HomeId): KnownPlacement | undefined;
  /** Takes in what a shard says; returns whether it was news. */
  learn(home: HomeId, placement: KnownPlacement): boolean;
  shard(id: ShardId): ShardRecord | undefined;
}

/** Finds out whether `signature` is `key`'s over `bytes`, off this thread; `answer` is called once, later. */
export type SignatureVerifier = (
  bytes: Uint8Array,
  signature: string,
  key: KeyObject,
  answer: (isValid: boolean) => void,
) => void;

export interface LinkContext {
  readonly entry: EntryId;
  readonly runtime: Runtime;
  readonly logger: Logger;
  readonly metrics: LinkMetrics;
  readonly hosts: LinkHosts;
  readonly identities: LinkIdentities;
  readonly placements: HomePlacements;
  /** Notes who said hello, for the gate of moves. Spec L22. */
  readonly sightings: Pick<HomeSightings, "noteBoxHello" | "noteAppHello">;
  readonly signer: HelloSigner;
  readonly verify: SignatureVerifier;
  /** The way to a shard, or `undefined` while its node cannot be reached. */
  readonly shardPort: (shard: ShardId) => HomeShardPort | undefined;
  /** Brings this node's view up to date; resolves within `waitMs` milliseconds, and never rejects. */
  readonly catchUp: (waitMs: number) => Promise<void>;
  readonly watch: LinkWatch;
  /** Over how many milliseconds clients are asked to come back, should this node end. Spec L3, L28. */
  readonly spreadMs: () => number;
  /** Between two pings. Milliseconds. Spec L32. */
  readonly pingMs: number;
}
