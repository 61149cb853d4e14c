// A replica that a test writes to: the same look-ups and changes as the real one, no database.

import { Buffer } from "node:buffer";
import type { TunnelId } from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import type {
  Change,
  KeyRecord,
  Replica,
  SealingKey,
  ShardId,
  TunnelRecord,
} from "../../src/directory/directory.ts";
import { mintKey, type KeyKind } from "../../src/directory/keys.ts";

export class FakeReplica implements Replica {
  seq = 0;
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
    const wanted = Buffer.from(hash).toString("hex");
    return [...this.#keys.values()].find((key) => key.hash === wanted && !key.record.isRevoked)?.record;
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
      placement: { shard: "s1" as ShardId, revision: (this.#revision += 1) },
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
    if (tunnel === undefined) return;
    const placement = { shard: shard as ShardId, revision: (this.#revision += 1) };
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
