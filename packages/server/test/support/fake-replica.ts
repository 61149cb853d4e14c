// A replica that a test writes to: the same look-ups and changes as the real one, no database.

import { Buffer } from "node:buffer";
import type { TunnelId } from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import type {
  Change,
  KeyRecord,
  Move,
  NodeRecord,
  Placement,
  Replica,
  ReplicaHealth,
  SealingKey,
  ShardId,
  ShardRecord,
  TenantCounts,
  TunnelRecord,
} from "../../src/directory/directory.ts";
import { mintKey, type KeyKind } from "../../src/directory/keys.ts";

export class FakeReplica implements Replica {
  seq = 0;
  health: ReplicaHealth = { kind: "current" };
  isCorrecting = false;
  shardRecords: readonly ShardRecord[] = [];
  nodeRecords: readonly NodeRecord[] = [];
  readonly #runtime: Runtime;
  readonly #tunnels = new Map<string, TunnelRecord>();
  readonly #keys = new Map<string, { readonly record: KeyRecord; readonly hash: string }>();
  readonly #listeners = new Set<(change: Change) => void>();
  readonly #sealing: SealingKey;
  #revision = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#sealing = { id: "tk_1", secret: runtime.randomBytes(32), state: "sealing" };
  }

  tunnel(id: string): TunnelRecord | undefined {
    return this.#tunnels.get(id);
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
    return this.#tunnels.get(tenant)?.placement;
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
    const tenants = [...this.#tunnels.values()].filter((tunnel) => tunnel.placement.shard === shard);
    const ids: readonly string[] = tenants.map((tunnel) => tunnel.id);
    return ids
      .filter((id) => id > after)
      .toSorted()
      .slice(0, limit);
  }

  countsByShard(): ReadonlyMap<ShardId, TenantCounts> {
    const counts = new Map<ShardId, TenantCounts>();
    for (const { placement } of this.#tunnels.values()) {
      const tunnels = (counts.get(placement.shard)?.tunnels ?? 0) + 1;
      counts.set(placement.shard, { tunnels, homes: 0 });
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
      placement: placementAt("s1", (this.#revision += 1)),
      ...fields,
    };
    this.#tunnels.set(record.id, record);
    this.#emit("tunnel", record.id);
    return record;
  }

  addKey(kind: KeyKind, tenant: string): { readonly id: string; readonly text: string } {
    const minted = mintKey(kind, this.#runtime);
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
    const tunnel = this.#tunnels.get(id);
    if (tunnel === undefined || tunnel.placement.shard === shard) return;
    const placement = placementAt(shard, (this.#revision += 1));
    this.#tunnels.set(id, { ...tunnel, placement });
    this.#emit("placement", id);
  }

  deleteTunnel(id: string): void {
    this.#tunnels.delete(id);
    this.#emit("tunnel", id);
  }

  #emit(kind: Change["kind"], id: string): void {
    this.seq += 1;
    for (const listener of this.#listeners) listener({ seq: this.seq, kind, id });
  }
}

function placementAt(shard: string, revision: number): Placement {
  return { shard: shard as ShardId, revision, tokenKey: "tk_1", tokenFormat: 1 };
}
