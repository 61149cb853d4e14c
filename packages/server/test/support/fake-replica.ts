// A replica that a test writes to: the same look-ups and changes as the real one, no database.

import { Buffer } from "node:buffer";
import type { HomeId, TunnelId } from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import type {
  Change,
  HomeAppRecord,
  HomeRecord,
  KeyRecord,
  Move,
  NodeRecord,
  Placement,
  Replica,
  ReplicaHealth,
  SealingKey,
  ServiceKeys,
  ShardId,
  ShardRecord,
  TenantCounts,
  TunnelRecord,
} from "../../src/directory/directory.ts";
import { mintHomeToken, mintKey, type KeyKind, type MintedKey } from "../../src/directory/keys.ts";
import { createServiceKey } from "../../src/directory/service-keys.ts";

export class FakeReplica implements Replica {
  seq = 0;
  health: ReplicaHealth = { kind: "current" };
  isCorrecting = false;
  shardRecords: readonly ShardRecord[] = [];
  nodeRecords: readonly NodeRecord[] = [];
  readonly #runtime: Runtime;
  readonly #tunnels = new Map<string, TunnelRecord>();
  readonly #homes = new Map<string, HomeRecord>();
  readonly #homeApps = new Map<string, HomeAppRecord[]>();
  readonly #keys = new Map<string, { readonly record: KeyRecord; readonly hash: string }>();
  readonly #listeners = new Set<(change: Change) => void>();
  readonly #sealing: SealingKey;
  #serviceKeys: ServiceKeys | undefined;
  defaultShardId: ShardId | undefined = "s1" as ShardId;
  /** Revisions are times of the directory, as in production, instead of 1, 2, 3. */
  isTimed = false;
  #revision = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#sealing = { id: "tk_1", secret: runtime.randomBytes(32), state: "sealing" };
    this.#serviceKeys = { active: createServiceKey(runtime) };
  }

  tunnel(id: string): TunnelRecord | undefined {
    return this.#tunnels.get(id);
  }

  home(id: string): HomeRecord | undefined {
    return this.#homes.get(id);
  }

  allHomes(): readonly HomeRecord[] {
    return [...this.#homes.values()];
  }

  homeApps(home: string): readonly HomeAppRecord[] {
    return this.#homeApps.get(home) ?? [];
  }

  serviceKeys(): ServiceKeys | undefined {
    return this.#serviceKeys;
  }

  defaultShard(): ShardId | undefined {
    return this.defaultShardId;
  }

  keyByHash(hash: Uint8Array): KeyRecord | undefined {
    const key = this.keyByHashEvenRevoked(hash);
    return key?.isRevoked === true ? undefined : key;
  }

  /** For views that have not heard of the revocation. */
  keyByHashEvenRevoked(hash: Uint8Array): KeyRecord | undefined {
    const wanted = Buffer.from(hash).toString("hex");
    return [...this.#keys.values()].find((key) => key.hash === wanted)?.record;
  }

  allTunnels(): readonly TunnelRecord[] {
    return [...this.#tunnels.values()];
  }

  key(id: string): KeyRecord | undefined {
    return this.#keys.get(id)?.record;
  }

  sealingKeys(): readonly SealingKey[] {
    return [this.#sealing];
  }

  residency(): string {
    return "global";
  }

  placement(tenant: string): Placement | undefined {
    return (this.#tunnels.get(tenant) ?? this.#homes.get(tenant))?.placement;
  }

  correctionsOn(): boolean {
    return this.isCorrecting;
  }

  shards(): readonly ShardRecord[] {
    return this.shardRecords;
  }

  shard(id: string): ShardRecord | undefined {
    return this.shardRecords.find((shard) => shard.id === id);
  }

  nodes(): readonly NodeRecord[] {
    return this.nodeRecords;
  }

  tenantsOfShard(shard: ShardId, after: string, limit: number): readonly string[] {
    const tenants = this.#tenants().filter((tenant) => tenant.placement.shard === shard);
    const ids: readonly string[] = tenants.map((tenant) => tenant.id);
    return ids
      .filter((id) => id > after)
      .toSorted()
      .slice(0, limit);
  }

  countsByShard(): ReadonlyMap<ShardId, TenantCounts> {
    const counts = new Map<ShardId, TenantCounts>();
    for (const { id, placement } of this.#tenants()) {
      const { tunnels, homes } = counts.get(placement.shard) ?? { tunnels: 0, homes: 0 };
      const isTunnel = this.#tunnels.has(id);
      counts.set(placement.shard, {
        tunnels: tunnels + (isTunnel ? 1 : 0),
        homes: homes + (isTunnel ? 0 : 1),
      });
    }
    return counts;
  }

  movesOf(): readonly Move[] {
    return [];
  }

  async catchUp(): Promise<void> {}

  noteRevision(): void {}

  onChange(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  takeRevision(): number {
    const next = this.#revision + 1;
    this.#revision = this.isTimed ? Math.max(next, this.#runtime.wallMs() * 1_000) : next;
    return this.#revision;
  }

  addTunnel(fields: Partial<TunnelRecord> = {}): TunnelRecord {
    const id = `tunnel_${Buffer.from(this.#runtime.randomBytes(16)).toString("hex")}` as TunnelId;
    const record: TunnelRecord = {
      id,
      name: "t",
      description: "",
      access: "key",
      deadlineMs: 55_000,
      createdAtMs: 0,
      isSeen: false,
      placement: placementAt("s1", this.takeRevision()),
      ...fields,
    };
    this.#tunnels.set(record.id, record);
    this.#emit("tunnel", record.id);
    return record;
  }

  /** A home on the default shard, `h1`, `h2`, … unless it is named. */
  addHome(fields: Partial<HomeRecord> = {}): HomeRecord {
    const record: HomeRecord = {
      id: `h${this.#homes.size + 1}` as HomeId,
      label: "",
      boxKey: null,
      boxHasShard: null,
      boxSeenAtMs: null,
      tunnel: null,
      createdAtMs: 0,
      placement: placementAt(this.defaultShardId ?? "s1", this.takeRevision()),
      ...fields,
    };
    this.#homes.set(record.id, record);
    this.#emit("home", record.id);
    return record;
  }

  /** Changes fields of a home, e.g. its box key. */
  updateHome(id: string, fields: Partial<HomeRecord>): void {
    const home = this.#homes.get(id);
    if (home === undefined) return;
    this.#homes.set(id, { ...home, ...fields });
    this.#emit("home", id);
  }

  deleteHome(id: string): void {
    this.#homes.delete(id);
    this.#homeApps.delete(id);
    this.#emit("home", id);
  }

  setHomeApps(home: string, apps: readonly HomeAppRecord[]): void {
    this.#homeApps.set(home, [...apps]);
    for (const { app } of apps) this.#emit("home-app", `${home}/${app}`);
  }

  /** A token `<home>.<secret>`. */
  addHomeToken(kind: "app" | "extension", home: HomeId): { readonly id: string; readonly text: string } {
    return this.#keep(kind, home, mintHomeToken(home, kind, this.#runtime));
  }

  setServiceKeys(keys: ServiceKeys | undefined): void {
    this.#serviceKeys = keys;
    this.#emit("service-key", keys?.active.id ?? "");
  }

  addKey(kind: KeyKind, tenant: string): { readonly id: string; readonly text: string } {
    return this.#keep(kind, tenant, mintKey(kind, this.#runtime));
  }

  #keep(kind: KeyKind, tenant: string, minted: MintedKey): { readonly id: string; readonly text: string } {
    const id = `key_${this.#keys.size + 1}`;
    const record = { id, kind, tenant, label: "", prefix: minted.prefix, createdAtMs: 0, isRevoked: false };
    this.#keys.set(id, { record, hash: Buffer.from(minted.hash).toString("hex") });
    this.#emit("key", id);
    return { id, text: minted.key.reveal() };
  }

  revokeKey(id: string): void {
    const key = this.#keys.get(id);
    if (key !== undefined) this.#keys.set(id, { ...key, record: { ...key.record, isRevoked: true } });
    this.#emit("key", id);
  }

  markSeen(id: string): void {
    const tunnel = this.#tunnels.get(id);
    if (tunnel !== undefined) this.#tunnels.set(id, { ...tunnel, isSeen: true });
  }

  move(id: string, shard: string): void {
    const [tunnel, home] = [this.#tunnels.get(id), this.#homes.get(id)];
    if (this.placement(id)?.shard === shard) return;
    const placement = placementAt(shard, this.takeRevision());
    if (tunnel !== undefined) this.#tunnels.set(id, { ...tunnel, placement });
    else if (home !== undefined) this.#homes.set(id, { ...home, placement });
    else return;
    this.#emit("placement", id);
  }

  deleteTunnel(id: string): void {
    this.#tunnels.delete(id);
    this.#emit("tunnel", id);
  }

  #tenants(): readonly (TunnelRecord | HomeRecord)[] {
    return [...this.#tunnels.values(), ...this.#homes.values()];
  }

  #emit(kind: Change["kind"], id: string): void {
    this.seq += 1;
    for (const listener of this.#listeners) listener({ seq: this.seq, kind, id });
  }
}

function placementAt(shard: string, revision: number): Placement {
  return { shard: shard as ShardId, revision, tokenKey: "tk_1", tokenFormat: 1 };
}
