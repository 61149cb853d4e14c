// What a node asks of the directory about the link plane: homes, their tokens, enrolment, service keys, the default shard.
//
// Spec: L7, L22, L26, L28, L29. Errors as in directory.ts, and `home_not_found`, `home_exists`, `service_key_not_found`.

import type { HomeId, TunnelId } from "@moor/protocol";
import type { Secret } from "@moor/runtime";
import type { CreatedTunnel, Order } from "./directory.ts";
import type { EnrolmentOutcome, HomeRecord, HomeSighting, ServiceKeyRecord } from "./home-records.ts";
import type { KeyRecord, Page, PageRequest, ShardId } from "./records.ts";

/** What a new home may be given; everything has a default. */
export interface HomeInput {
  /** As `parseHomeId` takes it, and not beginning with `tunnel_`. Default: `home_` and 16 hexadecimal digits. */
  readonly id?: HomeId;
  /** Up to 128 characters without control characters. Default empty. */
  readonly label?: string;
  /** A tunnel that no other home has; `new` makes one. Default none. Spec L26. */
  readonly tunnel?: TunnelId | "new";
}

/** What of a home may be changed; fields that are absent stay. */
export interface HomeFields {
  readonly label?: string;
  /** Null lets the tunnel go. */
  readonly tunnel?: TunnelId | null;
}

/** A new home, and its tunnel where one was made with it. */
export interface CreatedHome {
  readonly home: HomeRecord;
  readonly tunnel: CreatedTunnel | null;
}

/** The kinds of token a home can have. Spec L7. */
export type HomeTokenKind = "app" | "extension";

/** The link plane's part of the directory. */
export interface HomeDirectory {
  /**
   * Creates a home on the default shard, live or not: it waits there. `directory_unavailable` while no shard was ever
   * registered, or no node names the default one any more. `home_exists`; `tunnel_not_found`, or `conflict` for a
   * tunnel that is another home's.
   */
  createHome(input: HomeInput): Promise<CreatedHome>;
  updateHome(id: HomeId, fields: HomeFields): Promise<HomeRecord>;
  /** Deletes a home with its placement, tokens, codes and box key, for good. Its tunnel stays. */
  deleteHome(id: HomeId): Promise<void>;
  getHome(id: HomeId): Promise<HomeRecord>;
  listHomes(page: PageRequest): Promise<Page<HomeRecord>>;
  /** `token` is `<home>.<secret>`; it is revoked with `revokeKey`. Spec L7. */
  createHomeToken(input: {
    readonly home: HomeId;
    readonly kind: HomeTokenKind;
    /** Up to 128 characters. */
    readonly label?: string;
  }): Promise<{ readonly record: KeyRecord; readonly token: Secret }>;
  /** A code by which one box becomes the home's, good for 10 minutes; codes of the home made before end. */
  createEnrolment(home: HomeId): Promise<{ readonly code: Secret; readonly expiresAtMs: number }>;
  /**
   * Makes `publicKey` the home's box key. A code works once; the fifth wrong try ends it. A box key before it is
   * replaced, and what was known of that box is forgotten.
   *
   * @param publicKey Ed25519, 32 bytes raw, base64url
   */
  redeemEnrolment(code: string, publicKey: string): Promise<EnrolmentOutcome>;
  /** Notes hellos; unknown homes, and what is noted within the hour, cost nothing. At most 500. Spec L22. */
  recordHomeSightings(sightings: readonly HomeSighting[]): Promise<void>;
  /** Makes a service key that is announced as the next one. `conflict` when there is one already. */
  addServiceKey(order: Order): Promise<ServiceKeyRecord>;
  /** Forgets a service key. Of the active one: the next one signs; `conflict` when there is none. */
  retireServiceKey(id: string, order: Order): Promise<void>;
  /** The active one first. */
  listServiceKeys(): Promise<readonly ServiceKeyRecord[]>;
  /** Where new homes are placed and the base host leads. Homes stay where they are. `conflict` unless it is live. */
  setDefaultShard(shard: ShardId, order: Order): Promise<void>;
}
