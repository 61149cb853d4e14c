// Which tables a replica holds, and how their rows are read from the authority and kept here.
//
// I1  A row is copied whole and as it is: the same reads run on the copy.

import type { DatabaseSync } from "node:sqlite";
import { valuesOf } from "./columns.ts";
import { parameters } from "./multi-row.ts";
import type { ChangeKind } from "./records.ts";
import { createSqliteStatements, type SqliteStatements } from "./sqlite-statements.ts";
import { HOME_APP_COLUMNS, MOVE_COLUMNS, type Row, type SqlValue } from "./statements.ts";

/** A table as its rows are read and written. */
export interface TableRows {
  readonly name: string;
  /** Its key: the column that a change names. */
  readonly idColumn: string;
  readonly columns: readonly string[];
}

/** A table whose rows are named by the changes of one kind. */
export interface ReplicatedTable extends TableRows {
  readonly kind: ChangeKind;
}

/** Every table that changes tell about, those others refer to first. */
export const REPLICATED_TABLES: readonly ReplicatedTable[] = [
  {
    kind: "token-key",
    name: "token_keys",
    idColumn: "id",
    columns: ["id", "secret", "state", "created_at_ms", "state_since_ms", "created_by"],
  },
  {
    kind: "node",
    name: "nodes",
    idColumn: "id",
    columns: [
      "id",
      "incarnation",
      "internal_url",
      "roles",
      "version",
      "state",
      "registered_at_ms",
      "start_revision",
    ],
  },
  {
    kind: "shard",
    name: "shards",
    idColumn: "id",
    columns: ["id", "node", "public_host", "state", "lease_counter"],
  },
  {
    kind: "key",
    name: "keys",
    idColumn: "id",
    columns: ["id", "kind", "tenant", "hash", "prefix", "label", "created_at_ms", "is_revoked"],
  },
  {
    kind: "tunnel",
    name: "tunnels",
    idColumn: "id",
    columns: ["id", "name", "description", "access", "deadline_ms", "created_at_ms", "is_seen"],
  },
  {
    kind: "placement",
    name: "placements",
    idColumn: "tenant",
    columns: ["tenant", "shard", "revision", "token_key", "token_format", "reason"],
  },
  {
    kind: "home",
    name: "homes",
    idColumn: "id",
    columns: ["id", "label", "box_key", "box_has_shard", "box_seen_at_ms", "tunnel", "created_at_ms"],
  },
  {
    kind: "home-app",
    name: "home_apps",
    idColumn: "id",
    columns: HOME_APP_COLUMNS,
  },
  {
    kind: "service-key",
    name: "service_keys",
    idColumn: "id",
    columns: ["id", "public_key", "secret", "state", "created_at_ms", "state_since_ms", "created_by"],
  },
  {
    kind: "move",
    name: "moves",
    idColumn: "id",
    columns: MOVE_COLUMNS,
  },
];

/** Leases are no changes: they are copied whole, now and then. */
export const LEASE_COLUMNS = [
  "holder",
  "node",
  "incarnation",
  "counter",
  "renewed_at_ms",
  "seen_seq",
] as const;
export const LEASES_SELECT = `select ${LEASE_COLUMNS.join(", ")} from leases order by holder`;

/** Reads the rows of `table` that `count` ids name. */
export function selectByIds(table: ReplicatedTable, count: number): string {
  return `${selectAll(table)} where ${table.idColumn} in (${parameters(count)})`;
}

/** Reads a page of `table` in id order. `$1`: last id before it, `$2`: rows. */
export function selectAfter(table: TableRows): string {
  return `${selectAll(table)} where ${table.idColumn} > $1 order by ${table.idColumn} limit $2`;
}

/** Reads the rows of `table` in a range of ids: above `$1`, up to `$2`. */
export function selectBetween(table: ReplicatedTable): string {
  const { idColumn } = table;
  return `${selectAll(table)} where ${idColumn} > $1 and ${idColumn} <= $2 order by ${idColumn}`;
}

/** Above every id: ids are printable ASCII. */
export const ID_MAX = "\u{10ffff}";

function selectAll(table: TableRows): string {
  return `select ${table.columns.join(", ")} from ${table.name}`;
}

/** Writes rows into the copy. Every call runs inside a transaction of the caller's. */
export class ReplicaWriter {
  readonly #statements: SqliteStatements;

  constructor(db: DatabaseSync) {
    this.#statements = createSqliteStatements(db);
  }

  /** Rows of a statement. */
  all(sql: string, params: readonly SqlValue[]): readonly Row[] {
    return this.#statements.all(sql, params);
  }

  /** Makes the rows named by `ids` what `rows` says, and deletes those it does not have. */
  replace(table: ReplicatedTable, ids: readonly string[], rows: readonly Row[]): void {
    const { name, idColumn } = table;
    for (const id of ids) this.#statements.all(`delete from ${name} where ${idColumn} = $1`, [id]);
    this.insert(table, rows);
  }

  /** Adds rows that are not there yet. */
  insert({ name, columns }: ReplicatedTable, rows: readonly Row[]): void {
    const sql = `insert into ${name} (${columns.join(", ")}) values (${parameters(columns.length)})`;
    for (const row of rows) this.#statements.all(sql, valuesOf(row, columns));
  }

  /** Makes the leases what `rows` says. */
  replaceLeases(rows: readonly Row[]): void {
    this.#statements.all("delete from leases", []);
    const insert = `insert into leases (${LEASE_COLUMNS.join(", ")}) values (${parameters(LEASE_COLUMNS.length)})`;
    for (const row of rows) this.#statements.all(insert, valuesOf(row, LEASE_COLUMNS));
  }

  /** Notes how far the copy is: the residency's row, and the newest change. */
  position(head: {
    readonly name: string;
    readonly incarnation: string;
    readonly isCorrecting: boolean;
    readonly defaultShard: string;
    readonly seq: number;
    readonly lastRevision: number;
    readonly tx: string;
  }): void {
    const { name, incarnation, isCorrecting, defaultShard, seq, lastRevision, tx } = head;
    this.#statements.all("delete from residency", []);
    this.#statements.all(
      `insert into residency (id, name, incarnation, corrections, corrections_by, seq, last_revision, default_shard)
        values (1, $1, $2, $3, '', $4, $5, $6)`,
      [name, incarnation, isCorrecting ? 1 : 0, seq, lastRevision, defaultShard],
    );
    this.#statements.all("delete from changes", []);
    this.#statements.all(
      "insert into changes (seq, kind, id, tx, at_ms) values ($1, 'residency', $2, $3, 0)",
      [seq, name, tx],
    );
  }
}
