// `moor directory import`: an export into a directory that nobody has used, fenced afterwards.
//
// Spec: R22.
// I1  A file that was cut short or changed is refused before anything is written.
// I2  The residency is written last: an import that was interrupted leaves a directory that no node takes for whole.

import { createHash } from "node:crypto";
import { ProtocolError } from "@moor/protocol";
import { randomHex, ConfigError, type Runtime } from "@moor/runtime";
import type { SqlValue } from "../statements.ts";
import { WRITE } from "../write-statements.ts";
import {
  EXPORTED_TABLES,
  type ExportedTable,
  type ExportHeader,
  type ExportTrailer,
} from "./exported-tables.ts";
import { fenceDirectory, type FenceReport } from "./fence.ts";
import type { ToolStore } from "./tool-store.ts";

/** Rows written in one transaction. */
const ROWS_PER_BATCH = 500;

/** An export that is whole. */
export interface VerifiedExport {
  readonly header: ExportHeader;
  readonly rows: number;
}

/** Reads an export to its end. Throws ConfigError when it is none, was cut short or changed. */
export async function verifyExport(lines: AsyncIterable<string>): Promise<VerifiedExport> {
  const digest = createHash("sha256");
  let header: ExportHeader | undefined;
  let last: string | undefined;
  let count = 0;
  for await (const line of lines) {
    if (last !== undefined) digest.update(`${last}\n`);
    header ??= parseHeader(line);
    last = line;
    count += 1;
  }
  const trailer = parseLine(last ?? "") as Partial<ExportTrailer>;
  const isWhole =
    trailer.end === true && trailer.sha256 === digest.digest("hex") && trailer.rows === count - 2;
  if (header === undefined || !isWhole) throw notAnExport("one that was cut short or changed");
  return { header, rows: count - 2 };
}

/**
 * Imports a verified export, then fences.
 *
 * @param lines the export once more
 * @param above as in fenceDirectory
 * @throws ProtocolError `conflict` when the directory is not empty
 */
export async function importDirectory(
  store: ToolStore,
  runtime: Runtime,
  { header }: VerifiedExport,
  lines: AsyncIterable<string>,
  above: number,
): Promise<FenceReport> {
  await assertEmpty(store);
  let pending: { readonly table: ExportedTable; readonly rows: SqlValue[][] } | undefined;
  const flush = async () => {
    if (pending === undefined || pending.rows.length === 0) return;
    const { table, rows } = pending;
    await store.change({ kind: "import-rows", table: table.name, columns: table.columns, rows });
    pending = undefined;
  };
  for await (const line of lines) {
    const parsed = parseLine(line) as { readonly table?: unknown; readonly row?: unknown };
    const table = EXPORTED_TABLES.find((each) => each.name === parsed.table);
    if (table === undefined) continue;
    if (pending?.table !== table || pending.rows.length >= ROWS_PER_BATCH) await flush();
    pending ??= { table, rows: [] };
    pending.rows.push(valuesToImport(table, parsed.row as Readonly<Record<string, SqlValue>>));
  }
  await flush();
  await store.change({
    kind: "import-residency",
    name: header.residency,
    incarnation: randomHex(runtime, 8),
    isCorrecting: header.corrections,
    defaultShard: header.defaultShard ?? "",
    seq: header.seq,
    lastRevision: header.lastRevision,
  });
  return fenceDirectory(store, runtime, Math.max(above, header.lastRevision));
}

async function assertEmpty(store: ToolStore): Promise<void> {
  const found = await store.view(async (read) => {
    const heads = await read("select name from residency");
    const tokenKeys = await read(WRITE.anyTokenKey);
    const placements = await read(WRITE.anyPlacement);
    return heads.length + tokenKeys.length + placements.length;
  });
  if (found > 0) {
    throw new ProtocolError("conflict", { message: "the directory is not empty: import into a new one" });
  }
}

function valuesToImport(table: ExportedTable, row: Readonly<Record<string, SqlValue>>): SqlValue[] {
  const written = { ...table.added, ...row, ...table.atImport?.(row) };
  return table.columns.map((column) => written[column] ?? null);
}

function parseHeader(line: string): ExportHeader {
  const header = parseLine(line) as Partial<ExportHeader>;
  if (header.moor !== "directory-export") throw notAnExport("something else");
  if (header.version !== 1) throw notAnExport(`one of format ${String(header.version)}`);
  return header as ExportHeader;
}

function parseLine(line: string): unknown {
  try {
    return (JSON.parse(line) as unknown) ?? {};
  } catch {
    throw notAnExport("something else");
  }
}

function notAnExport(got: string): ConfigError {
  return new ConfigError("FILE", got, "an export as `moor directory export` writes it");
}
