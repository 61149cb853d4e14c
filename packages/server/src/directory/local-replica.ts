// A replica in a SQLite file of this node, with what the path of a call asks again and again kept in memory.
//
// Who feeds the file is behind ReplicaFeed: the embedded directory, whose own file it is, or feed-replica.ts.
// I1  The memory is cleared by the same changes that listeners hear of, before they hear of them.
// I2  `seq` is the newest change whose effect every read shows.

import type { DatabaseSync } from "node:sqlite";
import { ProtocolError } from "@moor/protocol";
import { invariant, type Logger } from "@moor/runtime";
import { integerAt, textAt } from "./columns.ts";
import type { HomeAppRecord, HomeRecord, ServiceKeyRecord, ServiceKeys } from "./home-records.ts";
import { HomeReads } from "./home-reads.ts";
import { isSameHash } from "./keys.ts";
import type { ResidencyHead } from "./ledger.ts";
import { headFromRow } from "./mutation-batch.ts";
import { pageOf } from "./page.ts";
import { RecentMap } from "./recent-map.ts";
import {
  parseShardId,
  type Change,
  type KeyRecord,
  type Move,
  type NodeRecord,
  type Page,
  type PageRequest,
  type Placement,
  type SealingKey,
  type ShardId,
  type ShardRecord,
  type TunnelRecord,
} from "./records.ts";
import type { Replica, ReplicaHealth, TenantCounts } from "./replica.ts";
import {
  keyFromRow,
  moveFromRow,
  nodeFromRow,
  placementFromRow,
  shardAt,
  shardFromRow,
  tunnelFromRow,
  type StoredKey,
} from "./rows.ts";
import { createSqliteStatements, type SqliteStatements } from "./sqlite-statements.ts";
import { READ } from "./statements.ts";
import type { TokenKeyVault } from "./token-key-vault.ts";

/** Tunnels, and keys, kept in memory: about 1 KB each. */
const REMEMBERED_MAX = 20_000;
/** Moves of one tenant that are shown unless asked otherwise. Count. */
const MOVES_SHOWN = 100;

/** What brings changes into the file. */
export interface ReplicaFeed {
  readonly health: ReplicaHealth;
  catchUp(waitMs: number): Promise<void>;
  noteRevision(revision: number): void;
}

/** Reads of a file that holds the directory's tables. */
export class LocalReplica implements Replica {
  readonly #db: DatabaseSync;
  readonly #statements: SqliteStatements;
  readonly #vault: TokenKeyVault;
  readonly #logger: Logger;
  readonly #homes: HomeReads;
  readonly #tunnels = new RecentMap<string, TunnelRecord>(REMEMBERED_MAX / 2);
  readonly #keys = new RecentMap<string, StoredKey>(REMEMBERED_MAX / 2);
  readonly #listeners = new Set<(change: Change) => void>();
  #feed: ReplicaFeed | undefined;
  #sealingKeys: readonly SealingKey[] | undefined;
  #residency: ResidencyHead | undefined;
  #shards: ReadonlyMap<string, ShardRecord> | undefined;
  #nodes: readonly NodeRecord[] | undefined;
  #seq: number;

  /** @param db an open connection; closed with the replica */
  constructor(db: DatabaseSync, options: { readonly vault: TokenKeyVault; readonly logger: Logger }) {
    this.#db = db;
    this.#statements = createSqliteStatements(db);
    this.#vault = options.vault;
    this.#logger = options.logger;
    this.#homes = new HomeReads(db, options.vault, () => this.residency());
    const head = this.#statements.get(READ.head, []);
    this.#seq = head === undefined ? 0 : integerAt(head, "seq");
  }

  /** Names who feeds the file: once, before anybody else gets the replica. */
  feedFrom(feed: ReplicaFeed): void {
    this.#feed = feed;
  }

  get seq(): number {
    return this.#seq;
  }

  get health(): ReplicaHealth {
    return this.#feed?.health ?? { kind: "current" };
  }

  tunnel(id: string): TunnelRecord | undefined {
    const remembered = this.#tunnels.get(id);
    if (remembered !== undefined) return remembered;
    const row = this.#statements.get(READ.tunnel, [id]);
    if (row === undefined) return undefined;
    const tunnel = tunnelFromRow(row);
    this.#tunnels.set(id, tunnel);
    return tunnel;
  }

  home(id: string): HomeRecord | undefined {
    return this.#homes.home(id);
  }

  homeApps(home: string): readonly HomeAppRecord[] {
    return this.#homes.homeApps(home);
  }

  placement(tenant: string): Placement | undefined {
    const known = tenant.startsWith("tunnel_") ? this.tunnel(tenant) : this.home(tenant);
    if (known !== undefined) return known.placement;
    const row = this.#statements.get(READ.placement, [tenant]);
    return row === undefined ? undefined : placementFromRow(row);
  }

  keyByHash(hash: Uint8Array): KeyRecord | undefined {
    const hashHex = Buffer.from(hash).toString("hex");
    const stored = this.#keys.get(hashHex) ?? this.#readKey(hashHex);
    if (stored === undefined || stored.record.isRevoked) return undefined;
    return isSameHash(Buffer.from(stored.hashHex, "hex"), hash) ? stored.record : undefined;
  }

  key(id: string): KeyRecord | undefined {
    const row = this.#statements.get(READ.key, [id]);
    return row === undefined ? undefined : keyFromRow(row).record;
  }

  sealingKeys(): readonly SealingKey[] {
    this.#sealingKeys ??= this.#statements.all(READ.sealingKeys, []).map((row) => this.#openKey(row));
    return this.#sealingKeys;
  }

  serviceKeys(): ServiceKeys | undefined {
    return this.#homes.serviceKeys();
  }

  defaultShard(): ShardId | undefined {
    return parseShardId(this.#readResidency().defaultShard);
  }

  residency(): string {
    return this.#readResidency().name;
  }

  correctionsOn(): boolean {
    return this.#readResidency().isCorrecting;
  }

  shards(): readonly ShardRecord[] {
    return [...this.#readShards().values()];
  }

  shard(id: string): ShardRecord | undefined {
    return this.#readShards().get(id);
  }

  nodes(): readonly NodeRecord[] {
    this.#nodes ??= this.#statements.all(READ.nodes, []).map(nodeFromRow);
    return this.#nodes;
  }

  tenantsOfShard(shard: ShardId, after: string, limit: number): readonly string[] {
    const rows = this.#statements.all(READ.tenantsOfShardAfter, [shard, after, limit]);
    return rows.map((row) => textAt(row, "tenant"));
  }

  countsByShard(): ReadonlyMap<ShardId, TenantCounts> {
    const counts = new Map<ShardId, TenantCounts>();
    for (const row of this.#statements.all(READ.countsByShard, [])) {
      const tunnels = integerAt(row, "tunnels");
      counts.set(shardAt(row, "shard"), { tunnels, homes: integerAt(row, "tenants") - tunnels });
    }
    return counts;
  }

  movesOf(tenant: string, limit = MOVES_SHOWN): readonly Move[] {
    const rows = this.#statements.all(READ.tenantMovesBefore, [Number.MAX_SAFE_INTEGER, limit, tenant]);
    return rows.map(moveFromRow);
  }

  async catchUp(waitMs: number): Promise<void> {
    await this.#feed?.catchUp(waitMs);
  }

  noteRevision(revision: number): void {
    this.#feed?.noteRevision(revision);
  }

  onChange(listener: (change: Change) => void): () => void {
    // A wrapper of its own lets one function listen twice and stop once.
    const own = (change: Change) => listener(change);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** A tunnel; `tunnel_not_found` when there is none. */
  mustHaveTunnel(id: string): TunnelRecord {
    const tunnel = this.tunnel(id);
    if (tunnel === undefined) throw new ProtocolError("tunnel_not_found");
    return tunnel;
  }

  /** A home; `home_not_found` when there is none. */
  mustHaveHome(id: string): HomeRecord {
    const home = this.home(id);
    if (home === undefined) throw new ProtocolError("home_not_found");
    return home;
  }

  /** Homes in id order. */
  listHomes(page: PageRequest): Page<HomeRecord> {
    return pageOf(page, (afterId, limit) => this.#homes.homesAfter(afterId, limit));
  }

  /** Service keys, the active one first. */
  listServiceKeys(): readonly ServiceKeyRecord[] {
    return this.#homes.listServiceKeys();
  }

  /** Tunnels in id order. */
  listTunnels(page: PageRequest): Page<TunnelRecord> {
    return pageOf(page, (afterId, limit) => {
      const rows = this.#statements.all(READ.tunnelsAfter, [afterId, limit]);
      return rows.map(tunnelFromRow);
    });
  }

  /** Keys in id order, of one tenant or of all. */
  listKeys(page: PageRequest & { readonly tunnel?: string; readonly home?: string }): Page<KeyRecord> {
    const tenant = page.tunnel ?? page.home;
    return pageOf(page, (afterId, limit) => {
      const rows =
        tenant === undefined
          ? this.#statements.all(READ.keysAfter, [afterId, limit])
          : this.#statements.all(READ.tenantKeysAfter, [afterId, limit, tenant]);
      return rows.map((row) => keyFromRow(row).record);
    });
  }

  /** The file shows these changes now: clears memory, then tells listeners. `seq` is the newest number it shows. */
  show(changes: readonly Change[], seq: number): void {
    this.#seq = seq;
    for (const change of changes) this.#forget(change);
    for (const change of changes) this.#tell(change);
  }

  /** The file shows other leases now. */
  showLeases(): void {
    this.#shards = undefined;
  }

  close(): void {
    this.#listeners.clear();
    this.#db.close();
  }

  #readKey(hashHex: string): StoredKey | undefined {
    const row = this.#statements.get(READ.keyByHash, [hashHex]);
    if (row === undefined) return undefined;
    const stored = keyFromRow(row);
    this.#keys.set(hashHex, stored);
    return stored;
  }

  #openKey(row: Readonly<Record<string, unknown>>): SealingKey {
    const id = textAt(row, "id");
    const secret = this.#vault.open(this.residency(), id, textAt(row, "secret"));
    invariant(secret !== undefined, "D4 the node secret opens every token key");
    return { id, secret, state: row["state"] === "sealing" ? "sealing" : "accepted" };
  }

  #readResidency(): ResidencyHead {
    this.#residency ??= headFromRow(this.#statements.get(READ.head, []) ?? {});
    return this.#residency;
  }

  #readShards(): ReadonlyMap<string, ShardRecord> {
    this.#shards ??= new Map(
      this.#statements.all(READ.shards, []).map((row) => [textAt(row, "id"), shardFromRow(row)]),
    );
    return this.#shards;
  }

  #forget(change: Change): void {
    this.#homes.forget(change);
    switch (change.kind) {
      case "tunnel":
      case "placement":
        return this.#tunnels.delete(change.id);
      case "key":
        return this.#keys.clear();
      case "token-key":
        this.#sealingKeys = undefined;
        return;
      case "shard":
        this.#shards = undefined;
        return;
      case "node":
        this.#nodes = undefined;
        return;
      case "residency":
        this.#residency = undefined;
        return;
      case "move":
      case "job":
      case "home":
      case "home-app":
      case "service-key":
        return;
    }
  }

  #tell(change: Change): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        const reason = error instanceof Error ? error.name : "unknown";
        this.#logger.error("directory-listener-failed", { kind: change.kind, reason });
      }
    }
  }
}
