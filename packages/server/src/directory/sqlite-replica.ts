// The replica of a node whose authority is a SQLite file of its own: the file itself, read through a connection that
// cannot write, with what the path of a call asks again and again kept in memory.
//
// I1  The memory is cleared by the same changes that listeners hear of, before they hear of them.
// I2  `seq` is the newest change whose effect every read shows.

import { DatabaseSync } from "node:sqlite";
import type { Logger } from "@moor/runtime";
import type { Change, KeyRecord, Page, PageRequest, Replica, SealingKey, TunnelRecord } from "./directory.ts";
import { isSameHash } from "./keys.ts";
import { pageOf } from "./page.ts";
import { RecentMap } from "./recent-map.ts";
import {
  changeFromRow,
  integerAt,
  keyFromRow,
  sealingKeyFromRow,
  textAt,
  tunnelFromRow,
  type StoredKey,
} from "./rows.ts";
import { READ } from "./statements.ts";
import { createSqliteStatements, type SqliteStatements } from "./sqlite-statements.ts";

/** Tunnels, and keys, kept in memory: about 1 KB each. */
const REMEMBERED_MAX = 20_000;
/** Changes read at once. */
const CHANGES_PAGE = 1_000;

/** Reads of the authority's own file. */
export class SqliteReplica implements Replica {
  readonly #db: DatabaseSync;
  readonly #statements: SqliteStatements;
  readonly #logger: Logger;
  readonly #tunnels = new RecentMap<string, TunnelRecord>(REMEMBERED_MAX / 2);
  readonly #keys = new RecentMap<string, StoredKey>(REMEMBERED_MAX / 2);
  readonly #listeners = new Set<(change: Change) => void>();
  #sealingKeys: readonly SealingKey[] | undefined;
  #residency: string | undefined;
  #seq: number;

  constructor(path: string, logger: Logger) {
    this.#db = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
    this.#statements = createSqliteStatements(this.#db);
    this.#logger = logger;
    this.#seq = integerAt(this.#statements.get(READ.newestChange, []) ?? {}, "seq");
  }

  get seq(): number {
    return this.#seq;
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
    this.#sealingKeys ??= this.#statements.all(READ.sealingKeys, []).map(sealingKeyFromRow);
    return this.#sealingKeys;
  }

  residency(): string {
    this.#residency ??= textAt(this.#statements.get(READ.residency, []) ?? {}, "name");
    return this.#residency;
  }

  onChange(listener: (change: Change) => void): () => void {
    // A wrapper of its own lets one function listen twice and stop once.
    const own = (change: Change) => listener(change);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** Tunnels in id order. */
  listTunnels(page: PageRequest): Page<TunnelRecord> {
    return pageOf(page, (afterId, limit) => {
      const rows = this.#statements.all(READ.tunnelsAfter, [afterId, limit]);
      return rows.map(tunnelFromRow);
    });
  }

  /** Keys in id order, of one tenant or of all. */
  listKeys(page: PageRequest & { readonly tunnel?: string }): Page<KeyRecord> {
    return pageOf(page, (afterId, limit) => {
      const rows =
        page.tunnel === undefined
          ? this.#statements.all(READ.keysAfter, [afterId, limit])
          : this.#statements.all(READ.tenantKeysAfter, [afterId, limit, page.tunnel]);
      return rows.map((row) => keyFromRow(row).record);
    });
  }

  /** Takes in what was committed since: clears memory, then tells listeners. Called after each commit. */
  catchUp(): void {
    for (;;) {
      const rows = this.#statements.all(READ.changesAfter, [this.#seq, CHANGES_PAGE]);
      const changes = rows.map(changeFromRow);
      for (const change of changes) this.#forget(change);
      for (const change of changes) this.#tell(change);
      if (changes.length < CHANGES_PAGE) return;
    }
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

  #forget(change: Change): void {
    this.#seq = change.seq;
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
      case "node":
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
