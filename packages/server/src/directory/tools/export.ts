// `moor directory export`: the directory as JSON lines, of one state.
//
// Format: an ExportHeader, one `{"table":…,"row":{…}}` a row, an ExportTrailer.

import { createHash } from "node:crypto";
import type { Runtime } from "@moor/runtime";
import { ProtocolError } from "@moor/protocol";
import { textAt } from "../columns.ts";
import { headFromRow } from "../mutation-batch.ts";
import { selectAfter } from "../replicated-tables.ts";
import { READ } from "../statements.ts";
import {
  EXPORTED_TABLES,
  type ExportedTable,
  type ExportHeader,
  type ExportTrailer,
} from "./exported-tables.ts";
import type { Read, ToolStore } from "./tool-store.ts";

/** Rows read at once. */
const PAGE = 1_000;

/**
 * Exports the directory.
 *
 * @param write takes some whole lines, line feeds included
 * @returns how many rows were written
 */
export function exportDirectory(
  store: ToolStore,
  runtime: Runtime,
  write: (lines: string) => Promise<void> | void,
): Promise<number> {
  return store.view(async (read) => {
    const digest = createHash("sha256");
    const put = async (lines: string) => {
      digest.update(lines);
      await write(lines);
    };
    await put(`${JSON.stringify(await readHeader(read, runtime))}\n`);
    let rows = 0;
    for (const table of EXPORTED_TABLES) rows += await putTable(read, table, put);
    const trailer: ExportTrailer = { end: true, rows, sha256: digest.digest("hex") };
    await write(`${JSON.stringify(trailer)}\n`);
    return rows;
  });
}

async function readHeader(read: Read, runtime: Runtime): Promise<ExportHeader> {
  const [row] = await read(READ.head);
  if (row === undefined) throw new ProtocolError("conflict", { message: "the directory is not founded" });
  const { name, incarnation, isCorrecting, defaultShard, seq, lastRevision } = headFromRow(row);
  const atMs = Math.trunc(runtime.wallMs());
  const position = { incarnation, corrections: isCorrecting, defaultShard, seq, lastRevision, atMs };
  return { moor: "directory-export", version: 1, residency: name, ...position };
}

async function putTable(
  read: Read,
  table: ExportedTable,
  put: (lines: string) => Promise<void>,
): Promise<number> {
  const { name, idColumn } = table;
  const page = selectAfter(table);
  let count = 0;
  for (let after = ""; ;) {
    const rows = await read(page, [after, PAGE]);
    if (rows.length > 0) await put(rows.map((row) => `${JSON.stringify({ table: name, row })}\n`).join(""));
    count += rows.length;
    if (rows.length < PAGE) return count;
    after = textAt(rows.at(-1), idColumn);
  }
}
