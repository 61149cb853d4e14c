// What an export holds: every durable row but the feed, leases and leadership, which mean nothing elsewhere.
//
// I1  Keys are hashes, token keys and service keys are sealed under the node secret: an export opens nothing by itself.
//     Enrolment codes live ten minutes and are left out.

import { REPLICATED_TABLES, type TableRows } from "../replicated-tables.ts";
import { JOB_COLUMNS, type SqlValue } from "../statements.ts";

/** A table of an export. */
export interface ExportedTable extends TableRows {
  /** Values that an import writes instead: nodes are gone, shards are down, jobs have ended until told otherwise. */
  readonly atImport?: (row: Readonly<Record<string, SqlValue>>) => Readonly<Record<string, SqlValue>>;
  /** Values of columns that exports of older programs lack. */
  readonly added?: Readonly<Record<string, SqlValue>>;
}

const AT_IMPORT: Readonly<Record<string, ExportedTable["atImport"]>> = {
  nodes: () => ({ state: "left" }),
  shards: () => ({ state: "down" }),
};

const ADDED: Readonly<Record<string, ExportedTable["added"]>> = {
  nodes: { start_revision: 0 },
};

const JOBS: ExportedTable = {
  name: "jobs",
  idColumn: "id",
  columns: JOB_COLUMNS,
  atImport: (row) => (row["state"] === "running" ? { state: "failed", error: "ended by an import" } : {}),
  added: { is_forced: 0, blocked: 0, blocked_tenants: "" },
};

/** Every table of an export, in its order. */
export const EXPORTED_TABLES: readonly ExportedTable[] = [
  ...REPLICATED_TABLES.map(({ name, idColumn, columns }): ExportedTable => {
    const [atImport, added] = [AT_IMPORT[name], ADDED[name]];
    return {
      name,
      idColumn,
      columns,
      ...(atImport === undefined ? {} : { atImport }),
      ...(added === undefined ? {} : { added }),
    };
  }),
  JOBS,
];

/** First line of an export. */
export interface ExportHeader {
  readonly moor: "directory-export";
  /** Format, 1. */
  readonly version: 1;
  readonly residency: string;
  readonly incarnation: string;
  readonly corrections: boolean;
  /** Absent in exports of older programs. */
  readonly defaultShard?: string;
  readonly seq: number;
  readonly lastRevision: number;
  readonly atMs: number;
}

/** Last line of an export: a file without it was cut short. */
export interface ExportTrailer {
  readonly end: true;
  readonly rows: number;
  /** SHA-256 of every line before this one with its line feed, hexadecimal. */
  readonly sha256: string;
}
