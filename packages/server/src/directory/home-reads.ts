// What a replica's file says of homes and service keys; homes and service keys are kept in memory.
//
// Spec: L22, L26, L28, L29.   I1  As local-replica.ts: memory is cleared by the changes listeners hear of.

import type { DatabaseSync } from "node:sqlite";
import { integerAt, textAt } from "./columns.ts";
import type { HomeAppRecord, HomeRecord, ServiceKeyRecord, ServiceKeys } from "./home-records.ts";
import { RecentMap } from "./recent-map.ts";
import type { Change } from "./records.ts";
import { homeFromRow, serviceKeyFromRow } from "./rows.ts";
import { openServiceKey } from "./service-keys.ts";
import { createSqliteStatements, type SqliteStatements } from "./sqlite-statements.ts";
import { READ } from "./statements.ts";
import type { TokenKeyVault } from "./token-key-vault.ts";

/** Homes kept in memory, about 1 KB each. Count. */
const REMEMBERED_MAX = 10_000;

/** Reads of one file. */
export class HomeReads {
  readonly #statements: SqliteStatements;
  readonly #vault: TokenKeyVault;
  readonly #residency: () => string;
  readonly #homes = new RecentMap<string, HomeRecord>(REMEMBERED_MAX);
  #serviceKeys: { readonly keys: ServiceKeys | undefined } | undefined;

  constructor(db: DatabaseSync, vault: TokenKeyVault, residency: () => string) {
    this.#statements = createSqliteStatements(db);
    this.#vault = vault;
    this.#residency = residency;
  }

  home(id: string): HomeRecord | undefined {
    const remembered = this.#homes.get(id);
    if (remembered !== undefined) return remembered;
    const row = this.#statements.get(READ.home, [id]);
    if (row === undefined) return undefined;
    const home = homeFromRow(row);
    this.#homes.set(id, home);
    return home;
  }

  /** Homes in id order, after `afterId`. */
  homesAfter(afterId: string, limit: number): readonly HomeRecord[] {
    return this.#statements.all(READ.homesAfter, [afterId, limit]).map(homeFromRow);
  }

  homeApps(home: string): readonly HomeAppRecord[] {
    return this.#statements.all(READ.homeApps, [home]).map((row) => ({
      app: textAt(row, "app"),
      hasShard: integerAt(row, "has_shard") === 1,
      lastSeenAtMs: integerAt(row, "last_seen_ms"),
    }));
  }

  serviceKeys(): ServiceKeys | undefined {
    this.#serviceKeys ??= { keys: this.#openServiceKeys() };
    return this.#serviceKeys.keys;
  }

  /** The active one first. */
  listServiceKeys(): readonly ServiceKeyRecord[] {
    return this.#statements.all(READ.serviceKeys, []).map(serviceKeyFromRow);
  }

  /** The file shows this change now. */
  forget(change: Change): void {
    if (change.kind === "home" || change.kind === "placement") this.#homes.delete(change.id);
    if (change.kind === "service-key") this.#serviceKeys = undefined;
  }

  #openServiceKeys(): ServiceKeys | undefined {
    const rows = this.#statements.all(READ.serviceKeys, []);
    const active = rows.find((row) => row["state"] === "active");
    if (active === undefined) return undefined;
    const next = rows.find((row) => row["state"] === "next");
    return {
      active: openServiceKey(active, this.#residency(), this.#vault),
      ...(next === undefined ? {} : { next: textAt(next, "public_key") }),
    };
  }
}
