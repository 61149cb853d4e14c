// What an export holds: every durable row but the feed, leases and leadership, which mean nothing elsewhere.
//
// I1  Keys are hashes and token keys are sealed under the node secret: an export opens nothing by itself.

import { REPLICATED_TABLES, type TableRows } from "../replicated-tables.ts";
import { JOB_COLUMNS, type SqlValue } from "../statements.ts";

/** A table of an export. */
export interface ExportedTable extends TableRows {
  /** Values that an import writes instead: nodes are gone, shards are down, jobs have ended until told otherwise. */
  readonly atImport?: (row: Readonly<Record<string, SqlValue>>) => Readonly<Record<string, SqlValue>>;
}

const AT_IMPORT: Readonly<Record<string, ExportedTable["atImport"]>> = {
  nodes: () => ({ state: "left" }),
  shards: () => ({ state: "down" }),
};

const JOBS: ExportedTable = {
  name: "jobs",
  idColumn: "id",
  columns: JOB_COLUMNS,
  atImport: (row) => (row["state"] === "running" ? { state: "failed", error: "ended by an import" } : {}),
};

/** Every table of an export, in its order. */
export const EXPORTED_TABLES: readonly ExportedTable[] = [
  ...REPLICATED_TABLES.map(({ name, idColumn, columns }): ExportedTable => {
    const atImport = AT_IMPORT[name];
    return { name, idColumn, columns, ...(atImport === undefined ? {} : { atImport }) };
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
